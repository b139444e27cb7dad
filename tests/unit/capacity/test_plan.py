"""What to do about a capacity reservation."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import plan as reservations
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
LATER = "2026-12-31T23:59:59Z"
PARAMS: dict[str, Any] = {
    "name": "pool",
    "cluster_name": "c1",
    "state": "present",
    "instance_type": "trn1.32xlarge",
    "count": 2,
    "availability_zone": "us-west-2d",
    "availability_zone_id": None,
    "platform": "Linux/UNIX",
    "tenancy": "default",
    "ebs_optimized": False,
    "match_criteria": "targeted",
    "end_date": None,
    "resource_group": None,
    "wait_timeout": 300,
    "tags": {},
}


def item(**changes: Any) -> dict[str, Any]:
    """A reservation as EC2 describes it, in line with PARAMS."""
    tags = {**reservations.wanted_tags(PARAMS), "trainium:generation": "1"}
    return {
        "CapacityReservationId": "cr-1",
        "CapacityReservationArn": "arn:aws:ec2:us-west-2:123456789012:capacity-reservation/cr-1",
        "State": "active",
        "InstanceType": "trn1.32xlarge",
        "AvailabilityZone": "us-west-2d",
        "AvailabilityZoneId": "usw2-az4",
        "TotalInstanceCount": 2,
        "AvailableInstanceCount": 2,
        "InstancePlatform": "Linux/UNIX",
        "Tenancy": "default",
        "EbsOptimized": False,
        "InstanceMatchCriteria": "targeted",
        "EndDateType": "unlimited",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        **changes,
    }


def plan(*found: dict[str, Any], **changes: Any) -> reservations.Plan:
    return reservations.plan_reservation([reservations.reservation_of(one) for one in found], {**PARAMS, **changes})


def test_as_it_should_be() -> None:
    assert not plan(item()).changes


def test_none_yet_or_only_dead_ones() -> None:
    assert plan().create
    assert plan(item(State="cancelled"), item(State="expired"), item(State="failed")).create


def test_absent_cancels_all_that_live() -> None:
    found = [item(), item(CapacityReservationId="cr-2", State="pending"), item(State="cancelled")]
    assert [one["capacity_reservation_id"] for one in plan(*found, state="absent").cancel] == ["cr-1", "cr-2"]


def test_two_of_one_name() -> None:
    with pytest.raises(TrainiumError, match="2 reservations have this name: cr-1, cr-2"):
        plan(item(), item(CapacityReservationId="cr-2"))


def test_the_end_is_the_same_in_every_time_zone() -> None:
    found = item(EndDateType="limited", EndDate=datetime(2026, 12, 31, 23, 59, 59, tzinfo=timezone.utc))
    assert not plan(found, end_date="2027-01-01T01:59:59+02:00").changes
    assert not plan(found, end_date="2026-12-31T23:59:59").changes
    assert plan(found).modify == {"end_date": ""}
    assert reservations.modification("cr-1", {"end_date": ""})["EndDateType"] == "unlimited"
    wanted = reservations.modification("cr-1", {"end_date": LATER})
    assert (wanted["EndDateType"], wanted["EndDate"]) == ("limited", LATER)


def test_only_active_ones_are_modified() -> None:
    assert not plan(item(State="pending")).changes
    with pytest.raises(TrainiumError, match="cr-1 is pending, and EC2 only modifies active ones"):
        plan(item(State="pending"), count=3)


def test_an_unused_one_changes_its_criteria() -> None:
    assert plan(item(), match_criteria="open").modify == {"match_criteria": "open"}
    with pytest.raises(TrainiumError, match="1 instances in it, and match_criteria"):
        plan(item(AvailableInstanceCount=1), match_criteria="open")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("instance_type", "trn2.48xlarge"),
        ("availability_zone", "us-west-2b"),
        ("availability_zone_id", "usw2-az1"),
        ("platform", "Windows"),
        ("tenancy", "dedicated"),
        ("ebs_optimized", True),
    ],
)
def test_what_cannot_change(option: str, value: Any) -> None:
    with pytest.raises(TrainiumError, match=f"has {option} .*cannot change"):
        plan(item(), **{option: value})


def test_tags_are_added_and_never_removed() -> None:
    found = item()
    found["Tags"].append({"Key": "owner", "Value": "me"})
    assert plan(found, tags={"team": "speech"}).tags == {"team": "speech"}
    assert plan(found, tags={"Name": "other"}).tags == {"Name": "other"}


@given(total=st.integers(1, 64), used=st.integers(0, 64), wanted=st.integers(1, 64))
def test_the_plan_leads_to_what_is_wanted_or_is_refused(total: int, used: int, wanted: int) -> None:
    used = min(used, total)
    found = item(TotalInstanceCount=total, AvailableInstanceCount=total - used)
    if wanted < used:
        with pytest.raises(TrainiumError, match=f"has {used} instances in it, more than count={wanted};"):
            plan(found, count=wanted)
        return
    params = {**PARAMS, "count": wanted}
    after = reservations.predicted(params, plan(found, count=wanted))
    assert (after["count"], after["available_count"]) == (wanted, wanted - used)
    assert not reservations.plan_reservation([after], params).changes


@given(st.lists(st.integers(1, 50), max_size=6))
def test_generations_grow(seen: list[int]) -> None:
    found = [{"tags": {"trainium:generation": str(number)}} for number in seen] + [{"tags": {}}]
    assert reservations.next_generation(found) == max(seen, default=0) + 1


@given(first=st.integers(1, 9), second=st.integers(1, 9))
def test_the_token_follows_from_the_request(first: int, second: int) -> None:
    tokens = [reservations.creation(PARAMS, number)["ClientToken"] for number in (first, second)]
    assert (tokens[0] == tokens[1]) == (first == second)
    assert all(len(token) <= 64 for token in tokens)


def test_the_request() -> None:
    request = reservations.creation({**PARAMS, "end_date": LATER, "tags": {"team": "speech"}}, 3)
    assert (request["EndDateType"], request["EndDate"]) == ("limited", LATER)
    assert "AvailabilityZoneId" not in request
    (tags,) = request["TagSpecifications"]
    assert {"Key": "trainium:generation", "Value": "3"} in tags["Tags"]
    assert "EndDate" not in reservations.creation(PARAMS, 1)
    asked = {"match_criteria": "open", "tenancy": "dedicated", "ebs_optimized": True, "count": 7, "platform": "Windows"}
    request = reservations.creation({**PARAMS, **asked}, 1)
    assert {name: request[name] for name in request if name not in ("ClientToken", "TagSpecifications")} == {
        "InstanceType": PARAMS["instance_type"],
        "InstancePlatform": "Windows",
        "InstanceCount": 7,
        "Tenancy": "dedicated",
        "EbsOptimized": True,
        "InstanceMatchCriteria": "open",
        "EndDateType": "unlimited",
        "AvailabilityZone": PARAMS["availability_zone"],
    }


@given(st.datetimes(min_value=datetime(2027, 1, 1), max_value=datetime(2099, 1, 1)), st.integers(-12, 12))
def test_instants(date: datetime, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    once = reservations.instant(date.replace(tzinfo=zone))
    assert reservations.instant(once) == once
    assert reservations.instant(date.replace(tzinfo=zone).isoformat(timespec="seconds")) == once
    reservations.check_arguments({**PARAMS, "end_date": once}, NOW)


def test_pools() -> None:
    assert reservations.group_name("arn:aws:resource-groups:us-west-2:123456789012:group/pool") == "pool"
    reservations.check_pool("pool", [reservations.POOL, "AWS::ResourceGroups::Generic"])
    with pytest.raises(TrainiumError, match="the resource group pool is not of the type"):
        reservations.check_pool("pool", ["AWS::EC2::HostManagement"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"wait_timeout": 0}, "wait_timeout is 0"),
        ({"cluster_name": "a b"}, "cluster_name is 'a b'"),
        ({"resource_group": "AWSgroup"}, "resource_group is 'AWSgroup'"),
    ],
)
def test_bad_arguments(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TrainiumError, match=sentence):
        reservations.check_arguments({**PARAMS, **change}, NOW)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, "2030-01-31T11:00:00Z"),
        ({"InstanceType": "trn2u.48xlarge"}, "2030-01-31T10:30:00Z"),
        # Instances outlive a reservation of another kind.
        ({"ReservationType": "default"}, ""),
        ({"ReservationType": None}, ""),
        ({"EndDate": None}, ""),
    ],
)
def test_when_a_capacity_block_ends_for_its_instances(change: dict[str, Any], wanted: str) -> None:
    end = datetime(2030, 1, 31, 11, 30, tzinfo=timezone.utc)
    block = {"ReservationType": "capacity-block", "InstanceType": "trn1.32xlarge", "EndDate": end}
    assert reservations.instances_end({**block, **change}) == wanted
