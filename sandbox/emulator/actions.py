"""EC2 actions that stock moto lacks: placement groups and capacity reservations, tagged and filterable."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.responses import EC2Response
from moto.moto_api._internal import mock_random

from sandbox.emulator.errors import refuse

Record = dict[str, Any]


def _store(response: EC2Response, name: str) -> dict[str, Record]:
    records: dict[str, Record] = response.ec2_backend.__dict__.setdefault(name, {})
    return records


def _tags(response: EC2Response, kind: str) -> list[dict[str, str]]:
    tags = response._parse_tag_specification().get(kind, {})
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _matches(response: EC2Response, record: Record, resource_id: str, fields: dict[str, str]) -> bool:
    """Whether a record passes the request's filters; tags made later with CreateTags count as well."""
    tags = {tag["Key"]: tag["Value"] for tag in record["Tags"]}
    tags.update(response.ec2_backend.tags.get(resource_id, {}))
    record["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
    for name, values in (response._filters_from_querystring() or {}).items():
        if name == "tag-key":
            found = any(value in tags for value in values)
        elif name.startswith("tag:"):
            found = tags.get(name[4:]) in values
        elif name in fields:
            found = record[fields[name]] in values
        else:
            refuse("InvalidParameterValue", f"The filter '{name}' is invalid")
        if not found:
            return False
    return True


def create_placement_group(self: EC2Response) -> Any:
    self.error_on_dryrun()
    groups, name = _store(self, "placement_groups"), self._get_param("GroupName")
    if name in groups:
        refuse("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    groups[name] = {
        "GroupName": name,
        "GroupId": f"pg-{mock_random.get_random_hex(17)}",
        "State": "available",
        "Strategy": self._get_param("Strategy", "cluster"),
        "PartitionCount": self._get_param("PartitionCount"),
        "Tags": _tags(self, "placement-group"),
    }
    return ActionResult({"PlacementGroup": groups[name]})


def describe_placement_groups(self: EC2Response) -> Any:
    groups = _store(self, "placement_groups")
    names = self._get_param("GroupNames", [])
    for name in names:
        if name not in groups:
            refuse("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    fields = {"group-name": "GroupName", "group-id": "GroupId", "state": "State", "strategy": "Strategy"}
    chosen = [
        group
        for name, group in groups.items()
        if (not names or name in names) and _matches(self, group, group["GroupId"], fields)
    ]
    return ActionResult({"PlacementGroups": chosen})


def delete_placement_group(self: EC2Response) -> Any:
    self.error_on_dryrun()
    groups, name = _store(self, "placement_groups"), self._get_param("GroupName")
    if name not in groups:
        refuse("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    for reservation in self.ec2_backend.reservations.values():
        for instance in reservation.instances:
            if instance._placement.group_name == name and instance._state.name != "terminated":
                refuse("InvalidPlacementGroup.InUse", f"The Placement Group '{name}' is in use and may not be deleted.")
    del groups[name]
    return EmptyResult()


def create_capacity_reservation(self: EC2Response) -> Any:
    self.error_on_dryrun()
    get = self._get_param
    count = int(get("InstanceCount"))
    record = {
        "CapacityReservationId": f"cr-{mock_random.get_random_hex(17)}",
        "InstanceType": get("InstanceType"),
        "InstancePlatform": get("InstancePlatform"),
        "AvailabilityZone": get("AvailabilityZone"),
        "Tenancy": get("Tenancy", "default"),
        "TotalInstanceCount": count,
        "AvailableInstanceCount": count,
        "State": "active",
        "EndDateType": get("EndDateType", "unlimited"),
        "InstanceMatchCriteria": get("InstanceMatchCriteria", "open"),
        "Tags": _tags(self, "capacity-reservation"),
    }
    _store(self, "capacity_reservations")[record["CapacityReservationId"]] = record
    return ActionResult({"CapacityReservation": record})


def describe_capacity_reservations(self: EC2Response) -> Any:
    records = _store(self, "capacity_reservations")
    wanted = self._get_param("CapacityReservationIds", [])
    for reservation in wanted:
        if reservation not in records:
            refuse("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation}' does not exist")
    fields = {"instance-type": "InstanceType", "state": "State", "availability-zone": "AvailabilityZone"}
    chosen = [
        record
        for key, record in records.items()
        if (not wanted or key in wanted) and _matches(self, record, key, fields)
    ]
    return ActionResult({"CapacityReservations": chosen})


def cancel_capacity_reservation(self: EC2Response) -> Any:
    self.error_on_dryrun()
    records, wanted = _store(self, "capacity_reservations"), self._get_param("CapacityReservationId")
    if wanted not in records:
        refuse("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{wanted}' does not exist")
    records[wanted].update(State="cancelled", AvailableInstanceCount=0)
    return ActionResult({"Return": True})


def _returning_true(name: str) -> None:
    """Stock moto answers this action without the field that clients look at."""
    stock = getattr(EC2Response, name)

    def action(self: EC2Response) -> Any:
        stock(self)
        return ActionResult({"Return": True})

    setattr(EC2Response, name, action)


def install() -> None:
    for name in ("ingress", "egress"):
        _returning_true(f"update_security_group_rule_descriptions_{name}")
    for action in (
        create_placement_group,
        describe_placement_groups,
        delete_placement_group,
        create_capacity_reservation,
        describe_capacity_reservations,
        cancel_capacity_reservation,
    ):
        setattr(EC2Response, action.__name__, action)
