"""Whose reservations and groups are touched, what is said of a call that fails, and when it is waited for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.capacity.test_capacity_reservation import TYPE, Reservations, later, reservations

__all__ = ["reservations"]  # a fixture
ADA, EVE = "arn:aws:iam::123456789012:user/ada", "arn:aws:iam::123456789012:user/eve"
POOL = [{"Type": "AWS::EC2::CapacityReservationPool"}]


def test_one_of_another_owner_is_refused_and_stays(reservations: Reservations) -> None:
    mine = reservations.run(owner=ADA)["capacity_reservation_id"]
    for changes in ({}, {"state": "absent"}, {"state": "absent", "name": None}):
        assert f"the reservation {mine} belongs to {ADA}, and you are {EVE}" in reservations.refused(
            owner=EVE, **changes
        )
    assert len(reservations.shown()) == 1
    reservations.run(owner=ADA, state="absent")
    # What it was of another while it lived is in nobody's way.
    assert reservations.run(owner=EVE)["capacity_reservation"]["tags"]["trainium:owner"] == EVE


def test_only_those_of_the_name_and_cluster_are_cancelled(reservations: Reservations) -> None:
    made = [
        reservations.run(name=name, cluster_name=cluster)["capacity_reservation_id"]
        for name, cluster in (("a", "c1"), ("b", "c1"), ("a", "c2"))
    ]
    gone = reservations.run(name="a", state="absent")
    assert (gone["changed"], gone["cancelled"], gone["capacity_reservation"]) == (True, made[:1], {})
    assert {item["CapacityReservationId"] for item in reservations.shown()} == set(made[1:])


def test_a_group_of_another_cluster_or_of_nobody_stays_when_it_is_left(reservations: Reservations) -> None:
    tags = {"trainium:cluster": "c2", "trainium:reservation-group": "theirs"}
    reservations.groups.create_group(Name="theirs", Configuration=POOL, Tags=tags)
    reservations.groups.create_group(Name="nobodys", Configuration=POOL, Tags={"trainium:cluster": "c1"})
    for name in ("theirs", "nobodys"):
        made = reservations.run(resource_group=name)["arn"]
    left = reservations.run(resource_group="")
    # It is not taken out of what is not ours to manage.
    assert left["capacity_reservation"]["resource_groups"] == ["nobodys", "theirs"]
    assert not left["changed"]
    gone = reservations.run(state="absent")
    assert (gone["deleted_groups"], gone["kept_groups"]) == ([], [])
    assert (reservations.members("theirs"), reservations.names()) == ([], ["theirs", "nobodys"])
    assert made


def test_a_group_with_others_in_it_is_kept_and_told(reservations: Reservations) -> None:
    mine = reservations.run(resource_group="g")
    theirs = reservations.run(name="b", cluster_name="c2", resource_group="g")
    moved = reservations.run(resource_group="h")
    assert moved["capacity_reservation"]["resource_groups"] == ["h"]
    assert reservations.names() == ["g", "h"]
    reservations.run(resource_group="g")
    arguments = {"cluster_name": "c1", "state": "absent"}
    gone = reservations.cloud.run("capacity_reservation", arguments)
    assert (gone["cancelled"], gone["kept_groups"], gone["deleted_groups"]) == (
        [mine["capacity_reservation_id"]],
        ["g"],
        [],
    )
    assert "The resource groups g hold reservations of others and stay." in str(gone["warnings"])
    assert reservations.members("g") == [theirs["arn"]]


def test_a_group_that_is_named_goes_though_its_reservation_was_cancelled_before(reservations: Reservations) -> None:
    made = reservations.run(resource_group="g")["capacity_reservation_id"]
    reservations.run(name="other", resource_group="h")
    reservations.ec2.cancel_capacity_reservation(CapacityReservationId=made)
    assert not reservations.run(state="absent")["changed"]
    gone = reservations.run(state="absent", resource_group="g")
    assert (gone["changed"], gone["cancelled"], gone["deleted_groups"]) == (True, [], ["g"])
    assert gone["diff"]["before"] == {"reservations": {}, "resource_groups": ["g"]}
    assert reservations.names() == ["h"]


def test_what_is_made_and_moved_is_shown_before_and_after(reservations: Reservations) -> None:
    foreseen = reservations.run(check=True, resource_group="g")
    assert foreseen["resource_group_arn"] == ""
    made = reservations.run(resource_group="g")
    assert made["diff"]["after"] == made["capacity_reservation"]
    assert (made["changed"], made["diff"]["before"]) == (True, {})
    checked = reservations.run(check=True, resource_group="h")
    moved = reservations.run(resource_group="h")
    for found in (checked, moved):
        assert found["diff"]["before"]["resource_groups"] == ["g"]
        assert found["diff"]["after"]["resource_groups"] == ["h"]
        assert found["changed"]
    assert moved["resource_group_arn"].endswith(":group/h")
    assert reservations.run(check=True, resource_group="h")["resource_group_arn"] == moved["resource_group_arn"]
    group = reservations.groups.get_tags(Arn=moved["resource_group_arn"])["Tags"]
    assert group == {"trainium:cluster": "c1", "trainium:reservation-group": "h"}
    # A group may take reservations from the beginning, so that launches may name it.
    shown = reservations.groups.get_group_configuration(Group="h")["GroupConfiguration"]["Configuration"]
    assert POOL[0]["Type"] in [entry["Type"] for entry in shown]


def test_a_call_that_is_refused_is_told_as_it_is(reservations: Reservations) -> None:
    api = reservations.cloud.api
    api.fault("CreateCapacityReservation", "InstanceLimitExceeded")
    said = reservations.refused(resource_group="g")
    assert said == (
        "capacity_reservation pool: AWS would not make the capacity reservation: for the test (InstanceLimitExceeded); "
        "ask AWS for a higher quota of vCPUs."
    )
    # The group that was made before is gone again.
    assert reservations.names() == reservations.shown() == []
    reservations.run()
    api.fault("ModifyCapacityReservation", "UnauthorizedOperation", status=403)
    assert "AWS would not modify the capacity reservation: for the test" in reservations.refused(count=3)
    assert "AWS would not" not in str(reservations.run(count=3))


def test_a_group_that_was_there_stays_where_nothing_can_be_reserved(reservations: Reservations) -> None:
    reservations.groups.create_group(Name="g", Configuration=POOL)
    reservations.cloud.api.capacity(TYPE, reservations.cloud.zones[0], 0)
    reservations.refused(resource_group="g")
    assert reservations.names() == ["g"]


@pytest.mark.parametrize("how", ["create", "modify"])
def test_missing_capacity_is_told_by_what_was_asked_for(reservations: Reservations, how: str) -> None:
    zone = reservations.cloud.zones[0]
    if how == "modify":
        reservations.run()
    reservations.cloud.api.capacity(TYPE, zone, 0)
    said = reservations.refused(count=9)
    assert f"there is no capacity for 9 x {TYPE} in {zone}: " in said
    assert said.endswith(
        "(InsufficientInstanceCapacity); nothing was reserved, try another zone, a lower count, or later."
    )


def test_a_type_that_the_zone_does_not_have_is_told_with_where_to_look(reservations: Reservations) -> None:
    zones = reservations.ec2.describe_availability_zones()["AvailabilityZones"]
    other = next(zone["ZoneId"] for zone in zones if zone["ZoneName"] not in reservations.cloud.zones)
    said = reservations.refused(availability_zone=None, availability_zone_id=other)
    assert f"there is no capacity for 2 x {TYPE} in {other}: " in said
    assert said.endswith(
        "(Unsupported); nothing was reserved, neuron_capacity_info tells the zones that offer the type."
    )


def test_check_mode_says_what_ec2_would_refuse(reservations: Reservations) -> None:
    reservations.cloud.api.fault("CreateCapacityReservation", "UnauthorizedOperation", status=403)
    assert "AWS would not try the capacity reservation" in reservations.refused(check=True)
    reservations.run()
    reservations.cloud.api.clear_calls()
    # What is only changed is not tried: EC2 would want a reservation of its own for it.
    assert reservations.run(check=True, count=3)["changed"]
    assert reservations.cloud.api.calls("CreateCapacityReservation") == []


@pytest.mark.parametrize("wait", [True, False])
def test_one_that_is_not_seen_yet_is_waited_for_or_not(reservations: Reservations, wait: bool) -> None:
    api = reservations.cloud.api
    api.fault("DescribeCapacityReservations", "InvalidCapacityReservationId.NotFound", skip=1, times=2)
    found: dict[str, Any] = reservations.run(wait=wait, end_date=later(days=2))
    assert found["capacity_reservation"]["state"] == "active"
    looks = [call for call in api.calls("DescribeCapacityReservations") if "Filter.1.Name" not in call["parameters"]]
    assert (len(looks) > 2) == wait


def test_one_that_never_shows_is_told_when_the_time_is_over(reservations: Reservations) -> None:
    api = reservations.cloud.api
    api.fault("DescribeCapacityReservations", "InvalidCapacityReservationId.NotFound", skip=1, times=99)
    said = reservations.refused(wait_timeout=1)
    (made,) = [item for item in reservations.cloud.api.calls("CreateCapacityReservation") if item["write"]]
    assert made
    assert "(not visible yet) is not active after 1 s; run again, or raise wait_timeout" in said
