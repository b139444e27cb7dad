"""Of what regions say: what counts as a way to get nodes, what is in its way, and what is said of the rest."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import offers
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.quotas import Usage

from tests.unit.capacity.test_offers import KIND, NOW, QUOTA, WANTED, Item, found, offering, reservation


def of(market: str, now: Any = None, **more: Any) -> list[Item]:
    return offers.options([found(**more)], WANTED._replace(markets=frozenset([market])), now)


@pytest.mark.parametrize(
    ("changes", "usable"),
    [
        ({}, True),
        ({"State": "scheduled", "StartDate": NOW}, True),
        ({"State": "pending"}, False),
        ({"State": "expired"}, False),
        ({"State": None}, False),
        ({"InstancePlatform": "Windows"}, False),
        ({"InstancePlatform": "Ubuntu Pro"}, False),
        ({"Tenancy": "dedicated"}, False),
        ({"Tenancy": "default"}, True),
        ({"CapacityReservationId": ""}, False),
    ],
)
def test_reservations_into_which_nodes_can_be_launched(changes: Item, usable: bool) -> None:
    assert bool(of("reservation", reservations=[reservation(**changes)])) == usable


@pytest.mark.parametrize(
    ("changes", "whole"),
    [
        ({}, True),
        ({"CapacityBlockOfferingSegments": [{}]}, True),
        ({"CapacityBlockOfferingSegments": [{}, {}]}, False),
        ({"CapacityBlockOfferingId": ""}, False),
        ({"StartDate": None}, False),
        ({"EndDate": None}, False),
    ],
)
def test_offerings_that_say_what_they_are(changes: Item, whole: bool) -> None:
    assert bool(of("capacity-block", blocks=[offering(**changes)])) == whole


def test_each_kind_has_what_only_it_has() -> None:
    (reserved,) = of("reservation", reservations=[reservation(EndDateType="limited", EndDate=NOW)])
    assert reserved == {
        "market": "reservation",
        "region": "us-west-2",
        "availability_zone": "us-west-2d",
        "count": 4,
        "starts_at": "",
        "ends_at": "2026-11-26T12:00:00Z",
        "price_per_hour": 0.0,
        "price_total": None,
        "placement_score": None,
        "id": "cr-1",
        "obstacle": "",
    }
    (spot,) = of("spot", spot={"us-west-2b": Decimal("1.00004")}, scores={"us-west-2b": 7, "us-west-2d": 9})
    assert (spot["price_per_hour"], spot["placement_score"], spot["price_total"]) == (4.0002, 7, None)
    (unscored,) = of("spot", spot={"us-west-2b": Decimal(1)})
    assert unscored["placement_score"] is None
    here = of("on-demand", on_demand=Decimal("21.5"))
    assert [(one["availability_zone"], one["price_per_hour"]) for one in here] == [
        ("us-west-2b", 86.0),
        ("us-west-2d", 86.0),
    ]
    assert [one["price_per_hour"] for one in of("on-demand")] == [None, None]
    (block,) = of("capacity-block", blocks=[offering(InstanceCount=None)])
    assert (block["market"], block["count"], block["id"], block["availability_zone"]) == (
        "capacity-block",
        4,
        "cb-2",
        "us-west-2d",
    )
    (free,) = of("capacity-block", blocks=[offering(EndDate=NOW)])
    assert (free["price_per_hour"], free["price_total"]) == (None, 480.0)


@pytest.mark.parametrize(("free", "lack"), [(4, ""), (5, ""), (3, "cr-1 has room for 3 of 4"), (0, "cr-1 has room fo")])
def test_a_reservation_has_room_or_not(free: int, lack: str) -> None:
    (told,) = of("reservation", reservations=[reservation(AvailableInstanceCount=free)])
    assert told["obstacle"].startswith(lack) and bool(told["obstacle"]) == bool(lack)


@pytest.mark.parametrize("market", ["spot", "on-demand"])
@pytest.mark.parametrize(("used", "fits"), [(0, True), (1, False)])
def test_the_quota_of_its_own_market_is_an_obstacle(market: str, used: int, fits: bool) -> None:
    usage = {market: Usage(QUOTA, used, 128)}
    told = of(market, usage=usage, spot={"us-west-2b": Decimal(1)})
    assert [bool(one["obstacle"]) for one in told] == [not fits] * len(told)
    other = {"spot": "on-demand", "on-demand": "spot"}[market]
    assert not any(one["obstacle"] for one in of(market, usage={other: usage[market]}, spot={"a": Decimal(1)}))


@pytest.mark.parametrize(("after", "ended"), [(-1, False), (0, True), (1, True)])
def test_what_has_ended_by_now_takes_no_more(after: int, ended: bool) -> None:
    limited = reservation(EndDateType="limited", EndDate=NOW)
    (told,) = of("reservation", NOW + timedelta(seconds=after), reservations=[limited])
    assert told["obstacle"] == ("cr-1 takes no more instances since 2026-11-26T12:00:00Z" if ended else "")
    # Another obstacle is the nearer one.
    (told,) = of("reservation", NOW + timedelta(seconds=1), reservations=[{**limited, "AvailableInstanceCount": 1}])
    assert told["obstacle"] == "cr-1 has room for 1 of 4"


def test_at_one_price_the_higher_score_and_then_the_market_and_the_zone_come_first() -> None:
    same = {"a": Decimal(2), "b": Decimal(2), "c": Decimal(2), "d": Decimal(1)}
    wanted = WANTED._replace(markets=frozenset(["spot", "on-demand"]))
    told = offers.options([found(spot=same, scores={"a": 1, "b": 9}, on_demand=Decimal(2))], wanted)
    assert [(one["market"], one["availability_zone"]) for one in told] == [
        ("spot", "d"),
        ("spot", "b"),
        ("spot", "a"),
        ("spot", "c"),
        ("on-demand", "us-west-2b"),
        ("on-demand", "us-west-2d"),
    ]


def test_what_nobody_tells_the_price_of_comes_after_the_dearest_and_before_what_is_later() -> None:
    wanted = WANTED._replace(markets=frozenset(["spot", "on-demand", "capacity-block"]))
    told = offers.options([found(spot={"a": Decimal(99)}, blocks=[offering(fee="0.01")])], wanted)
    assert [one["market"] for one in told] == ["spot", "on-demand", "on-demand", "capacity-block"]


# Codes with which services answer in a region that is not enabled: of EC2, of it in others, of JSON services.
@pytest.mark.parametrize(
    "code", ["AuthFailure", "OptInRequired", "UnrecognizedClientException", "InvalidClientTokenId"]
)
def test_a_region_that_may_not_be_enabled_is_told_so(code: str) -> None:
    said = offers.left_out("ap-southeast-4", code, "not valid", "AWS would not list")
    assert said == (
        "The region ap-southeast-4 was left out: the account may not have it enabled, or the credentials are wrong "
        f"there; AWS says not valid ({code})."
    )


def test_another_reason_is_told_as_it_is() -> None:
    said = offers.left_out("us-east-2", "UnauthorizedOperation", "no", "AWS would not list the zones: no")
    assert said == "The region us-east-2 was left out: AWS would not list the zones: no."


def test_a_region_is_shown_with_its_price_and_the_quotas_in_order() -> None:
    usage = {"spot": Usage(QUOTA, 1, 128), "on-demand": Usage(QUOTA, 2, 128)}
    shown = offers.summary(found(on_demand=Decimal("21.50004"), usage=usage))
    assert (shown["region"], shown["zones"], shown["price_per_hour"]) == (
        "us-west-2",
        ["us-west-2b", "us-west-2d"],
        21.5,
    )
    assert [(one["market"], one["used"], one["vcpus"], one["name"]) for one in shown["quotas"]] == [
        ("on-demand", 2, 512, QUOTA.name),
        ("spot", 1, 512, QUOTA.name),
    ]
    assert offers.summary(found())["price_per_hour"] is None


@pytest.mark.parametrize(
    ("region", "changes", "refused"),
    [
        ("us-west-2", {}, ""),
        ("us-west-2a", {}, "regions has 'us-west-2a', which is no region such as us-west-2"),
        ("US-WEST-2", {}, "regions has"),
        ("us-west-2", {"number": 64}, ""),
        ("us-west-2", {"number": 65}, "count is 65, and a Capacity Block has at most 64 instances; ask for fewer, or"),
        ("us-west-2", {"number": 65, "markets": frozenset(["spot"])}, ""),
        ("us-west-2", {"block_hours": 14 * 24}, ""),
        (
            "us-west-2",
            {"block_hours": 15 * 24},
            "block_hours is 360; Capacity Blocks last whole days up to 14 days and",
        ),
        ("us-west-2", {"block_hours": 21 * 24}, ""),
        ("us-west-2", {"block_hours": 182 * 24}, ""),
        ("us-west-2", {"block_hours": 189 * 24}, "whole weeks up to 26 weeks, so give a multiple of 24, such as 48"),
        ("us-west-2", {"block_hours": 0}, "block_hours is 0"),
        ("us-west-2", {"block_hours": 36}, "block_hours is 36"),
        ("us-west-2", {"ends_before": "2026-11-26T12:00:00Z"}, "is not later than now; give a later date"),
        ("us-west-2", {"ends_before": "2026-11-26T12:00:01Z"}, ""),
        ("us-west-2", {"starts_after": "2026-12-01", "ends_before": "2026-12-01"}, "is not later than 2026-12-01T00"),
        ("us-west-2", {"starts_after": "2020-01-01", "ends_before": "2020-01-02"}, ""),
        ("us-west-2", {"starts_after": "2026-12-01"}, ""),
        ("us-west-2", {"ends_before": "soon"}, "ends_before is 'soon', which is no date"),
    ],
)
def test_a_search_is_refused_for_what_is_never_offered(region: str, changes: Item, refused: str) -> None:
    said = ""
    try:
        offers.check_arguments(WANTED._replace(**changes), [region], NOW)
    except TrainiumError as error:
        said = str(error)
    assert refused in said
    assert bool(refused) == bool(said)


def test_the_options_of_a_module_are_what_is_asked_for() -> None:
    params = {"instance_type": KIND, "block_hours": 48, "starts_after": "2026-12-01", "ends_before": "2026-12-20"}
    wanted = offers.wanted_of(params, 3, ["spot", "spot"])
    assert wanted == offers.Wanted(KIND, 3, frozenset(["spot"]), 48, "2026-12-01", "2026-12-20")
