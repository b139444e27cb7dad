"""The AWS API of the sandbox: moto's server, and from outside what it lacks where an EFA launch matters.

Each module patches one thing and says what stock moto does instead. ``install()`` applies them all; ``control`` wraps
the application with the call log, faults and the control API.
"""

from __future__ import annotations


def install(pending: float = 0.0) -> None:
    """Patch moto in this process.

    Args:
        pending: seconds from pending to running, from stopping to stopped, from shutting-down to terminated.
    """
    from sandbox.emulator import cloudformation, records, reset
    from sandbox.emulator.ec2 import (
        addresses,
        answers,
        catalog,
        console,
        dependencies,
        describe,
        gateways,
        instances,
        interfaces,
        lingering,
        own_images,
        placement,
        quotas,
        tags,
        volumes,
    )
    from sandbox.emulator.eks import clusters
    from sandbox.emulator.launch import fleets, lifecycle, reservations, run_instances, templates
    from sandbox.emulator.market import blocks, spot
    from sandbox.emulator.services import balancers, buckets, ecr, efs, fsx, resource_groups, sessions

    for module in (reset, records, tags, interfaces, instances, addresses, gateways, describe, placement, reservations):
        module.install()
    for module in (run_instances, fleets, dependencies, lingering, volumes, catalog, console, quotas, buckets):
        module.install()
    cloudformation.install()
    resource_groups.install()
    balancers.install()
    spot.install()
    blocks.install()
    lifecycle.install(pending)
    own_images.install(pending)
    fsx.install(pending)
    efs.install(pending)
    clusters.install(pending)
    templates.install()
    sessions.install(pending)
    ecr.install()
    answers.install()
