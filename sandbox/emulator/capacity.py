"""Free instances per (type, zone), and capacity reservations that are used up; stock moto has neither."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response
from moto.moto_api._internal import mock_random

from sandbox.emulator.errors import refuse
from sandbox.emulator.records import Record, chosen, new_tags, store
from sandbox.emulator.state import CAPACITY

RESERVATIONS = "capacity_reservations"
FIELDS = {
    "instance-type": "InstanceType",
    "state": "State",
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "instance-match-criteria": "InstanceMatchCriteria",
    "capacity-reservation-id": "CapacityReservationId",
    "tenancy": "Tenancy",
}


def take(backend: Any, kind: str, zone: str, counts: tuple[int, int], target: dict[str, Any]) -> list[str | None]:
    """Use capacity up for a launch of ``counts`` = (least, most) instances of a type in a zone.

    Args:
        target: the request's CapacityReservationTarget, may be empty.

    Returns:
        for each instance that is launched the reservation it uses, None for on-demand capacity.
    """
    least, most = counts
    wanted = target.get("CapacityReservationId")
    if wanted:
        record = store(backend, RESERVATIONS)[wanted]
        if (record["InstanceType"], record["AvailabilityZone"]) != (kind, zone):
            refuse(
                "InvalidParameterValue",
                f"The capacity reservation '{wanted}' is for {record['InstanceType']} in {record['AvailabilityZone']}.",
            )
        if record["State"] != "active" or record["AvailableInstanceCount"] < least:
            refuse(
                "ReservationCapacityExceeded",
                "The requested reservation does not have sufficient compatible and available capacity.",
            )
        used: list[str | None] = [wanted] * min(most, record["AvailableInstanceCount"])
    else:
        criteria = "targeted" if target.get("CapacityReservationResourceGroupArn") else "open"
        used = _reserved(backend, kind, zone, criteria)[:most]
        free = CAPACITY.get((kind, zone))
        used += [None] * (most - len(used) if free is None else min(most - len(used), free))
        if len(used) < least:
            refuse(
                "InsufficientInstanceCapacity",
                f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}).",
            )
    for reservation in used:
        _change(backend, (kind, zone), reservation, -1)
    return used


def give_back(instance: Any) -> None:
    """An instance that ends or stops sets its place free."""
    key = (instance.instance_type, instance.availability_zone)
    _change(instance.ec2_backend, key, getattr(instance, "capacity_reservation_id", None), 1)


def give_back_all(backend: Any, kind: str, zone: str, used: list[str | None]) -> None:
    """Undo ``take`` for a launch that failed."""
    for reservation in used:
        _change(backend, (kind, zone), reservation, 1)


def _reserved(backend: Any, kind: str, zone: str, criteria: str) -> list[str | None]:
    """One entry for each place in active reservations that serve instances without naming the reservation."""
    places: list[str | None] = []
    for key, record in store(backend, RESERVATIONS).items():
        serves = (record["InstanceType"], record["AvailabilityZone"], record["InstanceMatchCriteria"])
        if record["State"] == "active" and serves == (kind, zone, criteria):
            places += [key] * record["AvailableInstanceCount"]
    return places


def _change(backend: Any, key: tuple[str, str], reservation: str | None, by: int) -> None:
    if reservation:
        record = store(backend, RESERVATIONS).get(reservation)
        if record and record["State"] == "active":
            record["AvailableInstanceCount"] += by
    elif key in CAPACITY:
        CAPACITY[key] += by


def _find(response: EC2Response, reservation: str) -> Record:
    records = store(response.ec2_backend, RESERVATIONS)
    if reservation not in records:
        refuse("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation}' does not exist")
    return records[reservation]


def create_capacity_reservation(self: EC2Response) -> Any:
    self.error_on_dryrun()
    get, backend = self._get_param, self.ec2_backend
    count = int(get("InstanceCount"))
    key = (get("InstanceType"), get("AvailabilityZone"))
    if CAPACITY.get(key, count) < count:
        refuse("InsufficientInstanceCapacity", f"We currently do not have sufficient {key[0]} capacity in {key[1]}.")
    if key in CAPACITY:
        CAPACITY[key] -= count
    identity = f"cr-{mock_random.get_random_hex(17)}"
    record = {
        "CapacityReservationId": identity,
        "CapacityReservationArn": f"arn:aws:ec2:{self.region}:{backend.account_id}:capacity-reservation/{identity}",
        "OwnerId": backend.account_id,
        "InstanceType": key[0],
        "InstancePlatform": get("InstancePlatform"),
        "AvailabilityZone": key[1],
        "AvailabilityZoneId": next((z.zone_id for z in backend.describe_availability_zones() if z.name == key[1]), ""),
        "Tenancy": get("Tenancy", "default"),
        "TotalInstanceCount": count,
        "AvailableInstanceCount": count,
        "State": "active",
        "EndDateType": get("EndDateType", "unlimited"),
        "InstanceMatchCriteria": get("InstanceMatchCriteria", "open"),
    }
    store(backend, RESERVATIONS)[identity] = record
    backend.create_tags([identity], new_tags(self, "capacity-reservation"))
    return ActionResult({"CapacityReservation": chosen(self, RESERVATIONS, [identity], FIELDS)[0]})


def describe_capacity_reservations(self: EC2Response) -> Any:
    wanted = self._get_param("CapacityReservationIds", [])
    for reservation in wanted:
        _find(self, reservation)
    return ActionResult({"CapacityReservations": chosen(self, RESERVATIONS, wanted, FIELDS)})


def cancel_capacity_reservation(self: EC2Response) -> Any:
    self.error_on_dryrun()
    record = _find(self, self._get_param("CapacityReservationId"))
    if record["State"] == "active":
        key = (record["InstanceType"], record["AvailabilityZone"])
        if key in CAPACITY:
            CAPACITY[key] += record["AvailableInstanceCount"]
        record.update(State="cancelled", AvailableInstanceCount=0)
    return ActionResult({"Return": True})


def install() -> None:
    for action in (create_capacity_reservation, describe_capacity_reservations, cancel_capacity_reservation):
        setattr(EC2Response, action.__name__, action)
