"""The AWS API of the sandbox: moto's server, and from outside what it lacks where an EFA launch matters.

Each module patches one thing and says what stock moto does instead. ``install()`` applies them all; ``control`` wraps
the application with the call log, faults and the control API.
"""

from __future__ import annotations


def install(pending: float = 0.0) -> None:
    """Patch moto in this process.

    Args:
        pending: seconds that an instance is ``pending`` before it is ``running``.
    """
    from sandbox.emulator import actions, addresses, catalog, dependencies, interfaces, launch, lifecycle, tags, volumes

    for module in (tags, interfaces, addresses, launch, actions, dependencies, volumes, catalog):
        module.install()
    lifecycle.install(pending)
