"""Free instances per (type, zone), on demand and in capacity reservations; stock moto has neither."""

from __future__ import annotations

from typing import Any

from sandbox.emulator.errors import refuse
from sandbox.emulator.records import RESERVATIONS, store
from sandbox.emulator.services.resource_groups import members_of
from sandbox.emulator.state import CAPACITY


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
        used = _reserved(backend, kind, zone, target.get("CapacityReservationResourceGroupArn"))[:most]
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


def _reserved(backend: Any, kind: str, zone: str, group: str | None) -> list[str | None]:
    """One entry for each place in the active reservations of a group; without one in those that serve everybody."""
    members = members_of(backend.account_id, backend.region_name, group) if group else []
    places: list[str | None] = []
    for key, record in store(backend, RESERVATIONS).items():
        if record["State"] != "active" or (record["InstanceType"], record["AvailabilityZone"]) != (kind, zone):
            continue
        if record["CapacityReservationArn"] in members or (not group and record["InstanceMatchCriteria"] == "open"):
            places += [key] * record["AvailableInstanceCount"]
    return places


def _change(backend: Any, key: tuple[str, str], reservation: str | None, by: int) -> None:
    if reservation:
        record = store(backend, RESERVATIONS).get(reservation)
        if record and record["State"] == "active":
            record["AvailableInstanceCount"] += by
    elif key in CAPACITY:
        CAPACITY[key] += by
