"""In which ways nodes can be had, and in which order they are told."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import offers
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.quotas import Quota, Usage
from hypothesis import given
from hypothesis import strategies as st

Item = dict[str, Any]

KIND = "trn1.32xlarge"
NOW = datetime(2026, 11, 26, 12, tzinfo=timezone.utc)
WANTED = offers.Wanted(KIND, 4, frozenset(offers.MARKETS), 24, "", "")
QUOTA = Quota("Running On-Demand Trn instances", "L-1", 512)


def reservation(**more: Any) -> Item:
    return {
        "CapacityReservationId": "cr-1",
        "State": "active",
        "AvailabilityZone": "us-west-2d",
        "InstanceType": KIND,
        "InstancePlatform": "Linux/UNIX",
        "TotalInstanceCount": 4,
        "AvailableInstanceCount": 4,
        "EndDateType": "unlimited",
        **more,
    }


def offering(days: float = 2, fee: str = "480.00", **more: Any) -> Item:
    start = NOW + timedelta(days=days)
    return {
        "CapacityBlockOfferingId": f"cb-{days}",
        "AvailabilityZone": "us-west-2d",
        "InstanceCount": 4,
        "StartDate": start,
        "EndDate": start + timedelta(hours=24),
        "UpfrontFee": fee,
        "CurrencyCode": "USD",
        **more,
    }


def found(region: str = "us-west-2", **more: Any) -> offers.Found:
    return offers.only_zones(region, ["us-west-2b", "us-west-2d"])._replace(**more)


PRICES = st.decimals("0.01", "99", places=4)
ZONES = st.sampled_from(["a", "b", "c"])
RESERVATIONS = st.builds(
    lambda state, free, day: reservation(
        State=state, AvailableInstanceCount=free, StartDate=NOW + timedelta(days=day), CapacityReservationId=f"cr-{day}"
    ),
    st.sampled_from(["active", "scheduled", "expired", "cancelled"]),
    st.integers(0, 8),
    st.integers(1, 9),
)
BLOCKS = st.builds(offering, st.integers(0, 50), st.sampled_from(["1", "900.50", "nothing"]))
USAGES = st.builds(Usage, st.just(QUOTA), st.integers(0, 600), st.just(128))
FOUND = st.builds(
    offers.Found,
    st.sampled_from(["us-west-2", "us-east-1"]),
    st.lists(ZONES, unique=True),
    st.none() | PRICES,
    st.dictionaries(st.sampled_from(["on-demand", "spot"]), USAGES),
    st.dictionaries(ZONES, PRICES),
    st.dictionaries(ZONES, st.integers(1, 10)),
    st.lists(RESERVATIONS, max_size=3),
    st.lists(BLOCKS, max_size=3),
)


@given(st.lists(FOUND, max_size=2, unique_by=lambda one: one.region), st.randoms(use_true_random=False))
def test_the_order_is_one_and_can_be_read_from_the_options(regions: list[offers.Found], random: Any) -> None:
    told = offers.options(regions, WANTED)
    mixed = [one._replace(blocks=random.sample(list(one.blocks), len(list(one.blocks)))) for one in regions]
    assert offers.options(random.sample(mixed, len(mixed)), WANTED) == told
    for one, other in zip(told, told[1:]):
        if bool(one["obstacle"]) != bool(other["obstacle"]):
            assert other["obstacle"]
        elif one["starts_at"] != other["starts_at"]:
            assert one["starts_at"] < other["starts_at"]
        elif other["price_per_hour"] is not None:
            assert one["price_per_hour"] is not None
            assert one["price_per_hour"] <= other["price_per_hour"]


@given(FOUND, st.sets(st.sampled_from(offers.MARKETS)))
def test_each_way_is_told_once_and_none_that_was_not_asked_for(one: offers.Found, markets: set[str]) -> None:
    told = offers.options([one], WANTED._replace(markets=frozenset(markets)))
    usable = [item for item in one.reservations if item["State"] in ("active", "scheduled")]
    numbers = {
        "reservation": len(usable),
        "spot": len(one.spot),
        "on-demand": len(one.zones),
        "capacity-block": len(list(one.blocks)),
    }
    for market, number in numbers.items():
        assert sum(option["market"] == market for option in told) == (number if market in markets else 0)
    assert json.loads(json.dumps(told)) == told
    for option in told:
        if option["market"] == "spot":
            price = one.spot[option["availability_zone"]]
            assert option["price_per_hour"] == pytest.approx(float(price * 4), abs=1e-4)
        usage = one.usage.get(option["market"])
        if usage is not None:
            assert bool(option["obstacle"]) == (usage.used + 4 * 128 > 512)


@pytest.mark.parametrize(
    ("counts", "enough"),
    [
        ({"Tags": [{"Key": "aws:ec2capacityreservation:incrementalRequestedQuantity", "Value": "4"}]}, True),
        ({"Tags": [{"Key": "aws:ec2capacityreservation:incrementalRequestedQuantity", "Value": "3"}]}, False),
        ({"TotalInstanceCount": 4}, True),
    ],
)
def test_before_a_block_begins_its_tag_says_how_many_it_has(counts: Item, enough: bool) -> None:
    none = {"TotalInstanceCount": 0, "AvailableInstanceCount": 0, "State": "scheduled", "StartDate": NOW}
    wanted = WANTED._replace(markets=frozenset(["reservation"]))
    (told,) = offers.options([found(reservations=[reservation(**{**none, **counts})])], wanted)
    assert (told["obstacle"] == "") == enough


def test_a_block_that_was_bought_begins_and_ends_when_its_instances_do() -> None:
    bought = reservation(
        State="scheduled",
        AvailableInstanceCount=0,
        StartDate=NOW + timedelta(days=1),
        EndDate=datetime(2026, 11, 30, 11, 30, tzinfo=timezone.utc),
        EndDateType="limited",
        ReservationType="capacity-block",
    )
    (told,) = offers.options([found(reservations=[bought])], WANTED._replace(markets=frozenset(["reservation"])))
    assert (told["starts_at"], told["ends_at"]) == ("2026-11-27T12:00:00Z", "2026-11-30T11:00:00Z")
    assert (told["obstacle"], told["price_per_hour"], told["id"]) == ("", 0, "cr-1")


def test_an_offering_is_told_with_its_whole_price_and_that_of_an_hour() -> None:
    (told,) = offers.options([found(blocks=[offering()])], WANTED._replace(markets=frozenset(["capacity-block"])))
    assert (told["price_total"], told["price_per_hour"], told["count"]) == (480.0, 20.0, 4)
    assert (told["starts_at"], told["ends_at"]) == ("2026-11-28T12:00:00Z", "2026-11-29T12:00:00Z")
    # Those that begin soon are some hours shorter, and all of them may be longer than a day.
    for hours, by_hour in ((22.5, 480 / 22.5), (1.5, 320.0), (1, 480.0), (48, 10.0), (182 * 24, 480 / 4368)):
        start = NOW + timedelta(days=2)
        block = offering(StartDate=start, EndDate=start + timedelta(hours=hours))
        (told,) = offers.options([found(blocks=[block])], WANTED._replace(markets=frozenset(["capacity-block"])))
        assert told["price_total"] == 480.0
        assert told["price_per_hour"] == pytest.approx(by_hour, rel=1e-3), hours
    other = offering(CurrencyCode="CNY")
    (told,) = offers.options([found(blocks=[other])], WANTED._replace(markets=frozenset(["capacity-block"])))
    assert (told["price_total"], told["price_per_hour"]) == (None, None)


ANSWERS = {
    "reservations": reservation(Tags=[], EndDate=NOW, StartDate=NOW, ReservationType="capacity-block"),
    "blocks": offering(),
}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind in ANSWERS for field in ANSWERS[kind]])
def test_an_answer_that_lacks_a_field_is_no_traceback(kind: str, field: str) -> None:
    less = {key: value for key, value in ANSWERS[kind].items() if key != field}
    parts: Item = {kind: [less, ANSWERS[kind]]}
    told = offers.options([found(**parts)], WANTED)
    market = {"reservations": "reservation", "blocks": "capacity-block"}[kind]
    assert 1 <= len([one for one in told if one["market"] == market]) <= 2


def test_prices_and_scores_that_lack_a_field_are_left_aside() -> None:
    whole = {"AvailabilityZone": "a", "SpotPrice": "7", "Timestamp": NOW}
    less = [{key: value for key, value in whole.items() if key != field} for field in whole]
    assert offers.current_prices([*less, whole]) == {"a": Decimal(7)}
    assert offers.scores_of([{}, {"AvailabilityZoneId": "z"}], {"z": "a"}) == {}


def test_what_takes_no_more_instances_or_begins_nobody_knows_when_has_an_obstacle() -> None:
    wanted = WANTED._replace(markets=frozenset(["reservation"]))
    block = reservation(ReservationType="capacity-block", EndDateType="limited", EndDate=NOW + timedelta(minutes=20))
    (told,) = offers.options([found(reservations=[block])], wanted, NOW)
    assert told["obstacle"] == "cr-1 takes no more instances since 2026-11-26T11:50:00Z"
    (told,) = offers.options([found(reservations=[reservation(State="scheduled")])], wanted, NOW)
    assert told["obstacle"] == "nobody says when cr-1 begins"


def test_hardware_of_ones_own_is_not_for_nodes() -> None:
    wanted = WANTED._replace(markets=frozenset(["reservation"]))
    assert offers.options([found(reservations=[reservation(Tenancy="dedicated")])], wanted) == []


def test_the_last_price_of_a_history_holds() -> None:
    history = [
        {"AvailabilityZone": zone, "SpotPrice": price, "Timestamp": NOW - timedelta(hours=hours)}
        for zone, price, hours in (("a", "7.5", 1), ("a", "9", 30), ("b", "3", 60), ("b", "4", 2), ("b", "", 1))
    ]
    assert offers.current_prices(history) == {"a": Decimal("7.5"), "b": Decimal(4)}


def test_scores_of_zones_that_are_not_known_are_left_aside() -> None:
    scores = [{"AvailabilityZoneId": "usw2-az4", "Score": 3}, {"AvailabilityZoneId": "usw2-az9", "Score": 9}]
    assert offers.scores_of(scores, {"usw2-az4": "us-west-2d"}) == {"us-west-2d": 3}


@given(st.integers(-50, 5000))
def test_the_lengths_of_blocks_are_those_that_AWS_sells(hours: int) -> None:  # noqa: N802
    sold = {24 * days for days in range(1, 15)} | {168 * weeks for weeks in range(1, 27)}
    wanted = WANTED._replace(block_hours=hours)
    if hours in sold:
        offers.check_arguments(wanted, ["us-west-2"], NOW)
    else:
        with pytest.raises(TrainiumError, match=r"block_hours is -?\d+; .* multiple of 24"):
            offers.check_arguments(wanted, ["us-west-2"], NOW)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "soon"])
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(TrainiumError, match=r"starts_after is .* which is no date such as"):
        offers.check_arguments(WANTED._replace(starts_after=text), [], NOW)


def test_a_span_that_ends_before_it_begins_is_refused() -> None:
    wanted = WANTED._replace(starts_after="2026-12-02", ends_before="2026-12-01")
    with pytest.raises(TrainiumError, match="ends_before 2026-12-01T00:00:00Z is not later than 2026-12-02T00:00:00Z"):
        offers.check_arguments(wanted, [], NOW)


@pytest.mark.parametrize("region", ["us-west-2", "us-gov-west-1", "ap-southeast-4", "eusc-de-east-1", "mx-central-1"])
def test_names_of_regions(region: str) -> None:
    offers.check_arguments(WANTED, [region], NOW)
