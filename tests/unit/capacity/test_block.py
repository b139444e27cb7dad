"""Which Capacity Block is bought, and which was bought already."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import block, plan
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from hypothesis import given
from hypothesis import strategies as st

Item = dict[str, Any]

FIRST = datetime(2026, 12, 1, 11, 30, tzinfo=timezone.utc)
PARAMS: Item = {
    "name": "block",
    "cluster_name": "c1",
    "state": "present",
    "instance_type": "trn1.32xlarge",
    "count": 4,
    "availability_zone": None,
    "platform": "Linux/UNIX",
    "block_hours": 48,
    "starts_after": "2026-12-01",
    "ends_before": "2026-12-20",
    "accept_price_up_to": 2000.0,
    "tags": {},
    "wait_timeout": 300,
    "purchase_pause": 60,
}


def offering(day: int, fee: str, hours: int = 48, **more: Any) -> Item:
    start = FIRST + timedelta(days=day)
    return {
        "CapacityBlockOfferingId": f"cb-{day}-{hours}",
        "AvailabilityZone": "us-west-2d",
        "InstanceType": "trn1.32xlarge",
        "InstanceCount": 4,
        "StartDate": start,
        "EndDate": start + timedelta(hours=hours),
        "UpfrontFee": fee,
        "CurrencyCode": "USD",
        **more,
    }


def reservation(day: int = 2, state: str = "scheduled", **more: Any) -> plan.Reservation:
    start = FIRST + timedelta(days=day)
    tags = {**plan.wanted_tags(PARAMS), "aws:ec2capacityreservation:incrementalRequestedQuantity": "4"}
    item = {
        "CapacityReservationId": f"cr-{day}",
        "State": state,
        "InstanceType": "trn1.32xlarge",
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": "us-west-2d",
        "TotalInstanceCount": 0,
        "AvailableInstanceCount": 0,
        "ReservationType": "capacity-block",
        "StartDate": start,
        "EndDate": start + timedelta(hours=48),
        "EndDateType": "limited",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    return plan.reservation_of({**item, **more})


OFFERINGS = st.lists(
    st.builds(
        offering,
        st.integers(0, 17),
        st.decimals("100", "5000", places=2).map(str) | st.just("nothing"),
        st.sampled_from([47, 48]),
        InstanceCount=st.sampled_from([4, 4, 8]),
        CurrencyCode=st.sampled_from(["USD", "USD", "CNY", None]),
    ),
    max_size=6,
)


@given(OFFERINGS, st.none() | st.floats(0, 6000))
def test_nothing_above_the_accepted_price_is_chosen(offered: list[Item], accepted: float | None) -> None:
    priced = [one for one in offered if one["CurrencyCode"] == "USD" and one["UpfrontFee"] != "nothing"]
    # The window ends at the beginning of the 20th.
    priced = [one for one in priced if one["EndDate"] <= datetime(2026, 12, 20, tzinfo=timezone.utc)]
    fees = [float(one["UpfrontFee"]) for one in priced if one["InstanceCount"] == 4]
    params = {**PARAMS, "accept_price_up_to": accepted}
    if not [fee for fee in fees if accepted is None or fee <= accepted]:
        with pytest.raises(TrainiumError, match=r"more than accept_price_up_to|EC2 offers no Capacity Block"):
            block.choose(offered, params, "us-west-2")
        return
    chosen = block.choose(offered, params, "us-west-2")
    assert accepted is None or chosen["price_total"] <= accepted
    assert chosen["price_total"] in fees
    assert chosen["count"] == 4


@pytest.mark.parametrize(
    "change",
    [
        {"CurrencyCode": None},
        {"CurrencyCode": "CNY"},
        {"UpfrontFee": None},
        {"UpfrontFee": "NaN"},
        {"InstanceCount": None},
        {"InstanceCount": 3},
        {"InstanceType": "trn1.2xlarge"},
        {"InstanceType": None},
        {"Tenancy": "dedicated"},
        {"StartDate": datetime(2026, 11, 30, tzinfo=timezone.utc)},
        {"EndDate": datetime(2026, 12, 21, tzinfo=timezone.utc)},
        {"EndDate": FIRST + timedelta(days=6)},
        {"StartDate": None},
        {"EndDate": None},
        {"CapacityBlockOfferingId": None},
        {"CapacityBlockOfferingSegments": [{"AvailabilityZone": "us-west-2b"}, {"AvailabilityZone": "us-west-2d"}]},
    ],
)
def test_an_offering_that_is_not_wholly_what_was_asked_for_is_not_bought(change: Item) -> None:
    dear = offering(3, "1900")
    assert block.choose([{**offering(3, "1"), **change}, dear], PARAMS, "us-west-2")["price_total"] == 1900
    with pytest.raises(TrainiumError, match="EC2 offers no Capacity Block"):
        block.choose([{**offering(3, "1"), **change}], PARAMS, "us-west-2")


def test_a_pause_before_the_purchase_is_no_less_than_none() -> None:
    with pytest.raises(TrainiumError, match="purchase_pause is -1; give a number of seconds"):
        block.check_arguments({**PARAMS, "purchase_pause": -1}, FIRST)


def test_the_lowest_price_for_an_hour_and_then_the_soonest() -> None:
    chosen = block.choose([offering(9, "960"), offering(3, "960"), offering(1, "950", 47)], PARAMS, "us-west-2")
    assert chosen["id"] == "cb-3-48"
    cheap = {**PARAMS, "accept_price_up_to": 955.0}
    assert block.choose([offering(3, "960"), offering(1, "950", 47)], cheap, "us-west-2")["id"] == "cb-1-47"


@given(st.integers(-5, 25), st.sampled_from(["scheduled", "active", "payment-pending", "expired", "unavailable"]))
def test_what_was_bought_for_the_window_is_never_bought_again(day: int, state: str) -> None:
    there = reservation(day, state)
    # The window ends at the beginning of the 20th.
    if 0 <= day <= 16:
        assert block.bought([there], PARAMS) == there
    elif state in ("expired", "unavailable"):
        assert block.bought([there], PARAMS) is None
    else:
        with pytest.raises(TrainiumError, match="nothing was bought"):
            block.bought([there], PARAMS)


@pytest.mark.parametrize("state", ["payment-failed", "failed", "cancelled"])
def test_what_nobody_has_does_not_keep_from_buying(state: str) -> None:
    assert block.bought([reservation(state=state)], PARAMS) is None


def test_two_of_the_name_are_refused() -> None:
    with pytest.raises(TrainiumError, match="2 Capacity Blocks have this name in this time: cr-2, cr-9"):
        block.bought([reservation(2), reservation(9)], PARAMS)


def test_the_tags_come_with_the_purchase() -> None:
    option = block.choose([offering(3, "960")], PARAMS, "us-west-2")
    request = block.purchase(option, PARAMS)
    assert request["CapacityBlockOfferingId"] == "cb-3-48"
    (tagged,) = request["TagSpecifications"]
    assert tagged["ResourceType"] == "capacity-reservation"
    assert {"Key": "trainium:cluster", "Value": "c1"} in tagged["Tags"]


def test_a_block_is_not_cancelled() -> None:
    made = {**PARAMS, "state": "absent"}
    other = reservation(ReservationType="default", State="active", EndDateType="unlimited")
    assert plan.plan_reservation([reservation(), other], made).cancel == [other]
