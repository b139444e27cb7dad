# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A ParallelCluster configuration of any shape, as the checks look at it: what is not as it should be is empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import is_neuron

ERROR = "error"
WARNING = "warning"


class Finding(NamedTuple):
    """``key``: where, as ``Scheduling/SlurmQueues/0/Name``. ``problem``: what is wrong there and what to do."""

    key: str
    problem: str
    severity: str = ERROR

    @property
    def message(self) -> str:
        """The sentence, without a full stop."""
        where = self.key or "The configuration"
        return f"{where}{' ' if self.problem.startswith('is missing') else ': '}{self.problem}"


class View(NamedTuple):
    """A configuration and what is known beside it.

    ``reservations_of_aws`` and ``own_reservations``: ids or group ARNs whose maker is known. ``neuron_sdk``: the
    release that the cluster is to run, '' for the newest that trains.
    """

    configuration: Mapping[str, Any]
    cluster_name: str
    reservations_of_aws: tuple[str, ...] = ()
    own_reservations: tuple[str, ...] = ()
    neuron_sdk: str = ""


class Resource(NamedTuple):
    """A compute resource, its key, its queue and the queue's key."""

    key: str
    resource: Mapping[str, Any]
    queue_key: str
    queue: Mapping[str, Any]

    @property
    def instance_types(self) -> list[tuple[str, str]]:
        """The instance types, each with its key; there are several where Slurm may choose."""
        holders = [(self.key, self.resource), *entries(self.resource, "Instances", under=self.key)]
        found = [(f"{key}/InstanceType", text(holder.get("InstanceType"))) for key, holder in holders]
        return [(key, kind) for key, kind in found if kind]

    @property
    def efa(self) -> bool:
        return section(self.resource, "Efa").get("Enabled") is True

    @property
    def reservation(self) -> tuple[str, Mapping[str, Any]]:
        """The capacity reservation target and its key: its own, else the queue's."""
        if section(self.resource, "CapacityReservationTarget"):
            return f"{self.key}/CapacityReservationTarget", section(self.resource, "CapacityReservationTarget")
        return f"{self.queue_key}/CapacityReservationTarget", section(self.queue, "CapacityReservationTarget")

    @property
    def reservation_name(self) -> Any:
        """The id or the group's ARN of that reservation."""
        _key, target = self.reservation
        return target.get("CapacityReservationId") or target.get("CapacityReservationResourceGroupArn")

    @property
    def placement_group(self) -> tuple[str, Mapping[str, Any]]:
        """The placement group and its key: its own, else the queue's."""
        if section(self.resource, "Networking", "PlacementGroup"):
            return f"{self.key}/Networking/PlacementGroup", section(self.resource, "Networking", "PlacementGroup")
        return f"{self.queue_key}/Networking/PlacementGroup", section(self.queue, "Networking", "PlacementGroup")

    @property
    def counts(self) -> tuple[int, int]:
        """MinCount and MaxCount, with ParallelCluster's defaults."""
        return number(self.resource.get("MinCount"), 0), number(self.resource.get("MaxCount"), 10)


def section(mapping: Any, *keys: str) -> Mapping[str, Any]:
    """The mapping at the end of ``keys``; empty where there is none."""
    for key in keys:
        mapping = mapping.get(key) if isinstance(mapping, Mapping) else None
    return mapping if isinstance(mapping, Mapping) else {}


def entries(mapping: Any, *keys: str, under: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mappings of the list at the end of ``keys``, each with its key, which begins with ``under``."""
    found = section(mapping, *keys[:-1]).get(keys[-1])
    prefix = "/".join(([under] if under else []) + list(keys))
    for index, item in enumerate(found if isinstance(found, list) else []):
        if isinstance(item, Mapping):
            yield f"{prefix}/{index}", item


def queues(view: View) -> list[tuple[str, Mapping[str, Any]]]:
    return list(entries(view.configuration, "Scheduling", "SlurmQueues"))


def resources(view: View) -> list[Resource]:
    """Every compute resource of every queue."""
    return [
        Resource(key, resource, queue_key, queue)
        for queue_key, queue in queues(view)
        for key, resource in entries(queue, "ComputeResources", under=queue_key)
    ]


def neuron_queues(view: View) -> list[tuple[str, Mapping[str, Any], str]]:
    """Each queue that has instance types with Neuron devices, with its key before it and the first of them after it."""
    found: dict[str, tuple[str, Mapping[str, Any], str]] = {}
    for item in resources(view):
        for kind in [kind for _key, kind in item.instance_types if is_neuron(kind)]:
            found.setdefault(item.queue_key, (item.queue_key, item.queue, kind))
    return list(found.values())


def subnets_of(queue: Mapping[str, Any]) -> list[str]:
    """The texts in the list of its subnets."""
    found = section(queue, "Networking").get("SubnetIds")
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def text(value: Any) -> str:
    """A text that is not empty, else ''."""
    return value if isinstance(value, str) else ""


def number(value: Any, default: int) -> int:
    """An integer, written as one or as text; the default where it is neither."""
    if isinstance(value, bool):
        return default
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else default
