# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is and what should be -> how many to launch and which to start, stop or terminate. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import (
    LIVE_STATES,
    Node,
    generation_of,
    in_order,
)


class FleetPlan(NamedTuple):
    """``keep`` stays, oldest first; ``start`` and ``stop`` are parts of it. ``launch`` is the number of new nodes.

    ``replace`` are terminated before the launch, for which they make room.
    """

    keep: list[Node]
    launch: int
    start: list[Node]
    stop: list[Node]
    terminate: list[Node]
    replace: list[Node]

    @property
    def changes(self) -> bool:
        return bool(self.launch or self.start or self.stop or self.terminate or self.replace)


def plan_fleet(
    nodes: Iterable[Node], state: str, count: int, leaving: Sequence[str] = (), replace: Sequence[str] = ()
) -> FleetPlan:
    """``state`` is present, stopped or absent; ``count``, ``leaving`` and ``replace`` matter for present only.

    Too many nodes: those of ``leaving`` go first, then the newest, so that the oldest, rank 0, stays. Dead nodes are
    not counted, nor those of ``replace``, so that as many are launched.
    """
    live = in_order(node for node in nodes if node["state"] in LIVE_STATES)
    if state == "absent":
        return FleetPlan([], 0, [], [], live, [])
    if state == "stopped":
        running = [node for node in live if node["state"] in ("pending", "running")]
        return FleetPlan(live, 0, [], running, [], [])
    replaced = [node for node in live if node["instance_id"] in replace]
    live = [node for node in live if node not in replaced]
    newest = [node["instance_id"] for node in reversed(live)]
    going = set(sorted(newest, key=lambda identity: identity not in leaving)[: max(0, len(live) - count)])
    keep = [node for node in live if node["instance_id"] not in going]
    start = [node for node in keep if node["state"] in ("stopping", "stopped")]
    terminate = [node for node in live if node["instance_id"] in going]
    return FleetPlan(keep, max(0, count - len(live)), start, [], terminate, replaced)


def next_generation(nodes: Iterable[Node]) -> int:
    """1 + the highest generation among all nodes that can be seen, living or dead.

    A run that is repeated because it was killed before its launch could be seen gets the same number, hence the same
    ClientToken; a launch on top of an earlier one gets another.
    """
    return 1 + max((generation_of(node) for node in nodes), default=0)


def candidate_subnets(subnets: Sequence[Mapping[str, Any]], keep: Sequence[Node]) -> list[Mapping[str, Any]]:
    """The subnets to try, in order. New nodes join those that exist: same zone, and their subnet first.

    ``subnets`` are items of DescribeSubnets. Raises TrainiumError when none lies in the zone of the existing nodes.
    """
    if not keep:
        return list(subnets)
    zone, subnet = keep[0]["availability_zone"], keep[0]["subnet_id"]
    same = [item for item in subnets if item["AvailabilityZone"] == zone]
    if not same:
        given = ", ".join(f"{item['SubnetId']} ({item['AvailabilityZone']})" for item in subnets)
        raise TrainiumError(
            f"the existing nodes run in {zone} and none of the subnets lies there: {given}; "
            "EFA does not cross zones, so add a subnet of that zone or remove the nodes first"
        )
    return sorted(same, key=lambda item: item["SubnetId"] != subnet)
