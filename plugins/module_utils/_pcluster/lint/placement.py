# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules about EFA, placement groups, reserved capacity, and what Neuron runs on.

Source: the ParallelCluster, EC2 and Neuron documentation, 2026-11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import (
    family,
    has_efa,
    is_neuron,
)
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import Request, nearest
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import (
    RELEASES,
    find_system,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.types import reserved_by_aws
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import (
    WARNING,
    Finding,
    Resource,
    View,
    queues,
    resources,
    section,
    subnets_of,
    text,
)

CAPACITY_BLOCK = "CAPACITY_BLOCK"
# ParallelCluster's operating systems as Ansible's facts name them.
_SYSTEMS = {
    "alinux2023": ("Amazon", "2023"),
    "ubuntu2204": ("Ubuntu", "22.04"),
    "ubuntu2404": ("Ubuntu", "24.04"),
    "rhel8": ("RedHat", "8"),
    "rhel9": ("RedHat", "9"),
    "rocky8": ("Rocky", "8"),
    "rocky9": ("Rocky", "9"),
}


def efa_subnets(view: View) -> Iterator[Finding]:
    for queue_key, queue in queues(view):
        listed = subnets_of(queue)
        named = [str(one.resource.get("Name")) for one in resources(view) if one.queue_key == queue_key and one.efa]
        if len(set(listed)) > 1 and named:
            yield Finding(
                f"{queue_key}/Networking/SubnetIds",
                f"EFA is on for {', '.join(named)} and does not cross a zone, but there are {len(set(listed))} "
                "subnets; leave one subnet or switch EFA off",
            )


def efa_types(view: View) -> Iterator[Finding]:
    for item in resources(view):
        where = f"{item.key}/Efa/Enabled"
        for _key, kind in item.instance_types:
            known = has_efa(kind)
            if item.efa and known is False:
                yield Finding(where, f"{kind} has no EFA; switch it off or use a larger size of the type")
            elif known and not item.efa and is_neuron(kind) and item.counts[1] > 1:
                yield Finding(
                    where, f"{kind} has EFA, and without it training over several nodes is slow; switch it on", WARNING
                )
        efa = section(item.resource, "Efa")
        if efa.get("GdrSupport") is True and not item.efa:
            yield Finding(f"{item.key}/Efa/GdrSupport", "it needs EFA; set Enabled to true or remove it")


def placement_groups(view: View) -> Iterator[Finding]:
    for item in resources(view):
        key, group = item.placement_group
        in_block = item.queue.get("CapacityType") == CAPACITY_BLOCK
        if item.efa and not group and not in_block and len(set(subnets_of(item.queue))) <= 1:
            yield Finding(
                key,
                "is missing; with EFA say Enabled: true for a placement group, or false where the "
                "reservation brings its own",
            )
        if group.get("Enabled") is False and (group.get("Name") or group.get("Id")):
            yield Finding(
                f"{key}/Enabled", "a placement group is named and switched off at once; remove the one or the other"
            )
        if group.get("Enabled") is False or not (group.get("Enabled") or group.get("Name") or group.get("Id")):
            continue
        where = f"{key}/{'Enabled' if 'Enabled' in group else 'Name'}"
        if in_block:
            yield Finding(
                where,
                "a Capacity Block has its own placement, beside which a placement group leads to "
                "insufficient capacity; set Enabled to false",
            )
        elif _made_by_aws(item, view):
            yield Finding(
                where,
                f"the reservation {item.reservation_name} is one that AWS makes with its own placement group, "
                "beside which another leads to insufficient capacity; set Enabled to false, or state that the "
                "reservation is your own",
            )


def _made_by_aws(item: Resource, view: View) -> bool:
    """Whether a resource's reservation was made by AWS: as stated, else as the rule is for its instance type."""
    name = item.reservation_name
    if not name or name in view.own_reservations:
        return False
    return name in view.reservations_of_aws or any(reserved_by_aws(kind) for _key, kind in item.instance_types)


def capacity_blocks(view: View) -> Iterator[Finding]:
    for item in resources(view):
        key, target = item.reservation
        minimum, maximum = item.counts
        if item.queue.get("CapacityType") == "SPOT" and target:
            yield Finding(
                f"{item.queue_key}/CapacityType",
                f"spot instances never use a reservation; set ONDEMAND or remove {key.split('/')[-1]}",
            )
        if item.queue.get("CapacityType") != CAPACITY_BLOCK:
            continue
        if not target.get("CapacityReservationId"):
            yield Finding(
                f"{item.key}/CapacityReservationTarget/CapacityReservationId",
                "is missing; a Capacity Block is used by the id of its reservation",
            )
        if minimum != maximum or minimum < 1:
            yield Finding(
                f"{item.key}/MinCount",
                f"the nodes of a Capacity Block are static, so that MinCount and MaxCount are equal and above "
                f"0, not {minimum} and {maximum}; set both to the number of reserved instances",
            )


def neuron_system(view: View) -> Iterator[Finding]:
    """Whether Neuron runs on the operating system of a cluster with Neuron devices."""
    system_name = text(section(view.configuration, "Image").get("Os"))
    kinds = sorted({kind for item in resources(view) for _key, kind in item.instance_types if is_neuron(kind)})
    if system_name not in _SYSTEMS or not kinds:
        return

    def serves(sdk: str, system_of: tuple[str, str]) -> str:
        """The release nearest to this one that trains on the nodes with that system; '' for none."""
        system = find_system(*system_of)
        return (nearest(Request(sdk, *system_of, family=family(kinds[0])), system) if system else None) or ""

    sdk = view.neuron_sdk or serves(RELEASES[0].sdk, _SYSTEMS["ubuntu2404"])
    best = serves(sdk, _SYSTEMS[system_name])
    if best == sdk:
        return
    advice = ["use ubuntu2404"] if serves(sdk, _SYSTEMS["ubuntu2404"]) == sdk else []
    advice += [f"pin Neuron SDK {best}"] if best else []
    yield Finding(
        "Image/Os",
        f"PyTorch of Neuron SDK {sdk}, which {kinds[0]} needs, does not run on {system_name}; "
        + ", or ".join(advice or ["use another SDK"]),
    )


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (
    efa_subnets,
    efa_types,
    placement_groups,
    capacity_blocks,
    neuron_system,
)
