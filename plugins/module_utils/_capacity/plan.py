# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What to do about a capacity reservation and its resource group. Pure.

A *reservation* is a flat dict made of one ``CapacityReservations[]`` item of DescribeCapacityReservations, see
``reservation_of``. What can be modified, and in which states: the EC2 user guide, "Modify an active Capacity
Reservation".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import check_shared
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    CLUSTER_TAG,
    GENERATION_TAG,
    client_token,
    own_tags,
    tag_list,
    tags_of,
)

# The reservation's name within its cluster.
RESERVATION_TAG = "trainium:reservation"
# Marks a resource group that the collection made, and may therefore delete.
GROUP_TAG = "trainium:reservation-group"
POOL = "AWS::EC2::CapacityReservationPool"
# What DescribeCapacityReservations calls a Capacity Block.
BLOCK = "capacity-block"
# Options in which empty text means not given.
TEXTS = ("name", "owner", "instance_type", "availability_zone", "availability_zone_id", "end_date")
ULTRASERVERS = ("trn2u.",)
# Reservations that hold capacity, or will.
LIVING = ("active", "pending", "scheduled", "assessing", "delayed", "payment-pending")

_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+[a-z]")
_ZONE_ID = re.compile(r"[a-z]+\d+-az\d+")
# What EC2 does not change.
_FIXED = ("instance_type", "availability_zone", "availability_zone_id", "platform", "tenancy", "ebs_optimized")

Params = Mapping[str, Any]
Reservation = dict[str, Any]


class Plan(NamedTuple):
    """What to do: ``create`` one, ``modify`` fields of ``current``, set ``tags``, ``cancel`` some."""

    current: Reservation | None
    create: bool
    modify: dict[str, Any]
    tags: dict[str, str]
    cancel: list[Reservation]

    @property
    def changes(self) -> bool:
        return bool(self.create or self.modify or self.tags or self.cancel)


def reservation_of(item: Mapping[str, Any]) -> Reservation:
    """The fields that matter here; what EC2 leaves out becomes '' or 0. ``end_date`` is '' for an unlimited one."""
    limited = item.get("EndDateType") == "limited"
    block = item.get("ReservationType") == BLOCK
    return {
        "capacity_reservation_id": item["CapacityReservationId"],
        "arn": item.get("CapacityReservationArn") or "",
        "state": item.get("State") or "",
        "instance_type": item.get("InstanceType") or "",
        "availability_zone": item.get("AvailabilityZone") or "",
        "availability_zone_id": item.get("AvailabilityZoneId") or "",
        "count": promised(item) if block else int(item.get("TotalInstanceCount") or 0),
        "available_count": int(item.get("AvailableInstanceCount") or 0),
        "platform": item.get("InstancePlatform") or "",
        "tenancy": item.get("Tenancy") or "default",
        "ebs_optimized": bool(item.get("EbsOptimized")),
        "match_criteria": item.get("InstanceMatchCriteria") or "open",
        "end_date": instant(item.get("EndDate")) if limited else "",
        "capacity_block": block,
        "starts_at": instant(item.get("StartDate")) if block else "",
        "tags": tags_of(item),
    }


def promised(item: Mapping[str, Any]) -> int:
    """How many instances a Capacity Block has, also before it begins, when its counts are 0.

    "You can see how many instances will be available in your Capacity Block by the tag value" (EC2 user guide, "View
    Capacity Blocks").
    """
    text = tags_of(item).get("aws:ec2capacityreservation:incrementalRequestedQuantity", "")
    return int(text) if text.isdecimal() else int(item.get("TotalInstanceCount") or 0)


def instances_end(item: Mapping[str, Any]) -> str:
    """When EC2 begins to terminate the instances of a Capacity Block; '' for another reservation, which they outlive.

    Half an hour before its end (EC2 user guide, "Work with Capacity Blocks"); an hour is left to UltraServers.
    """
    if item.get("ReservationType") != BLOCK or not item.get("EndDate"):
        return ""
    minutes = 60 if str(item.get("InstanceType")).startswith(ULTRASERVERS) else 30
    return instant(item["EndDate"] - timedelta(minutes=minutes))


def instant(value: Any) -> str:
    """A date as ``2026-12-31T23:59:59Z``; '' for none. Without a time zone it is taken for UTC.

    Raises ValueError for text that is no date.
    """
    if not value:
        return ""
    date = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    date = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
    return date.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def date_given(option: str, text: Any) -> str:
    """An option's date as ``instant`` has it. Raises TrainiumError for text that is none."""
    try:
        return instant(text)
    except (ValueError, OverflowError):
        raise TrainiumError(f"{option} is {text!r}, which is no date such as 2026-12-31T23:59:59Z") from None


def check_arguments(params: Params, now: datetime) -> None:
    """Everything that can be seen without AWS. Raises TrainiumError with one sentence."""
    check_shared(params, ("name", "cluster_name", "resource_group"), "EC2")
    if str(params.get("resource_group") or "").lower().startswith("aws"):
        raise TrainiumError(f"resource_group is {params['resource_group']!r}, and AWS keeps names that begin with aws")
    if params["state"] == "absent":
        if not params.get("name") and not params.get("cluster_name"):
            raise TrainiumError("name and cluster_name are missing; give one of them to say what to cancel")
        return
    if not params.get("name"):
        raise TrainiumError("name is missing; state=present needs it")
    if not params.get("instance_type"):
        raise TrainiumError("instance_type is missing; name one such as trn1.32xlarge")
    if params["count"] < 1:
        raise TrainiumError(f"count is {params['count']}; give 1 or more, or state=absent to cancel the reservation")
    _check_zone(params)
    _check_end(params, now)


def _check_zone(params: Params) -> None:
    zone, identity = params.get("availability_zone"), params.get("availability_zone_id")
    if bool(zone) == bool(identity):
        raise TrainiumError(
            "give either availability_zone or availability_zone_id; neuron_capacity_info tells the zones of a type"
        )
    if zone and not _ZONE.fullmatch(zone):
        raise TrainiumError(f"availability_zone is {zone!r}, which is no zone such as us-west-2d")
    if identity and not _ZONE_ID.fullmatch(identity):
        raise TrainiumError(f"availability_zone_id is {identity!r}, which is no zone id such as usw2-az4")


def _check_end(params: Params, now: datetime) -> None:
    end = date_given("end_date", params.get("end_date"))
    if end and end <= instant(now):
        raise TrainiumError(f"end_date {end} has passed; give a date in the future, or none for no end")


def wanted_tags(params: Params) -> dict[str, str]:
    """The tags of the reservation; the user's may rename, the collection's own are fixed."""
    return {"Name": params["name"], **own_tags(params), RESERVATION_TAG: params["name"]}


def group_tags(params: Params) -> dict[str, str]:
    """The tags of a resource group that is made for the reservation."""
    return {CLUSTER_TAG: params["cluster_name"], GROUP_TAG: params["resource_group"]}


def next_generation(found: Iterable[Reservation]) -> int:
    """1 + the highest generation that can be seen, so that a repeated run asks with the token of the killed one.

    EC2 shows a cancelled reservation for a while; a reservation on top of it gets another token.
    """
    generations = [item["tags"].get(GENERATION_TAG, "") for item in found]
    return 1 + max((int(text) for text in generations if text.isdecimal()), default=0)


def plan_reservation(found: Sequence[Reservation], params: Params) -> Plan:
    """What to do, given every reservation of the name that EC2 shows, living or not.

    Raises TrainiumError where EC2 would refuse the change, or where it is not clear which one is meant.
    """
    living = [item for item in found if item["state"] in LIVING]
    if params["state"] == "absent":
        # EC2 cancels no Capacity Block (CancelCapacityReservation).
        return Plan(None, False, {}, {}, [item for item in living if not item["capacity_block"]])
    if len(living) > 1:
        ids = ", ".join(sorted(item["capacity_reservation_id"] for item in living))
        raise TrainiumError(f"{len(living)} reservations have this name: {ids}; cancel those that are too many")
    if not living:
        return Plan(None, True, {}, {}, [])
    current = living[0]
    if current["capacity_block"]:
        raise TrainiumError(
            f"{current['capacity_reservation_id']} is a Capacity Block, which EC2 cannot change; choose another name, "
            "or give the block_hours with which it was bought"
        )
    tags = {key: value for key, value in wanted_tags(params).items() if current["tags"].get(key) != value}
    return Plan(current, False, _modification(current, params), tags, [])


def _modification(current: Reservation, params: Params) -> dict[str, Any]:
    """The fields of ``current`` that change, by their own names."""
    identity = current["capacity_reservation_id"]
    for option in _FIXED:
        if params.get(option) is not None and params[option] != current[option]:
            raise TrainiumError(
                f"{identity} has {option} {_shown(current[option])}, not {_shown(params[option])}, which EC2 cannot "
                "change; cancel it with state=absent first, or choose another name"
            )
    wanted = {
        "count": params["count"],
        "match_criteria": params["match_criteria"],
        "end_date": instant(params.get("end_date")),
    }
    changes = {field: value for field, value in wanted.items() if value != current[field]}
    used = current["count"] - current["available_count"]
    if changes and current["state"] != "active":
        raise TrainiumError(f"{identity} is {current['state']}, and EC2 only modifies active ones; wait until it is")
    if "match_criteria" in changes and used:
        raise TrainiumError(
            f"{identity} has {used} instances in it, and match_criteria only changes without; stop them first"
        )
    if changes.get("count", used) < used:
        raise TrainiumError(
            f"{identity} has {used} instances in it, more than count={changes['count']}; terminate some first"
        )
    return changes


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) or "none"


def creation(params: Params, generation: int) -> dict[str, Any]:
    """The request of CreateCapacityReservation with its ClientToken: the same request has the same one."""
    tags = tag_list({**wanted_tags(params), GENERATION_TAG: str(generation)})
    end = instant(params.get("end_date"))
    request: dict[str, Any] = {
        "InstanceType": params["instance_type"],
        "InstancePlatform": params["platform"],
        "InstanceCount": params["count"],
        "Tenancy": params["tenancy"],
        "EbsOptimized": bool(params["ebs_optimized"]),
        "InstanceMatchCriteria": params["match_criteria"],
        "EndDateType": "limited" if end else "unlimited",
        "TagSpecifications": [{"ResourceType": "capacity-reservation", "Tags": tags}],
    }
    optional = {
        "AvailabilityZone": params.get("availability_zone"),
        "AvailabilityZoneId": params.get("availability_zone_id"),
        "EndDate": end,
    }
    request.update({key: value for key, value in optional.items() if value})
    request["ClientToken"] = client_token(request)
    return request


def modification(reservation_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The request of ModifyCapacityReservation."""
    request: dict[str, Any] = {"CapacityReservationId": reservation_id}
    fields = {"count": "InstanceCount", "match_criteria": "InstanceMatchCriteria"}
    request.update({field: changes[name] for name, field in fields.items() if name in changes})
    if "end_date" in changes:
        request["EndDateType"] = "limited" if changes["end_date"] else "unlimited"
        if changes["end_date"]:
            request["EndDate"] = changes["end_date"]
    return request


def predicted(params: Params, plan: Plan) -> Reservation:
    """The reservation as it will be; a new one has no id yet."""
    if plan.current:
        more = plan.modify.get("count", plan.current["count"]) - plan.current["count"]
        tags = {**plan.current["tags"], **plan.tags}
        return {**plan.current, **plan.modify, "available_count": plan.current["available_count"] + more, "tags": tags}
    empty = reservation_of({"CapacityReservationId": "", "State": "active"})
    return {
        **empty,
        **{option: params.get(option) or empty[option] for option in (*_FIXED, "count", "match_criteria")},
        "available_count": params["count"],
        "end_date": instant(params.get("end_date")),
        "tags": wanted_tags(params),
    }


def result(changed: bool, before: Any, after: Reservation, **more: Any) -> dict[str, Any]:
    """What the module returns; ``after`` is the reservation with its groups, empty where none is to be."""
    return {
        "changed": changed,
        "capacity_reservation": after,
        "capacity_reservation_id": after.get("capacity_reservation_id", ""),
        "arn": after.get("arn", ""),
        "available_count": after.get("available_count", 0),
        "resource_group_arn": "",
        "cancelled": [],
        "deleted_groups": [],
        "kept_groups": [],
        "offering": {},
        "diff": {"before": before, "after": after},
        **more,
    }


def group_name(arn: str) -> str:
    """``arn:aws:resource-groups:us-west-2:123456789012:group/pool`` -> ``pool``."""
    return arn.partition(":group/")[2]


def check_pool(name: str, types: Iterable[str]) -> None:
    """A group that exists takes capacity reservations."""
    if POOL not in types:
        raise TrainiumError(f"the resource group {name} is not of the type {POOL}; choose another resource_group")
