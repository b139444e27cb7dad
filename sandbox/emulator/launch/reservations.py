"""Capacity reservations: make once for a token, show by filter and page, modify, cancel; stock moto has none of it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response
from moto.moto_api._internal import mock_random

from sandbox.emulator.errors import refuse
from sandbox.emulator.launch.checks import offering_zones
from sandbox.emulator.records import RESERVATIONS, Record, chosen, new_tags, store
from sandbox.emulator.services import resource_groups
from sandbox.emulator.state import CAPACITY

TOKENS = "capacity_reservation_tokens"
FIELDS = {
    "instance-type": "InstanceType",
    "state": "State",
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "instance-match-criteria": "InstanceMatchCriteria",
    "capacity-reservation-id": "CapacityReservationId",
    "tenancy": "Tenancy",
}
PAGE = 1000


def _key(record: Record) -> tuple[str, str]:
    return record["InstanceType"], record["AvailabilityZone"]


def _date(text: Any) -> datetime | None:
    """A date of a request, in UTC."""
    if not text:
        return None
    date = text if isinstance(text, datetime) else datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    return date if date.tzinfo else date.replace(tzinfo=timezone.utc)


BLOCK_TAG = "aws:ec2capacityreservation:capacityReservationType"


def _release(record: Record, state: str) -> None:
    """What the reservation does not use is free again."""
    if _key(record) in CAPACITY:
        CAPACITY[_key(record)] += record["AvailableInstanceCount"]
    record.update(State=state, AvailableInstanceCount=0)


def _all(response: EC2Response) -> dict[str, Record]:
    """Every reservation; a block whose start has come is active, and what has come to its end has expired."""
    records = store(response.ec2_backend, RESERVATIONS)
    now = datetime.now(timezone.utc)
    for identity, record in records.items():
        if record["State"] == "scheduled" and record["StartDate"] <= now:
            count = int(response.ec2_backend.tags[identity]["aws:ec2capacityreservation:incrementalRequestedQuantity"])
            record.update(State="active", TotalInstanceCount=count, AvailableInstanceCount=count)
    for record in records.values():
        if record["State"] == "active" and record.get("EndDate") and record["EndDate"] <= now:
            _release(record, "expired")
    return records


def _find(response: EC2Response, reservation: str) -> Record:
    records = _all(response)
    if reservation not in records:
        refuse("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation}' does not exist")
    return records[reservation]


def _place(response: EC2Response) -> str:
    """The name of the zone that the request names in one of the two ways."""
    name, identity = response._get_param("AvailabilityZone"), response._get_param("AvailabilityZoneId")
    zones = [(zone.name, zone.zone_id) for zone in response.ec2_backend.describe_availability_zones()]
    found = [zone for zone in zones if zone[0] == name or zone[1] == identity]
    if len(found) != 1:
        refuse("InvalidParameterValue", f"The zone '{name or identity}' is invalid")
    return found[0][0]


def add(response: EC2Response, kind: str, zone: str, **fields: Any) -> str:
    """The id of a new reservation; it has no tags yet."""
    backend, identity = response.ec2_backend, f"cr-{mock_random.get_random_hex(17)}"
    zones = {one.name: one.zone_id for one in backend.describe_availability_zones()}
    store(backend, RESERVATIONS)[identity] = {
        "CapacityReservationId": identity,
        "CapacityReservationArn": f"arn:aws:ec2:{response.region}:{backend.account_id}:capacity-reservation/{identity}",
        "OwnerId": backend.account_id,
        "InstanceType": kind,
        "AvailabilityZone": zone,
        "AvailabilityZoneId": zones[zone],
        "Tenancy": "default",
        "TotalInstanceCount": 0,
        "AvailableInstanceCount": 0,
        "EbsOptimized": False,
        "State": "active",
        "ReservationType": "default",
        "CreateDate": datetime.now(timezone.utc),
        **fields,
    }
    return identity


def _changeable(record: Record) -> None:
    """ "You can't modify or cancel a Capacity Block" (CancelCapacityReservation)."""
    if record["ReservationType"] == "capacity-block":
        refuse("UnsupportedOperation", "A Capacity Block cannot be modified or cancelled.")


def _end(response: EC2Response) -> Record:
    """The end that the request asks for; a limited one has a date in the future."""
    kind, date = response._get_param("EndDateType"), _date(response._get_param("EndDate"))
    if (kind == "limited") != bool(date):
        refuse("InvalidParameterCombination", "An EndDate is for the EndDateType limited, and only for it.")
    if date and date <= datetime.now(timezone.utc):
        refuse("InvalidParameterValue", "The EndDate lies in the past.")
    return {"EndDateType": kind, "EndDate": date} if kind else {}


def create_capacity_reservation(self: EC2Response) -> Any:
    """Capacity that is missing is a server error, as EC2 has it; the same token makes no second reservation."""
    self.error_on_dryrun()
    get, backend = self._get_param, self.ec2_backend
    _all(self)
    token, tokens = get("ClientToken"), store(backend, TOKENS)
    asked = {key: value for key, value in self.querystring.items() if key != "ClientToken"}
    if token in tokens:
        if tokens[token]["asked"] != asked:
            refuse("IdempotentParameterMismatch", "The client token was used with other parameters.")
        return shown(self, tokens[token]["id"])
    count, kind, zone = int(get("InstanceCount")), get("InstanceType"), _place(self)
    end = _end(self) or {"EndDateType": "unlimited"}
    if zone not in offering_zones(self.region, kind):
        refuse("Unsupported", f"The instance type '{kind}' is not supported in {zone}.")
    if CAPACITY.get((kind, zone), count) < count:
        refuse("InsufficientInstanceCapacity", f"We currently do not have sufficient {kind} capacity in {zone}.")
    if (kind, zone) in CAPACITY:
        CAPACITY[(kind, zone)] -= count
    tags = new_tags(self, "capacity-reservation")
    identity = add(
        self,
        kind,
        zone,
        InstancePlatform=get("InstancePlatform"),
        Tenancy=get("Tenancy", "default"),
        TotalInstanceCount=count,
        AvailableInstanceCount=count,
        EbsOptimized=str(get("EbsOptimized", "false")).lower() == "true",
        InstanceMatchCriteria=get("InstanceMatchCriteria", "open"),
        # EC2 gives this tag to a Capacity Block that was bought; here it makes one that has begun.
        ReservationType=tags.get(BLOCK_TAG, "default"),
        **({"PlacementGroupArn": get("PlacementGroupArn")} if get("PlacementGroupArn") else {}),
        **end,
    )
    if token:
        tokens[token] = {"asked": asked, "id": identity}
    backend.create_tags([identity], tags)
    return shown(self, identity)


def shown(response: EC2Response, identity: str) -> Any:
    record, tags = store(response.ec2_backend, RESERVATIONS)[identity], response.ec2_backend.tags.get(identity, {})
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return ActionResult({"CapacityReservation": {**record, "Tags": listed}})


def describe_capacity_reservations(self: EC2Response) -> Any:
    wanted = self._get_param("CapacityReservationIds", [])
    for reservation in wanted:
        _find(self, reservation)
    _all(self)
    found = chosen(self, RESERVATIONS, wanted, FIELDS)
    first = int(self._get_param("NextToken") or 0)
    last = first + int(self._get_param("MaxResults") or PAGE)
    page: Record = {"CapacityReservations": found[first:last]}
    if last < len(found):
        page["NextToken"] = str(last)
    return ActionResult(page)


def modify_capacity_reservation(self: EC2Response) -> Any:
    self.error_on_dryrun()
    get, record = self._get_param, _find(self, self._get_param("CapacityReservationId"))
    identity = record["CapacityReservationId"]
    _changeable(record)
    if record["State"] != "active":
        refuse("InvalidCapacityReservationState", f"The capacity reservation '{identity}' is {record['State']}.")
    used = record["TotalInstanceCount"] - record["AvailableInstanceCount"]
    criteria = get("InstanceMatchCriteria") or record["InstanceMatchCriteria"]
    if criteria != record["InstanceMatchCriteria"] and used:
        refuse("InvalidCapacityReservationState", f"The capacity reservation '{identity}' is in use.")
    count = int(get("InstanceCount") or record["TotalInstanceCount"])
    more = count - record["TotalInstanceCount"]
    if count < used:
        refuse("InvalidParameterValue", f"{used} instances run in the capacity reservation '{identity}'.")
    if CAPACITY.get(_key(record), more) < more:
        refuse(
            "InsufficientInstanceCapacity", f"We currently do not have sufficient {record['InstanceType']} capacity."
        )
    end = _end(self)
    if _key(record) in CAPACITY:
        CAPACITY[_key(record)] -= more
    record.update(
        TotalInstanceCount=count,
        AvailableInstanceCount=record["AvailableInstanceCount"] + more,
        InstanceMatchCriteria=criteria,
        **end,
    )
    return ActionResult({"Return": True})


def cancel_capacity_reservation(self: EC2Response) -> Any:
    self.error_on_dryrun()
    record = _find(self, self._get_param("CapacityReservationId"))
    _changeable(record)
    if record["State"] == "active":
        _release(record, "cancelled")
    return ActionResult({"Return": True})


def get_groups_for_capacity_reservation(self: EC2Response) -> Any:
    record = _find(self, self._get_param("CapacityReservationId"))
    groups = resource_groups.groups_of(self.current_account, self.region, record["CapacityReservationArn"])
    found = [{"GroupArn": arn, "OwnerId": record["OwnerId"]} for arn in groups]
    return ActionResult({"CapacityReservationGroups": found})


def install() -> None:
    for action in (
        create_capacity_reservation,
        describe_capacity_reservations,
        modify_capacity_reservation,
        cancel_capacity_reservation,
        get_groups_for_capacity_reservation,
    ):
        setattr(EC2Response, action.__name__, action)
