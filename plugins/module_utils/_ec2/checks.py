# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with the arguments of efa_instance, before anything is started. Pure.

Each function raises TrainiumError with one sentence. ``check_arguments`` needs no AWS; the others judge its replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import (
    GROUP,
    SUBNET,
    check_names,
    check_tags,
    check_timeout,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import LIVE_STATES, node_of
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.user_data import LIMIT, with_stop

_IDS = {
    "image_id": re.compile(r"ami-[0-9a-z]+"),
    "subnets": SUBNET,
    "security_groups": GROUP,
}
_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
_IOPS_TYPES = ("gp3", "io1", "io2")

Record = Mapping[str, Any]


def check_arguments(params: Record, check_mode: bool) -> None:
    """Everything that can be seen without AWS.

    In check mode subnets, security groups and the image may be missing, as an earlier task would have made them.
    """
    check_names(params, ("name", "cluster_name", "role"), required=True)
    check_timeout(params)
    check_tags(params.get("tags"), "EC2")
    if params["state"] != "present":
        return
    if params["count"] < 1:
        raise TrainiumError(f"count is {params['count']}; give 1 or more, or state=absent to remove the nodes")
    if not params.get("instance_type"):
        raise TrainiumError("instance_type is missing; name one such as trn1.32xlarge")
    for option in ("image_id", "subnets", "security_groups"):
        _check_ids(option, params.get(option), check_mode)
    for item in params.get("replace") or ():
        if not _INSTANCE.fullmatch(item):
            raise TrainiumError(f"replace has {item!r}; name instances by ids such as i-0a1b2c3d4e5f60006")
    check_launch(params)


def check_launch(params: Record) -> None:
    """What a launch and a launch template must not say."""
    check_tags(params.get("tags"), "EC2")
    _check_volumes(params.get("volumes") or ())
    _check_market(params)
    _check_user_data(params.get("user_data") or "", params.get("stop_after") or 0)


def _check_user_data(given: str, stop_after: int) -> None:
    if stop_after < 0:
        raise TrainiumError(f"stop_after is {stop_after}; give minutes, or 0 for nodes that do not stop themselves")
    size = len(with_stop(given, stop_after).encode())
    if size > LIMIT:
        raise TrainiumError(f"user_data is {size} bytes for EC2, which takes {LIMIT}; let it fetch what it needs")


def _check_ids(option: str, value: Any, check_mode: bool) -> None:
    values = [value] if isinstance(value, str) and value else list(value or ())
    if not values and not check_mode:
        raise TrainiumError(f"{option} is empty; state=present needs it to launch nodes")
    for item in values:
        if not _IDS[option].fullmatch(item):
            raise TrainiumError(f"{option} holds {item!r}, which is no id such as {_IDS[option].pattern[:4]}...")
    if len(set(values)) != len(values):
        raise TrainiumError(f"{option} holds an id twice: {', '.join(values)}; name each once")


def _check_volumes(volumes: Iterable[Record]) -> None:
    seen: set[str] = set()
    for volume in volumes:
        device = volume.get("device_name") or "the root device"
        if device in seen:
            raise TrainiumError(f"volumes names {device} twice; name each device once")
        seen.add(device)
        size, kind = volume.get("size"), volume.get("type") or "gp3"
        if size is not None and size < 1:
            raise TrainiumError(f"the volume {device} has size {size}; give GiB, 1 or more")
        if volume.get("iops") is not None and kind not in _IOPS_TYPES:
            raise TrainiumError(f"the volume {device} of type {kind} takes no iops; use {', '.join(_IOPS_TYPES)}")
        if volume.get("throughput") is not None and kind != "gp3":
            raise TrainiumError(f"the volume {device} of type {kind} takes no throughput; use gp3")
        if volume.get("kms_key_id") and not volume.get("encrypted", True):
            raise TrainiumError(f"the volume {device} has a kms_key_id but is not encrypted; drop one of the two")


def _check_market(params: Record) -> None:
    market, reservation = params["market"], params.get("capacity_reservation") or {}
    if reservation.get("id") and reservation.get("resource_group_arn"):
        raise TrainiumError("capacity_reservation has an id and a resource_group_arn; give one of the two")
    if market == "capacity-block" and not reservation.get("id"):
        raise TrainiumError("market capacity-block needs capacity_reservation.id, the id of the Capacity Block")
    if market == "spot" and any(reservation.get(key) for key in ("id", "resource_group_arn")):
        raise TrainiumError("market spot cannot use a capacity reservation; drop one of the two")


def check_existing(existing: Sequence[Record], instance_type: str, name: str) -> None:
    """A set is of one type; ``existing`` are the nodes that stay."""
    others = sorted({node["instance_type"] for node in existing} - {instance_type})
    if others:
        raise TrainiumError(
            f"the set {name} has {len(existing)} nodes of type {', '.join(others)}, not {instance_type}; "
            "remove them with state=absent first, or choose another name"
        )


def check_shrink(terminate: Sequence[Record], params: Record) -> None:
    """A count that was lowered, perhaps by a run without its variables file, ends no node by itself."""
    leaving = params.get("leaving")
    others = [node for node in terminate if leaving is not None and node["instance_id"] not in leaving]
    if params["allow_shrink"] and others:
        raise TrainiumError(
            f"a count of {params['count']} would terminate {_some(others)}, and nobody looked whether jobs run there; "
            "name them in leaving (compute.yml does, if its inventory has the nodes), or set trainium_shrink_busy=true"
        )
    if not terminate or params["allow_shrink"]:
        return
    count, has = params["count"], params["count"] + len(terminate)
    raise TrainiumError(
        f"the set {params['name']} has {has} nodes and count is {count}, which would terminate "
        f"{_some(terminate)} with whatever runs there; give count={has}, or set allow_shrink=true (for the playbooks, "
        f"trainium_node_count={has} or trainium_allow_shrink=true)"
    )


def check_strangers(others: Iterable[Record], name: str) -> None:
    """Instances that are to be replaced and are not of the set: nothing would come in their places."""
    alive = [node["instance_id"] for node in map(node_of, others) if node["state"] in LIVE_STATES]
    if alive:
        raise TrainiumError(
            f"replace names {', '.join(alive)}, which the set {name} does not have; name instances of this set"
        )


def check_replace(replaced: Sequence[Record], launch: int, params: Record) -> None:
    """As many come as go: who replaces nodes does not mean to have fewer."""
    if len(replaced) > launch:
        count, has = params["count"], params["count"] + len(replaced) - launch
        raise TrainiumError(
            f"count is {count} and the set {params['name']} has {has} nodes with the {len(replaced)} that are to be "
            f"replaced; give count={has} (for the playbooks, trainium_node_count={has})"
        )


def _some(nodes: Sequence[Record]) -> str:
    ids = [node["instance_id"] for node in nodes]
    return ", ".join(ids[:10]) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")


def check_image(image: Record | None, image_id: str, instance_type: Record) -> None:
    """The image exists, is available and is built for the type's processor."""
    if image is None:
        raise TrainiumError(f"image {image_id} does not exist or is not shared with this account; check image_id")
    state = image.get("State") or "available"
    if state != "available":
        raise TrainiumError(f"image {image_id} is {state}, not available; wait for it or choose another")
    architecture = image.get("Architecture")
    supported = (instance_type.get("ProcessorInfo") or {}).get("SupportedArchitectures") or []
    if architecture and supported and architecture not in supported:
        raise TrainiumError(
            f"image {image_id} is for {architecture}, but {instance_type.get('InstanceType')} needs "
            f"{' or '.join(supported)}; choose another image"
        )


def check_subnets(
    wanted: Sequence[str], subnets: Iterable[Record], zones: Iterable[str], type_name: str
) -> list[Record]:
    """The subnets in the order of ``wanted``: all exist, in one VPC, each in one of the zones that offer the type."""
    found = {item["SubnetId"]: item for item in subnets}
    missing = [subnet for subnet in wanted if subnet not in found]
    if missing:
        raise TrainiumError(f"subnet {', '.join(missing)} does not exist in this region; check subnets")
    ordered = [found[subnet] for subnet in wanted]
    networks: dict[str, str] = {}
    for item in ordered:
        networks.setdefault(item["VpcId"], item["SubnetId"])
    if len(networks) > 1:
        given = ", ".join(f"{subnet} in {network}" for network, subnet in networks.items())
        raise TrainiumError(f"the subnets lie in different VPCs ({given}); EFA does not cross VPCs, so name one VPC's")
    offered = sorted(set(zones))
    if not offered:
        raise TrainiumError(f"instance type {type_name} is not offered in this region; choose another region or type")
    for item in ordered:
        if item["AvailabilityZone"] not in offered:
            raise TrainiumError(
                f"subnet {item['SubnetId']} lies in {item['AvailabilityZone']}, which does not offer {type_name}; "
                f"use subnets in {', '.join(offered)}"
            )
    return ordered


def check_groups(wanted: Sequence[str], groups: Iterable[Record], vpc_id: str | None) -> None:
    """The security groups exist and belong to the subnets' VPC (None: not known)."""
    found = {item["GroupId"]: item for item in groups}
    for group in wanted:
        if group not in found:
            raise TrainiumError(f"security group {group} does not exist in this region; check security_groups")
        network = found[group].get("VpcId")
        if vpc_id and network and network != vpc_id:
            raise TrainiumError(
                f"security group {group} belongs to {network}, but the subnets to {vpc_id}; use one VPC's"
            )


def passes_efa(groups: Iterable[Record]) -> bool:
    """Whether the groups let all traffic in and out among themselves, as EFA needs; a CIDR is not enough."""
    groups = list(groups)
    ids = {item["GroupId"] for item in groups}

    def among_themselves(direction: str) -> bool:
        return any(
            str(rule.get("IpProtocol")) == "-1"
            and any(p.get("GroupId") in ids for p in rule.get("UserIdGroupPairs") or ())
            for item in groups
            for rule in item.get(direction) or ()
        )

    return among_themselves("IpPermissions") and among_themselves("IpPermissionsEgress")


def check_reservation(reservation: Record | None, reservation_id: str, type_name: str, count: int) -> str:
    """The zone of a capacity reservation that can take ``count`` nodes of the type."""
    if reservation is None:
        raise TrainiumError(f"capacity reservation {reservation_id} does not exist in this region; check its id")
    state, kind = reservation.get("State"), reservation.get("InstanceType")
    free = int(reservation.get("AvailableInstanceCount") or 0)
    if kind != type_name:
        raise TrainiumError(
            f"capacity reservation {reservation_id} is for {kind}, not {type_name}; use one of that type"
        )
    if state != "active":
        raise TrainiumError(f"capacity reservation {reservation_id} is {state}, not active; use it while it is active")
    if free < count:
        raise TrainiumError(
            f"capacity reservation {reservation_id} has {free} instances free, {count} are needed; lower count"
        )
    return str(reservation["AvailabilityZone"])


def in_zone(subnets: Sequence[Record], zone: str, reservation_id: str) -> list[Record]:
    """The subnets that can use a reservation."""
    fitting = [item for item in subnets if item["AvailabilityZone"] == zone]
    if not fitting:
        raise TrainiumError(
            f"capacity reservation {reservation_id} lies in {zone} and none of the subnets does; add one there"
        )
    return fitting
