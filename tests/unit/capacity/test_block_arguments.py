"""What the purchase of a Capacity Block is refused for, at the edge, and what is said and shown of one."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import block, plan
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

from tests.unit.capacity.test_block import FIRST, PARAMS, Item, offering, reservation

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)
# As the module passes what was not given.
DEFAULTS: Item = {
    "availability_zone_id": None,
    "end_date": None,
    "resource_group": None,
    "tenancy": "default",
    "ebs_optimized": False,
    "match_criteria": "targeted",
}


def said(**changes: Any) -> str:
    """Why it is refused; '' where it is taken."""
    try:
        block.check_arguments({**PARAMS, **DEFAULTS, **changes}, NOW)
    except TrainiumError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, ""),
        ({"purchase_pause": 0}, ""),
        ({"purchase_pause": -1}, "purchase_pause is -1; give a number of seconds, 0 or more"),
        ({"name": None}, "name is missing; a Capacity Block needs it"),
        ({"instance_type": ""}, "instance_type is missing; a Capacity Block needs it"),
        ({"cluster_name": "a b"}, "cluster_name is 'a b'"),
        ({"wait_timeout": 0}, "wait_timeout is 0"),
        ({"tags": {"aws:a": "b"}}, "tags holds aws:a"),
        ({"count": 0}, "count is 0; a Capacity Block has 1 to 64 instances"),
        ({"count": 1}, ""),
        ({"count": 64}, ""),
        ({"count": 65}, "count is 65; a Capacity Block has 1 to 64 instances"),
        ({"ends_before": ""}, "ends_before is missing; give the end"),
        ({"ends_before": "2026-11-29", "starts_after": ""}, "ends_before 2026-11-29T00:00:00Z is not later than now"),
        ({"block_hours": 25}, "block_hours is 25"),
        ({"accept_price_up_to": None}, ""),
        ({"accept_price_up_to": 0.0}, ""),
        ({"accept_price_up_to": -0.01}, "accept_price_up_to is -0.01; give US dollars for the whole of the block"),
        ({"accept_price_up_to": float("inf")}, "accept_price_up_to is inf"),
        ({"accept_price_up_to": float("nan")}, "accept_price_up_to is nan"),
        *(({option: ""}, "") for option in ("availability_zone_id", "end_date", "resource_group")),
        ({"availability_zone_id": "usw2-az4"}, "availability_zone_id is not for a Capacity Block; leave it out, or"),
        ({"end_date": "2026-12-31"}, "end_date is not for a Capacity Block"),
        ({"resource_group": "g"}, "resource_group is not for a Capacity Block"),
        ({"tenancy": "dedicated"}, "tenancy is not for a Capacity Block"),
        ({"ebs_optimized": True}, "ebs_optimized is not for a Capacity Block"),
        ({"match_criteria": "open"}, "match_criteria is not for a Capacity Block"),
    ],
)
def test_a_purchase_is_refused_for_what_no_capacity_block_takes(changes: Item, refused: str) -> None:
    found = said(**changes)
    assert refused in found
    assert bool(refused) == bool(found)


# EC2's API reference, CapacityReservation: what these states mean.
@pytest.mark.parametrize(
    ("state", "had"),
    [
        ("payment-pending", True),
        ("scheduled", True),
        ("active", True),
        ("expired", True),
        ("unavailable", True),
        ("payment-failed", False),
        ("failed", False),
        ("cancelled", False),
        ("unsupported", False),
    ],
)
def test_a_block_that_was_had_is_not_bought_again(state: str, had: bool) -> None:
    there = reservation(state=state)
    assert block.bought([there], PARAMS) == (there if had else None)


@pytest.mark.parametrize(
    ("params", "found", "words"),
    [
        ({}, {"ReservationType": "default", "EndDateType": "unlimited"}, "cr-2 of this name is no Capacity Block, whi"),
        (
            {"starts_after": "2026-12-09"},
            {},
            (
                "cr-2 of this name is a Capacity Block from 2026-12-03T11:30:00Z to 2026-12-05T11:30:00Z, which is not "
                "what starts_after and ends_before ask for; choose another name, and nothing was bought"
            ),
        ),
        ({"ends_before": "2026-12-05T11:29:59Z"}, {}, "which is not what starts_after and ends_before ask for"),
        ({"count": 5}, {}, "cr-2 was bought with count 4, not 5, which EC2 cannot change; choose another name to buy"),
        ({"instance_type": "trn2.48xlarge"}, {}, "with instance_type trn1.32xlarge, not trn2.48xlarge"),
        ({"platform": "Windows"}, {}, "with platform Linux/UNIX, not Windows"),
        ({"availability_zone": "us-west-2b"}, {}, "with availability_zone us-west-2d, not us-west-2b"),
    ],
)
def test_another_one_of_the_name_is_refused(params: Item, found: Item, words: str) -> None:
    with pytest.raises(TrainiumError) as error:
        block.bought([reservation(2, "active", **found)], {**PARAMS, **params})
    assert words in str(error.value)


def test_the_window_holds_its_own_ends() -> None:
    exact = {"starts_after": "2026-12-03T11:30:00Z", "ends_before": "2026-12-05T11:30:00Z"}
    assert block.bought([reservation(2)], {**PARAMS, **exact})
    chosen = block.choose([offering(2, "900")], {**PARAMS, **exact}, "us-west-2")
    assert chosen["id"] == "cb-2-48"


def test_one_of_another_time_that_has_ended_is_in_nobody_s_way() -> None:
    assert block.bought([reservation(30, "expired"), reservation(2)], PARAMS) == reservation(2)


@pytest.mark.parametrize(("hours", "wanted"), [(25, True), (48, True), (71, True), (24, False), (72, False)])
def test_one_that_begins_soon_is_less_than_a_day_shorter_or_longer(hours: int, wanted: bool) -> None:
    if wanted:
        assert block.choose([offering(2, "900", hours)], PARAMS, "us-west-2")["id"] == f"cb-2-{hours}"
        return
    with pytest.raises(TrainiumError, match="EC2 offers no Capacity Block"):
        block.choose([offering(2, "900", hours)], PARAMS, "us-west-2")


def test_only_the_zone_that_was_named() -> None:
    params = {**PARAMS, "availability_zone": "us-west-2b"}
    offered = [offering(2, "100"), offering(3, "900", AvailabilityZone="us-west-2b")]
    assert block.choose(offered, params, "us-west-2")["id"] == "cb-3-48"
    with pytest.raises(TrainiumError) as error:
        block.choose(offered[:1], params, "us-west-2")
    assert str(error.value) == (
        "EC2 offers no Capacity Block of 4 x trn1.32xlarge for 48 hours in us-west-2b that ends by "
        "2026-12-20T00:00:00Z; ask for another time, fewer instances or fewer hours, or look in other regions with "
        "neuron_capacity_info"
    )


def test_the_cheapest_is_named_where_none_is_cheap_enough() -> None:
    with pytest.raises(TrainiumError) as error:
        block.choose([offering(2, "960.5"), offering(3, "950.25")], {**PARAMS, "accept_price_up_to": 950}, "us-west-2")
    assert str(error.value) == (
        "the cheapest Capacity Block of 4 x trn1.32xlarge for 48 hours costs 950.25 USD in advance, more than "
        "accept_price_up_to=950 (cb-3-48 in us-west-2d from 2026-12-04T11:30:00Z to 2026-12-06T11:30:00Z); nothing was "
        "bought"
    )
    assert block.choose([offering(3, "950")], {**PARAMS, "accept_price_up_to": 950}, "us-west-2")["id"] == "cb-3-48"


def test_without_a_price_it_is_told_which_one_to_accept() -> None:
    option = block.choose([offering(3, "950.256")], {**PARAMS, "accept_price_up_to": None}, "us-west-2")
    assert block.not_accepted(option) == (
        "the Capacity Block cb-3-48 in us-west-2d from 2026-12-04T11:30:00Z to 2026-12-06T11:30:00Z costs 950.26 USD "
        "in advance and can never be cancelled; nothing was bought, set accept_price_up_to to 950.26 or more to buy it"
    )


def test_what_is_asked_of_ec2_and_what_check_mode_shows_is_what_comes() -> None:
    option = block.choose([offering(2, "900")], PARAMS, "us-west-2")
    request = block.purchase(option, PARAMS)
    assert (request["CapacityBlockOfferingId"], request["InstancePlatform"]) == ("cb-2-48", "Linux/UNIX")
    assert set(request) == {"CapacityBlockOfferingId", "InstancePlatform", "TagSpecifications"}
    # What EC2 describes once it is bought, but for what only EC2 knows.
    made = reservation(2, InstanceMatchCriteria="targeted", Tags=request["TagSpecifications"][0]["Tags"])
    shown = block.predicted(option, PARAMS)
    assert {**shown, "capacity_reservation_id": "cr-2"} == {**made, "count": 4}
    assert shown["capacity_reservation_id"] == ""


def test_offerings_are_asked_for_as_the_options_say() -> None:
    request = block.offers.offerings_request(block.wanted_of(PARAMS))
    assert request == {
        "InstanceType": "trn1.32xlarge",
        "InstanceCount": 4,
        "CapacityDurationHours": 48,
        "StartDateRange": "2026-12-01T00:00:00Z",
        "EndDateRange": "2026-12-20T00:00:00Z",
    }
    always = block.offers.offerings_request(block.wanted_of({**PARAMS, "starts_after": "", "ends_before": ""}))
    assert {"StartDateRange", "EndDateRange"}.isdisjoint(always)


def test_a_block_has_a_beginning_and_a_count_before_it_begins() -> None:
    made = reservation()
    assert (made["starts_at"], made["end_date"]) == ("2026-12-03T11:30:00Z", "2026-12-05T11:30:00Z")
    assert (made["count"], made["capacity_block"]) == (4, True)
    # Without the tag of EC2's the count that it shows, and an On-Demand one begins when it is made.
    assert reservation(Tags=[], TotalInstanceCount=3)["count"] == 3
    other = reservation(ReservationType="default", TotalInstanceCount=2, StartDate=FIRST)
    assert (other["count"], other["starts_at"], other["capacity_block"]) == (2, "", False)
    assert plan.promised({"Tags": [], "TotalInstanceCount": None}) == 0
