"""neuron_capacity_info finds the ways to get nodes in several regions, and says what it was not told."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

Account = Any
Item = dict[str, Any]
TYPE = "trn1.32xlarge"
MARKETS = ["on-demand", "spot", "reservation", "capacity-block"]


def find(cloud: Account, **more: Any) -> Item:
    arguments = {"instance_type": TYPE, "count": 4, "regions": ["us-west-2", "us-east-2"], "markets": MARKETS, **more}
    found: Item = cloud.run("neuron_capacity_info", arguments)
    assert not found.get("failed"), found.get("msg")
    return found


def warned(found: Item) -> str:
    return str(found.get("warnings", ""))


def of(found: Item, market: str, region: str = "us-west-2") -> list[Item]:
    return [one for one in found["options"] if (one["market"], one["region"]) == (market, region)]


def reserve(cloud: Account, count: int, **more: Any) -> str:
    made = cloud.ec2.create_capacity_reservation(
        InstanceType=TYPE,
        InstancePlatform=more.pop("platform", "Linux/UNIX"),
        AvailabilityZone=cloud.zones[1],
        InstanceCount=count,
        InstanceMatchCriteria="targeted",
        **more,
    )
    return str(made["CapacityReservation"]["CapacityReservationId"])


def test_every_way_of_two_regions_in_order(cloud: Account) -> None:
    reservation = reserve(cloud, 5)
    small = reserve(cloud, 3)
    reserve(cloud, 9, platform="Windows")
    cloud.api.clear_calls()
    found = find(cloud, block_hours=48)
    assert warned(found) == ""
    first = found["options"][0]
    assert (first["market"], first["id"], first["price_per_hour"]) == ("reservation", reservation, 0)
    assert (first["availability_zone"], first["count"], first["starts_at"]) == (cloud.zones[1], 4, "")
    last = found["options"][-1]
    assert (last["id"], last["obstacle"]) == (small, f"{small} has room for 3 of 4")
    assert [(one["availability_zone"], one["price_per_hour"]) for one in of(found, "on-demand")] == [
        (zone, 86.0) for zone in cloud.zones
    ]
    spot = of(found, "spot")
    assert [(one["availability_zone"], one["price_per_hour"]) for one in spot] == [
        (cloud.zones[0], 27.52),
        (cloud.zones[1], 28.38),
    ]
    assert [one["placement_score"] for one in spot] == [3, 2]
    blocks = of(found, "capacity-block")
    assert len(blocks) == 6
    for one in blocks:
        begin, end = (datetime.fromisoformat(one[key].replace("Z", "+00:00")) for key in ("starts_at", "ends_at"))
        assert one["id"].startswith("cb-")
        hours = (end - begin) / timedelta(hours=1)
        assert one["price_per_hour"] == pytest.approx(one["price_total"] / hours, abs=0.001)
    fine = [one for one in found["options"] if not one["obstacle"]]
    assert found["options"][: len(fine)] == fine
    assert [one["starts_at"] for one in fine] == sorted(one["starts_at"] for one in fine)
    now = [one["price_per_hour"] for one in fine if not one["starts_at"]]
    assert now == sorted(now)
    assert {one["region"] for one in fine} == {"us-west-2", "us-east-2"}
    assert [(one["region"], one["price_per_hour"]) for one in found["regions"]] == [
        ("us-west-2", 21.5),
        ("us-east-2", 21.5),
    ]
    assert found["regions"][0]["quotas"][0] == {
        "market": "on-demand",
        "name": "Running On-Demand Trn instances",
        "vcpus": 1000000,
        "used": 0,
    }
    assert found["zones"] == sorted([*cloud.zones, *found["regions"][1]["zones"]])
    # Pages aside, one question of each kind in a region; and no writes.
    firsts = [call for call in cloud.api.calls() if "NextToken" not in call["parameters"]]
    asked = Counter(call["action"] for call in firsts if call["service"] in ("ec2", "pricing"))
    assert asked == {
        "DescribeInstanceTypeOfferings": 2,
        "DescribeInstances": 2,
        "DescribeInstanceTypes": 2,
        "DescribeSpotPriceHistory": 2,
        "GetSpotPlacementScores": 2,
        "DescribeAvailabilityZones": 2,
        "DescribeCapacityReservations": 2,
        "DescribeCapacityBlockOfferings": 2,
        "GetProducts": 2,
    }
    assert cloud.api.writes() == []


def test_a_quota_without_room_is_an_obstacle(cloud: Account) -> None:
    cloud.api.control("POST", "quotas", {"code": "L-6B0D517C", "value": 128})
    found = find(cloud, markets=["on-demand", "spot"])
    assert [one["market"] for one in found["options"]] == ["on-demand"] * 3 + ["spot"] * 3
    obstacle = of(found, "spot")[0]["obstacle"]
    assert obstacle.startswith("4 x trn1.32xlarge need 512 vCPUs, and the quota 'All Trn Spot Instance Requests'")
    assert [one["used"] for one in found["regions"][0]["quotas"]] == [0, 0]


def test_blocks_of_a_span_of_time(cloud: Account) -> None:
    now = datetime.now(timezone.utc)
    first, last = (f"{now + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (1, 10))
    asked = {"regions": [], "markets": ["capacity-block"], "block_hours": 72}
    found = find(cloud, **asked, starts_after=first, ends_before=last)
    every = find(cloud, **asked)
    assert 0 < len(found["options"]) < len(every["options"])
    assert all(first <= one["starts_at"] and one["ends_at"] <= last for one in found["options"])
    assert found["regions"][0]["price_per_hour"] is None


def test_what_may_not_be_asked_is_named_and_the_rest_told(cloud: Account) -> None:
    cloud.api.fault("GetProducts", "AccessDeniedException", times=9)
    cloud.api.fault("GetSpotPlacementScores", "UnauthorizedOperation", times=9, status=403)
    cloud.api.fault("DescribeCapacityBlockOfferings", "UnauthorizedOperation", times=9, status=403)
    cloud.api.fault("ListServiceQuotas", "AccessDeniedException", times=9)
    found = find(cloud, regions=["us-west-2"], count=2)
    said = warned(found)
    assert "us-west-2 did not tell all: AWS would not list the prices: for the test (AccessDeniedException)" in said
    assert "AWS would not tell the placement scores" in said
    assert "AWS would not list the offerings of Capacity Blocks" in said
    assert said.count("us-west-2: The quota of trn1.32xlarge was not looked at") == 1
    assert [(one["market"], one["price_per_hour"], one["placement_score"]) for one in found["options"]] == [
        ("spot", 13.76, None),
        ("spot", 14.19, None),
        ("on-demand", None, None),
        ("on-demand", None, None),
    ]


def test_a_region_that_is_not_enabled_is_left_out(cloud: Account) -> None:
    found = find(cloud, regions=["us-west-2", "ap-southeast-4"], markets=["on-demand"])
    assert "The region ap-southeast-4 was left out: the account may not have it enabled" in warned(found)
    assert "(AuthFailure)" in warned(found)
    assert {one["region"] for one in found["options"]} == {"us-west-2"}
    alone = cloud.run("neuron_capacity_info", {"instance_type": TYPE, "regions": ["ap-southeast-4"]})
    assert "no region answered: The region ap-southeast-4 was left out: the account may not have it" in alone["msg"]
    assert alone["msg"].count("..") == 0


def test_a_type_that_no_region_offers(cloud: Account) -> None:
    found = find(cloud, instance_type="trn1.33xlarge")
    assert (found["options"], found["zones"]) == ([], [])
    assert "None of us-west-2, us-east-2 offers trn1.33xlarge; check instance_type." in warned(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"regions": ["us-west-2a"]}, "regions has 'us-west-2a', which is no region such as us-west-2"),
        ({"block_hours": 30}, "block_hours is 30; Capacity Blocks last whole days up to 14 days"),
        ({"block_hours": 15 * 24}, "block_hours is 360"),
        ({"block_hours": 0}, "block_hours is 0"),
        ({"count": 65}, "count is 65, and a Capacity Block has at most 64 instances"),
        ({"count": 4, "markets": [], "regions": ["us-west-2"]}, "count is 4 with regions and without markets"),
        ({"region": ""}, "no region is given; set region or regions, or AWS_REGION"),
        ({"starts_after": "soon"}, "starts_after is 'soon', which is no date such as"),
        ({"ends_before": "2020-01-01T00:00:00Z"}, "ends_before 2020-01-01T00:00:00Z is not later than now"),
    ],
)
def test_refused_without_a_call(cloud: Account, change: Item, words: str) -> None:
    said = cloud.run("neuron_capacity_info", {"instance_type": TYPE, "markets": ["capacity-block"], **change})["msg"]
    assert words in said
    assert cloud.api.calls() == []
