"""The search of regions and the costs of a cluster: what is asked, what a failure hides, and what is said."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import run_market
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.run_market import Market, Region, cost
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.quotas import Usage

from tests.unit.capacity.test_offers import KIND, QUOTA, WANTED, Item, offering, reservation
from tests.unit.capacity.test_prices import product

DENIED = AwsCallError("AWS would not tell: no (Denied)", "Denied", "no")
SPOT = {"AvailabilityZone": "us-west-2d", "SpotPrice": "7", "Timestamp": datetime(2026, 11, 26, tzinfo=timezone.utc)}


class Aws:
    """Answers of AWS by what is asked, or the error that is raised in place of one; and all that was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        self.asked: dict[str, list[Any]] = {}
        self.answers: dict[str, Any] = {
            "zones_offering": ["us-west-2d"],
            "usage": Usage(QUOTA, 0, 128),
            "spot_prices": [SPOT],
            "placement_scores": [{"AvailabilityZoneId": "usw2-az4", "Score": 3}],
            "zone_names": {"usw2-az4": "us-west-2d"},
            "products": [product("21.5")],
            "block_offerings": [offering()],
            "describe": [reservation()],
            **answers,
        }
        for place, names in (
            (run_market.ec2, ("zones_offering",)),
            (run_market.calls, ("describe",)),
            (
                run_market.calls_market,
                ("spot_prices", "placement_scores", "zone_names", "products", "block_offerings"),
            ),
        ):
            for name in names:
                monkeypatch.setattr(place, name, self._answering(name))

    def _answering(self, name: str) -> Any:
        def answer(client: Any, *positional: Any, **named: Any) -> Any:
            self.asked.setdefault(name, []).append(named or positional)
            found = self.answers[name]
            found = found.get(client.meta.region_name) if isinstance(found, _ByRegion) else found
            if isinstance(found, Exception):
                raise found
            return found

        return answer

    def region(self, name: str = "us-west-2", pricing: bool = True) -> Region:
        client = SimpleNamespace(meta=SimpleNamespace(region_name=name))
        usage = self._answering("usage")
        return Region(name, client, lambda kind, market: usage(client, kind, market), client if pricing else None)


class _ByRegion(dict[str, Any]):
    """An answer for each region."""


def test_each_market_is_asked_for_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch)
    market = Market(WANTED)
    (found,) = market.find([aws.region()])
    assert market.notes == []
    assert (found.region, found.zones, found.on_demand) == ("us-west-2", ["us-west-2d"], Decimal("21.5"))
    assert (found.spot, found.scores) == ({"us-west-2d": Decimal(7)}, {"us-west-2d": 3})
    assert found.usage == {"on-demand": Usage(QUOTA, 0, 128), "spot": Usage(QUOTA, 0, 128)}
    assert (found.reservations, found.blocks) == ([reservation()], [offering()])
    (spot,) = aws.asked["spot_prices"]
    assert (spot["InstanceTypes"], spot["ProductDescriptions"]) == ([KIND], ["Linux/UNIX"])
    # Prices that hold now are those since now.
    assert abs((datetime.now(timezone.utc) - spot["StartTime"]).total_seconds()) < 300
    assert aws.asked["placement_scores"] == [
        {
            "InstanceTypes": [KIND],
            "TargetCapacity": 4,
            "TargetCapacityUnitType": "units",
            "SingleAvailabilityZone": True,
            "RegionNames": ["us-west-2"],
        }
    ]
    assert aws.asked["describe"] == [({"instance-type": KIND, "state": ["active", "scheduled"]},)]
    assert aws.asked["block_offerings"] == [{"InstanceType": KIND, "InstanceCount": 4, "CapacityDurationHours": 24}]
    (products,) = aws.asked["products"]
    assert products["ServiceCode"] == "AmazonEC2"
    fields = {one["Field"]: one["Value"] for one in products["Filters"]}
    assert (fields["instanceType"], fields["regionCode"], fields["operatingSystem"]) == (KIND, "us-west-2", "Linux")
    assert sorted(aws.asked["usage"]) == [(KIND, "on-demand"), (KIND, "spot")]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("reservation", {"describe"}),
        ("spot", {"spot_prices", "placement_scores", "zone_names", "usage"}),
        ("on-demand", {"products", "usage"}),
        ("capacity-block", {"block_offerings"}),
    ],
)
def test_nothing_else_is_asked(monkeypatch: pytest.MonkeyPatch, name: str, asked: set[str]) -> None:
    aws = Aws(monkeypatch)
    Market(WANTED._replace(markets=frozenset([name]))).find([aws.region()])
    assert set(aws.asked) == {"zones_offering", *asked}
    assert {market for _kind, market in aws.asked.get("usage", [])} <= {name}


@pytest.mark.parametrize(
    ("call", "empty"),
    [
        ("spot_prices", {"spot": {}, "scores": {}}),
        ("placement_scores", {"scores": {}}),
        ("zone_names", {"scores": {}}),
        ("products", {"on_demand": None}),
        ("block_offerings", {"blocks": []}),
        ("describe", {"reservations": []}),
        ("usage", {"usage": {}}),
    ],
)
@pytest.mark.parametrize("error", [DENIED, KeyError("x")])
def test_what_fails_hides_nothing_else(
    monkeypatch: pytest.MonkeyPatch, call: str, empty: Item, error: Exception
) -> None:
    market = Market(WANTED)
    (whole,) = Market(WANTED).find([Aws(monkeypatch).region()])
    (found,) = market.find([Aws(monkeypatch, **{call: error}).region()])
    assert found == whole._replace(**empty)
    reason = str(DENIED) if error is DENIED else "an error that should not be: KeyError: 'x'; please report it"
    # One note, though two markets have a quota.
    assert market.notes == [f"us-west-2 did not tell all: {reason}."]


@pytest.mark.parametrize(
    ("answers", "left"),
    [
        ({"spot_prices": []}, {"placement_scores", "zone_names"}),
        ({"placement_scores": []}, {"zone_names"}),
    ],
)
def test_scores_and_names_are_not_asked_for_in_vain(
    monkeypatch: pytest.MonkeyPatch, answers: Item, left: set[str]
) -> None:
    aws = Aws(monkeypatch, **answers)
    (found,) = Market(WANTED).find([aws.region()])
    assert found.scores == {}
    assert left.isdisjoint(aws.asked)


def test_a_region_without_the_type_is_asked_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch, zones_offering=[])
    (found,) = Market(WANTED).find([aws.region()])
    assert found == run_market.offers.only_zones("us-west-2", [])
    assert set(aws.asked) == {"zones_offering"}


def test_regions_that_do_not_answer_are_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    off = AwsCallError("AWS would not list the zones: off (AuthFailure)", "AuthFailure", "off")
    zones = _ByRegion({"a-b-1": off, "us-east-2": ["us-east-2a"], "c-d-1": DENIED, "us-west-2": ["us-west-2d"]})
    aws = Aws(monkeypatch, zones_offering=zones)
    market = Market(WANTED)
    market.notes.append("us-west-2: noted before")
    found = market.find([aws.region(name) for name in zones])
    assert [one.region for one in found] == ["us-east-2", "us-west-2"]
    assert [note.partition(" left out: ")[2] or note for note in market.notes] == [
        "the account may not have it enabled, or the credentials are wrong there; AWS says off (AuthFailure).",
        "AWS would not tell: no (Denied).",
        "us-west-2: noted before",
    ]
    assert "a-b-1" in market.notes[0] and "c-d-1" in market.notes[1]


def test_where_no_region_answers_it_is_a_failure_with_all_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch, zones_offering=DENIED)
    with pytest.raises(TrainiumError) as error:
        Market(WANTED).find([aws.region("us-east-2"), aws.region()])
    assert str(error.value) == (
        "no region answered: The region us-east-2 was left out: AWS would not tell: no (Denied). "
        "The region us-west-2 was left out: AWS would not tell: no (Denied)"
    )


# --- what a cluster costs ---

NODES = [("trn1.32xlarge", KIND, 2), ("the head node m5.2xlarge", "m5.2xlarge", 1)]


def test_each_line_is_the_price_of_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = product("0.045", "Hrs", "USW2-NatGateway-Hours")
    aws = Aws(monkeypatch, products=[product("21.5"), gateway])
    found = cost(aws.region().client, "us-west-2", [*NODES, ("2 more", KIND, 2), ("paid", "", 1)], 2, {})
    assert found.trouble == ""
    assert [(line.what, line.number, line.price, line.own) for line in found.lines] == [
        ("trn1.32xlarge", 2, Decimal(43), False),
        ("the head node m5.2xlarge", 1, Decimal("21.5"), False),
        ("2 more", 2, Decimal(43), False),
        ("paid", 1, None, False),
        ("2 NAT gateways", 2, Decimal("0.090"), False),
    ]
    kinds = [{one["Field"]: one["Value"] for one in asked["Filters"]} for asked in aws.asked["products"]]
    assert [one.get("instanceType", one.get("productFamily")) for one in kinds] == [KIND, "m5.2xlarge", "NAT Gateway"]
    assert {asked["ServiceCode"] for asked in aws.asked["products"]} == {"AmazonEC2"}
    assert cost(aws.region().client, "us-west-2", NODES, 1, {}).lines[-1].what == "a NAT gateway"
    assert len(cost(aws.region().client, "us-west-2", NODES, 0, {}).lines) == 2


def test_own_prices_are_not_asked_for_and_a_failure_is_the_last_question(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch, products=DENIED)
    found = cost(aws.region().client, "us-west-2", [*NODES, ("more", "m5.large", 1)], 1, {KIND: Decimal(10)})
    assert [(line.price, line.own) for line in found.lines] == [
        (Decimal(20), True),
        (None, False),
        (None, False),
        (None, False),
    ]
    assert found.trouble == str(DENIED)
    assert len(aws.asked["products"]) == 1


def test_without_a_price_list_nothing_has_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch)
    found = cost(None, "cn-north-1", NODES, 1, {})
    assert [line.price for line in found.lines] == [None, None, None]
    assert (found.trouble, aws.asked) == ("", {})
