"""capacity_reservation reserves once, modifies what EC2 lets modify, groups and ungroups, and cancels."""

from __future__ import annotations

import signal
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

Account = Any
Result = dict[str, Any]
TYPE = "trn1.32xlarge"


class Reservations:
    """The module with its usual arguments, and what the API shows."""

    def __init__(self, cloud: Account) -> None:
        self.cloud, self.ec2 = cloud, cloud.ec2
        self.groups = cloud.client("resource-groups")

    def arguments(self, **changes: Any) -> dict[str, Any]:
        base = {"name": "pool", "cluster_name": "c1", "instance_type": TYPE, "count": 2}
        full = {**base, "availability_zone": self.cloud.zones[0], **changes}
        return {key: value for key, value in full.items() if value is not None}

    def run(self, check: bool = False, **changes: Any) -> Result:
        result: Result = self.cloud.run("capacity_reservation", self.arguments(**changes), check)
        assert not result.get("failed"), result.get("msg")
        return result

    def refused(self, check: bool = False, **changes: Any) -> str:
        result = self.cloud.run("capacity_reservation", self.arguments(**changes), check)
        assert result.get("failed"), result
        return str(result["msg"])

    def shown(self, *states: str) -> list[Result]:
        found: list[Result] = self.ec2.describe_capacity_reservations()["CapacityReservations"]
        return [item for item in found if item["State"] in (states or ("active",))]

    def members(self, name: str) -> list[str]:
        return [item["ResourceArn"] for item in self.groups.list_group_resources(Group=name)["ResourceIdentifiers"]]

    def names(self) -> list[str]:
        return [item["GroupName"] for item in self.groups.list_groups()["GroupIdentifiers"]]


@pytest.fixture
def reservations(cloud: Account) -> Reservations:
    return Reservations(cloud)


def later(**distance: int) -> str:
    return (datetime.now(timezone.utc) + timedelta(**distance)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_made_as_asked_and_once(reservations: Reservations) -> None:
    first = reservations.run(tags={"team": "speech"})
    assert first["changed"]
    (made,) = reservations.shown()
    assert (made["InstanceType"], made["TotalInstanceCount"], made["InstanceMatchCriteria"]) == (TYPE, 2, "targeted")
    assert (made["InstancePlatform"], made["EndDateType"]) == ("Linux/UNIX", "unlimited")
    assert {tag["Key"]: tag["Value"] for tag in made["Tags"]} == {
        "Name": "pool",
        "team": "speech",
        "trainium:cluster": "c1",
        "trainium:reservation": "pool",
        "trainium:generation": "1",
    }
    assert first["capacity_reservation_id"] == made["CapacityReservationId"]
    assert (first["arn"], first["available_count"]) == (made["CapacityReservationArn"], 2)
    reservations.cloud.api.clear_calls()
    second = reservations.run(tags={"team": "speech"})
    assert not second["changed"]
    assert second["capacity_reservation"] == first["capacity_reservation"]
    assert reservations.cloud.api.writes() == []
    assert len(reservations.cloud.api.calls()) == 2


def test_by_the_zone_id(reservations: Reservations) -> None:
    zones = reservations.ec2.describe_availability_zones()["AvailabilityZones"]
    identity = next(zone["ZoneId"] for zone in zones if zone["ZoneName"] == reservations.cloud.zones[0])
    result = reservations.run(availability_zone=None, availability_zone_id=identity)
    assert result["capacity_reservation"]["availability_zone"] == reservations.cloud.zones[0]
    assert not reservations.run(availability_zone=None, availability_zone_id=identity)["changed"]


def test_killed_after_the_request(reservations: Reservations) -> None:
    """What was reserved is not visible by its tags yet, so that only the token says that it is there."""
    process = reservations.cloud.start("capacity_reservation", reservations.arguments())
    deadline = time.monotonic() + 300
    while not reservations.cloud.api.calls("CreateCapacityReservation"):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (made,) = reservations.shown()
    reservations.ec2.delete_tags(Resources=[made["CapacityReservationId"]], Tags=[{"Key": "trainium:cluster"}])
    result = reservations.run()
    assert result["capacity_reservation_id"] == made["CapacityReservationId"]
    assert len(reservations.shown()) == 1


def test_a_lost_answer_reserves_once(reservations: Reservations) -> None:
    reservations.cloud.api.fault("CreateCapacityReservation", "RequestLimitExceeded", after=True, status=503)
    reservations.run()
    assert len(reservations.shown()) == 1


def test_made_again_after_it_was_cancelled(reservations: Reservations) -> None:
    first = reservations.run()
    reservations.run(state="absent")
    second = reservations.run()
    assert second["capacity_reservation_id"] != first["capacity_reservation_id"]
    assert len(reservations.shown()) == 1


def test_a_token_that_EC2_remembers_longer_than_it_shows(reservations: Reservations) -> None:  # noqa: N802
    first = reservations.run()
    reservations.run(state="absent")
    reservations.ec2.delete_tags(
        Resources=[first["capacity_reservation_id"]], Tags=[{"Key": "trainium:cluster"}, {"Key": "Name"}]
    )
    assert reservations.run()["capacity_reservation_id"] != first["capacity_reservation_id"]
    assert len(reservations.shown()) == 1


def test_count_end_and_tags_are_modified(reservations: Reservations) -> None:
    first = reservations.run()
    end = later(days=3)
    change: dict[str, Any] = {"count": 5, "end_date": end, "tags": {"team": "text"}}
    checked = reservations.run(check=True, **change)
    assert checked["changed"]
    assert [item["TotalInstanceCount"] for item in reservations.shown()] == [2]
    result = reservations.run(**change)
    assert result["capacity_reservation_id"] == first["capacity_reservation_id"]
    (made,) = reservations.shown()
    assert (made["TotalInstanceCount"], made["EndDateType"]) == (5, "limited")
    assert result["capacity_reservation"] == checked["capacity_reservation"]
    assert result["diff"] == checked["diff"]
    assert result["diff"]["before"]["count"] == 2
    assert not reservations.run(**change)["changed"]
    assert reservations.run(count=1, tags={"team": "text"})["capacity_reservation"]["end_date"] == ""
    assert len(reservations.cloud.api.calls("ModifyCapacityReservation")) == 2


def test_check_mode_makes_nothing(reservations: Reservations) -> None:
    result = reservations.run(check=True, resource_group="g")
    assert result["changed"]
    assert result["capacity_reservation"]["count"] == 2
    assert result["capacity_reservation"]["resource_groups"] == ["g"]
    assert result["diff"]["before"] == {}
    assert reservations.shown() == []
    assert reservations.cloud.api.writes() == []
    assert [call["parameters"]["DryRun"] for call in reservations.cloud.api.calls("CreateCapacityReservation")]


def test_grouped_and_ungrouped(reservations: Reservations) -> None:
    first = reservations.run(resource_group="g1")
    assert first["resource_group_arn"].endswith(":group/g1")
    assert reservations.members("g1") == [first["arn"]]
    assert first["capacity_reservation"]["resource_groups"] == ["g1"]
    reservations.cloud.api.clear_calls()
    assert not reservations.run(resource_group="g1")["changed"]
    assert reservations.cloud.api.writes() == []
    # Not given leaves it where it is.
    assert reservations.run()["capacity_reservation"]["resource_groups"] == ["g1"]
    moved = reservations.run(resource_group="g2")
    assert moved["capacity_reservation"]["resource_groups"] == ["g2"]
    assert reservations.names() == ["g2"]
    out = reservations.run(resource_group="")
    assert out["capacity_reservation"]["resource_groups"] == []
    assert reservations.names() == []
    assert len(reservations.shown()) == 1


def test_two_reservations_in_a_group_that_goes_with_the_last(reservations: Reservations) -> None:
    one = reservations.run(name="a", resource_group="g")
    two = reservations.run(name="b", resource_group="g", count=1)
    assert reservations.members("g") == [one["arn"], two["arn"]]
    first = reservations.run(name="a", state="absent")
    assert (first["cancelled"], first["deleted_groups"]) == ([one["capacity_reservation_id"]], [])
    assert reservations.members("g") == [two["arn"]]
    assert reservations.run(name="b", state="absent")["deleted_groups"] == ["g"]
    assert reservations.names() == []
    assert reservations.shown() == []


def test_somebody_elses_group_is_used_and_stays(reservations: Reservations) -> None:
    pool = [{"Type": "AWS::EC2::CapacityReservationPool"}]
    reservations.groups.create_group(Name="theirs", Configuration=pool)
    result = reservations.run(resource_group="theirs")
    assert reservations.members("theirs") == [result["arn"]]
    reservations.run(resource_group="theirs", state="absent")
    assert reservations.names() == ["theirs"]
    assert reservations.members("theirs") == []


def test_a_group_of_another_kind_is_refused_before_it_costs(reservations: Reservations) -> None:
    query = '{"ResourceTypeFilters": ["AWS::AllSupported"], "TagFilters": [{"Key": "a", "Values": ["b"]}]}'
    reservations.groups.create_group(Name="query", ResourceQuery={"Type": "TAG_FILTERS_1_0", "Query": query})
    assert "choose another resource_group" in reservations.refused(resource_group="query")
    assert reservations.shown() == []


def test_no_capacity(reservations: Reservations) -> None:
    zone = reservations.cloud.zones[0]
    reservations.cloud.api.capacity(TYPE, zone, 1)
    text = reservations.refused(resource_group="g")
    assert text.startswith(f"capacity_reservation pool: there is no capacity for 2 x {TYPE} in {zone}: ")
    assert "nothing was reserved, try another zone" in text
    assert reservations.names() == []
    assert len(reservations.cloud.api.calls("CreateCapacityReservation")) == 1


def test_a_zone_that_does_not_offer_the_type(reservations: Reservations) -> None:
    zones = [zone["ZoneName"] for zone in reservations.ec2.describe_availability_zones()["AvailabilityZones"]]
    zone = next(name for name in zones if name not in reservations.cloud.zones)
    assert "neuron_capacity_info" in reservations.refused(availability_zone=zone)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"instance_type": "trn1.2xlarge"},
            "trn1.32xlarge, not trn1.2xlarge, which EC2 cannot change",
        ),
        ({"tenancy": "dedicated"}, "has tenancy default, not dedicated"),
        ({"ebs_optimized": True}, "has ebs_optimized false, not true"),
    ],
)
def test_what_EC2_cannot_change_is_refused(reservations: Reservations, change: Result, words: str) -> None:  # noqa: N802
    reservations.run()
    reservations.cloud.api.clear_calls()
    assert words in reservations.refused(**change)
    assert reservations.cloud.api.writes() == []


def test_a_reservation_in_use(reservations: Reservations) -> None:
    """Its nodes run in it; it does not get smaller than they are many, and they outlive it."""
    cloud, result = reservations.cloud, reservations.run()
    cloud.api.capacity(TYPE, cloud.zones[0], 0)
    cloud.efa(subnets=cloud.subnets[:1], capacity_reservation={"id": result["capacity_reservation_id"]}, wait=False)
    used = reservations.run()
    assert (used["available_count"], used["changed"]) == (0, False)
    assert "has 2 instances in it, more than count=1" in reservations.refused(count=1)
    assert "match_criteria only changes without" in reservations.refused(match_criteria="open")
    reservations.run(state="absent")
    assert len(cloud.instances("pending", "running")) == 2


def test_nodes_run_in_the_reservations_of_a_group(reservations: Reservations) -> None:
    cloud = reservations.cloud
    mine = reservations.run(resource_group="g")
    reservations.run(name="other")
    cloud.efa(subnets=cloud.subnets[:1], capacity_reservation={"resource_group_arn": mine["resource_group_arn"]})
    assert reservations.run()["available_count"] == 0
    assert reservations.run(name="other")["available_count"] == 2


def test_absent_twice(reservations: Reservations) -> None:
    made = reservations.run(resource_group="g")
    checked = reservations.run(check=True, state="absent")
    assert (checked["cancelled"], checked["deleted_groups"]) == ([made["capacity_reservation_id"]], ["g"])
    assert len(reservations.shown()) == 1
    gone = reservations.run(state="absent")
    assert gone["diff"] == checked["diff"]
    assert list(gone["diff"]["before"]["reservations"]) == [made["capacity_reservation_id"]]
    reservations.cloud.api.clear_calls()
    assert not reservations.run(state="absent")["changed"]
    assert len(reservations.cloud.api.calls()) == 1


def test_all_of_a_cluster(reservations: Reservations) -> None:
    for name in ("a", "b"):
        reservations.run(name=name, resource_group=f"g-{name}")
    other = reservations.run(name="a", cluster_name="c2", resource_group="g-other")
    # What is left behind when a run is killed between the two.
    reservations.ec2.cancel_capacity_reservation(CapacityReservationId=reservations.shown()[0]["CapacityReservationId"])
    arguments = {"cluster_name": "c1", "state": "absent"}
    result = reservations.cloud.run("capacity_reservation", arguments)
    assert (len(result["cancelled"]), result["deleted_groups"]) == (1, ["g-a", "g-b"])
    assert [item["CapacityReservationArn"] for item in reservations.shown()] == [other["arn"]]
    assert reservations.names() == ["g-other"]
    assert not reservations.cloud.run("capacity_reservation", arguments)["changed"]


def test_many_pages(reservations: Reservations) -> None:
    """The filters are EC2's, and what others reserved costs no call."""
    zone = reservations.cloud.zones[0]
    for _number in range(3):
        reservations.ec2.create_capacity_reservation(
            InstanceType=TYPE,
            InstancePlatform="Linux/UNIX",
            AvailabilityZone=zone,
            InstanceCount=1,
        )
    pages = reservations.ec2.get_paginator("describe_capacity_reservations").paginate(PaginationConfig={"PageSize": 2})
    assert [len(page["CapacityReservations"]) for page in pages] == [2, 1]
    reservations.run()
    assert len(reservations.shown()) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": 0}, "count is 0; give 1 or more"),
        ({"instance_type": None}, "instance_type is missing"),
        ({"availability_zone": None}, "give either availability_zone or availability_zone_id"),
        ({"availability_zone_id": "usw2-az4"}, "give either availability_zone or availability_zone_id"),
        ({"availability_zone": "usw2-az4"}, "which is no zone such as us-west-2d"),
        ({"end_date": "tomorrow"}, "which is no date such as"),
        ({"end_date": "2020-01-01T00:00:00Z"}, "has passed"),
        ({"tags": {"trainium:cluster": "x"}}, "which is reserved"),
        ({"resource_group": "a b"}, "resource_group is 'a b'"),
        ({"name": None, "cluster_name": None, "state": "absent"}, "give one of them to say what to cancel"),
    ],
)
def test_refused_without_a_call(reservations: Reservations, change: Result, words: str) -> None:
    assert words in reservations.refused(**change)
    assert reservations.cloud.api.calls() == []


def test_a_quota_without_room_for_the_nodes(cloud: Account) -> None:
    cloud.api.control("POST", "quotas", {"code": "L-2C3B7624", "value": 128})
    asked = {"instance_type": "trn1.32xlarge"}
    assert not cloud.run("neuron_capacity_info", {**asked, "count": 1}).get("failed")
    assert not cloud.run("neuron_capacity_info", asked).get("failed")
    said = cloud.run("neuron_capacity_info", {**asked, "count": 2})["msg"]
    assert said.startswith(
        "neuron_capacity_info: 2 x trn1.32xlarge need 256 vCPUs, and the quota 'Running On-Demand Trn"
    )
