# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules about the names, the sizes and the number of queues and compute resources.

The schema does not look at them; ParallelCluster does when the account is asked, or nobody does until a job fails.
Source: the ParallelCluster 3.16 documentation, and what its dry run was seen to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.types import root_volume_size
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import (
    WARNING,
    Finding,
    View,
    entries,
    neuron_queues,
    number,
    queues,
    resources,
    section,
    subnets_of,
    text,
)

_NAME = re.compile(r"[a-z][a-z0-9-]*")
NAME_LENGTH = 25
MAXIMUM = 50
HOST_NAME_LENGTH = 63
_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}")
_GROUP = re.compile(r"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/\S+")


def names(view: View) -> Iterator[Finding]:
    """Names of queues and compute resources become parts of host names."""
    named = [(key, "queue", queue.get("Name")) for key, queue in queues(view)]
    named += [(item.key, "compute resource", item.resource.get("Name")) for item in resources(view)]
    for key, what, name in named:
        if not text(name):
            continue
        where = f"{key}/Name"
        if not _NAME.fullmatch(str(name)):
            yield Finding(
                where,
                f"the {what} name {name!r} may have lower-case letters, digits and hyphens only and begins "
                "with a letter; change it",
            )
        elif name == "default":
            yield Finding(where, f"the name 'default' is reserved by Slurm; give the {what} another")
        if len(str(name)) > NAME_LENGTH:
            yield Finding(where, f"the {what} name {name!r} has {len(str(name))} characters; use at most {NAME_LENGTH}")


def duplicates(view: View) -> Iterator[Finding]:
    yield from repeated("queue", [(f"{key}/Name", queue.get("Name")) for key, queue in queues(view)])
    for queue_key, queue in queues(view):
        items = entries(queue, "ComputeResources", under=queue_key)
        yield from repeated("compute resource", [(f"{key}/Name", item.get("Name")) for key, item in items])


def repeated(what: str, named: list[tuple[str, Any]]) -> Iterator[Finding]:
    """A finding for each name that was there before."""
    seen: dict[Any, str] = {}
    for key, name in named:
        if not text(name):
            continue
        if name in seen:
            yield Finding(key, f"the {what} name {name!r} is taken by {seen[name]}; each needs its own")
        seen.setdefault(name, key)


def numbers_of(view: View) -> Iterator[Finding]:
    found = queues(view)
    key = "Scheduling/SlurmQueues"
    if len(found) > MAXIMUM:
        yield Finding(key, f"there are {len(found)} queues and ParallelCluster takes {MAXIMUM}; merge some")
    total = resources(view)
    if len(total) > MAXIMUM:
        yield Finding(
            key,
            f"there are {len(total)} compute resources in all queues and ParallelCluster takes {MAXIMUM}; remove some",
        )
    for queue_key, queue in found:
        if "ComputeResources" in queue and not list(entries(queue, "ComputeResources")):
            yield Finding(f"{queue_key}/ComputeResources", "the queue has no compute resource; give it at least one")


def counts(view: View) -> Iterator[Finding]:
    for item in resources(view):
        minimum, maximum = item.counts
        if minimum < 0:
            yield Finding(f"{item.key}/MinCount", f"{minimum} is below 0; set it to 0 or more")
        if maximum < 1:
            yield Finding(f"{item.key}/MaxCount", f"{maximum} nodes can never run a job; set it to 1 or more")
        elif minimum > maximum:
            yield Finding(
                f"{item.key}/MinCount",
                f"{minimum} is more than MaxCount, which is {maximum}; lower MinCount or raise MaxCount",
            )


def host_names(view: View) -> Iterator[Finding]:
    """The longest host name of a compute resource with its domain.

    NCCL and the Neuron runtime take names of up to 63 characters and say "Invalid NCCL_COMM_ID" to a longer one.
    """
    dns = section(view.configuration, "Scheduling", "SlurmSettings", "Dns")
    if dns.get("UseEc2Hostnames") is True:
        return
    for item in resources(view):
        queue, name = text(item.queue.get("Name")), text(item.resource.get("Name"))
        if not (queue and name):
            continue
        minimum, maximum = item.counts
        kind = "st" if minimum and minimum >= maximum else "dy"
        host = f"{queue}-{kind}-{name}-{max(maximum, 1)}.{view.cluster_name}.pcluster"
        excess = len(host) - HOST_NAME_LENGTH
        if excess > 0:
            yield Finding(
                f"{item.key}/Name",
                f"the host name {host} has {len(host)} characters, and NCCL and Neuron fail beyond "
                f"{HOST_NAME_LENGTH}; shorten the names of cluster, queue and compute resource by {excess}",
            )


def instance_types(view: View) -> Iterator[Finding]:
    for item in resources(view):
        if item.instance_types or section(item.resource, "CapacityReservationTarget").get("CapacityReservationId"):
            continue
        if "InstanceType" not in item.resource and "Instances" not in item.resource:
            yield Finding(f"{item.key}/InstanceType", "is missing; name the instance type, such as trn1.32xlarge")


def root_volumes(view: View) -> Iterator[Finding]:
    """A root volume that Neuron's software and caches fill up."""
    for queue_key, queue, kind in neuron_queues(view):
        volume = section(queue, "ComputeSettings", "LocalStorage", "RootVolume")
        wanted = root_volume_size(kind)
        # Without a size the volume is as large as the image, 45 GiB in the official ones.
        size = number(volume.get("Size"), 45)
        if size < wanted:
            yield Finding(
                f"{queue_key}/ComputeSettings/LocalStorage/RootVolume/Size",
                f"{size} GiB fill up with Neuron's software and caches on {kind}; set it to {wanted}",
                WARNING,
            )


def exclusive(view: View) -> Iterator[Finding]:
    """Slurm does not know Neuron devices, so that two jobs on a node take each other's."""
    for queue_key, queue, _kind in neuron_queues(view):
        if queue.get("JobExclusiveAllocation") is not True:
            yield Finding(
                f"{queue_key}/JobExclusiveAllocation",
                "Slurm does not share out Neuron devices, so two jobs on a node would collide; set it to "
                "true or submit each job with --exclusive",
                WARNING,
            )


def subnets(view: View) -> Iterator[Finding]:
    for queue_key, queue in queues(view):
        where = f"{queue_key}/Networking/SubnetIds"
        found = subnets_of(queue)
        if not found:
            yield Finding(where, "is missing; name the subnet of the queue's nodes, best a private one")
        for subnet in sorted({subnet for subnet in found if found.count(subnet) > 1}):
            yield Finding(where, f"{subnet} is listed twice; list each subnet once")


def reservations(view: View) -> Iterator[Finding]:
    """Reservation ids and group ARNs that nothing can match."""
    targets: list[tuple[str, Mapping[str, Any]]] = [
        (f"{key}/CapacityReservationTarget", section(holder, "CapacityReservationTarget"))
        for key, holder in [*queues(view), *((item.key, item.resource) for item in resources(view))]
    ]
    region = text(view.configuration.get("Region"))
    for key, target in targets:
        identifier = target.get("CapacityReservationId")
        if identifier is not None and not _RESERVATION.fullmatch(str(identifier)):
            yield Finding(
                f"{key}/CapacityReservationId",
                f"{identifier!r} is no reservation's id; it looks like cr-0a1b2c3d4e5f60001",
            )
        group = target.get("CapacityReservationResourceGroupArn")
        if group is None:
            continue
        where = f"{key}/CapacityReservationResourceGroupArn"
        if not _GROUP.fullmatch(str(group)):
            yield Finding(
                where,
                f"{group!r} is no resource group's ARN; it looks like "
                "arn:aws:resource-groups:us-west-2:123456789012:group/name",
            )
        elif region and str(group).split(":")[3] != region:
            yield Finding(
                where,
                f"the group is in {str(group).split(':')[3]} and the cluster in {region}; use a group of that region",
            )


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (
    names,
    duplicates,
    numbers_of,
    counts,
    host_names,
    instance_types,
    subnets,
    reservations,
    root_volumes,
    exclusive,
)
