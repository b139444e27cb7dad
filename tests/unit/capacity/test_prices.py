"""What a price list says, and what a cluster costs by it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import prices
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.prices import Line, Nodes
from hypothesis import given
from hypothesis import strategies as st

NODES = Line("trn1.32xlarge", 2, Decimal(43))
OWN = Line("trn1.32xlarge", 2, Decimal(21), own=True)
HEAD = Line("the head node m5.2xlarge", 1, Decimal("0.384"))
GATEWAY = Line("a NAT gateway", 1, Decimal("0.045"))


def product(price: Any, unit: str = "Hrs", usage: str = "USW2-BoxUsage:trn1.32xlarge", term: str = "OnDemand") -> str:
    dimension = {"unit": unit, "pricePerUnit": {"USD": price}}
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usage}},
            "terms": {term: {"SKU.JRTCKXETXF": {"priceDimensions": {"SKU.JRTCKXETXF.6YS6EN2CT7": dimension}}}},
        }
    )


@given(st.decimals("0.0001", "999", places=4))
def test_the_price_of_an_hour_on_demand_is_found_among_others(price: Decimal) -> None:
    others = [product("0.0000000000"), product("9999", "GB"), product("9999", term="Reserved"), product("none")]
    assert prices.hourly([*others, product(f"{price:.10f}")]) == price
    assert prices.hourly(others) is None


@pytest.mark.parametrize(
    "text", ["", "<html>", "[]", "{}", '{"product": 1}', '{"product": {"attributes": {}}, "terms": []}']
)
def test_a_text_that_is_no_product_has_no_price(text: str) -> None:
    assert prices.hourly([text]) is None
    assert prices.hourly([text, product("2.5")]) == Decimal("2.5")


def test_of_a_gateway_only_the_hours_count() -> None:
    texts = [
        product("0.045", "GB", "USW2-NatGateway-Bytes"),
        product("0.047", "Hrs", "USW2-NatGateway-Hours"),
        product("9", "Hrs", "USW2-Other"),
        product("9", "Hrs", "USW2-RegionalNatGateway-Hours"),
    ]
    assert prices.hourly(texts, prices.GATEWAY_HOURS) == Decimal("0.047")
    assert prices.hourly([product("0.05", "Hrs", "NatGateway-Hours")], prices.GATEWAY_HOURS) == Decimal("0.05")


@pytest.mark.parametrize(
    ("region", "asked"),
    [
        ("us-west-2", "us-east-1"),
        ("eu-central-1", "eu-central-1"),
        ("ap-south-1", "ap-south-1"),
        ("ap-southeast-4", "us-east-1"),
        ("us-gov-west-1", ""),
        ("cn-north-1", ""),
    ],
)
def test_where_the_price_list_is(region: str, asked: str) -> None:
    assert prices.asked_in(region) == asked


@pytest.mark.parametrize("text", ["-1", "much", "", "NaN", "Infinity", None, "1e30", 10**9])
def test_what_is_no_amount(text: Any) -> None:
    assert prices.dollars(text) is None


HEAD_COST, GATEWAY_COST = "the head node m5.2xlarge 0.384 USD an hour", "a NAT gateway 0.045 USD an hour"
REST = "storage, addresses and traffic."
ON_DEMAND, SPOT = (
    "2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand",
    ", and at most that on the spot market",
)


@pytest.mark.parametrize(
    ("nodes", "others", "how", "parts"),
    [
        (NODES, [], "on-demand", ["2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand", REST]),
        (
            NODES,
            [HEAD, GATEWAY],
            "on-demand",
            [
                "2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand",
                f"{HEAD_COST}; {GATEWAY_COST}; together 43.43 USD an hour",
                REST,
            ],
        ),
        (
            NODES,
            [HEAD._replace(price=None), GATEWAY],
            "spot",
            [
                "2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand, and at most that on the spot market",
                GATEWAY_COST,
                f"the head node m5.2xlarge, {REST}",
            ],
        ),
        (
            NODES,
            [HEAD],
            "capacity-block",
            [
                "2 trn1.32xlarge in us-west-2 cost nothing more in the Capacity Block, which is paid in advance",
                HEAD_COST,
                REST,
            ],
        ),
        (
            Line("trn2.48xlarge", 1, None),
            [],
            "on-demand",
            [
                "AWS's price list does not say what 1 trn2.48xlarge in us-west-2 costs an hour",
                "set trainium_price_per_hour",
                REST,
            ],
        ),
        (
            NODES,
            [GATEWAY],
            Nodes("on-demand", 0),
            [
                f"{ON_DEMAND} while all of them run, and nothing while none does",
                f"{GATEWAY_COST}; together at most 43.05 USD an hour",
                REST,
            ],
        ),
        (
            NODES,
            [],
            Nodes("spot", 1),
            [
                f"{ON_DEMAND}{SPOT} while all of them run, and 21.50 USD while only 1 of them runs",
                REST,
            ],
        ),
        (
            NODES,
            [GATEWAY],
            Nodes("on-demand", 0, reserved=True),
            [
                f"{ON_DEMAND}, which the capacity reservation costs with or without them",
                f"{GATEWAY_COST}; together 43.05 USD an hour",
                REST,
            ],
        ),
        (
            OWN,
            [GATEWAY],
            "spot",
            [
                "2 trn1.32xlarge in us-west-2 cost 21.00 USD an hour by trainium_price_per_hour",
                f"{GATEWAY_COST}; together 21.05 USD an hour",
                REST,
            ],
        ),
    ],
)
def test_what_a_cluster_costs(nodes: Line, others: list[Line], how: Nodes | str, parts: list[str]) -> None:
    said = "; ".join(parts[:-1]) + f". Not in it: {parts[-1]}"
    if isinstance(how, str):
        how = Nodes(how, nodes.number)
    assert prices.sentence(nodes, others, "us-west-2", how) == said


def test_a_price_that_could_not_be_asked_leaves_the_others() -> None:
    how, others = Nodes("on-demand", 2), [GATEWAY._replace(price=None)]
    assert prices.sentence(OWN, others, "us-west-2", how, "AWS would not (Denied)") == (
        "2 trn1.32xlarge in us-west-2 cost 21.00 USD an hour by trainium_price_per_hour. "
        f"Not in it: a NAT gateway, {REST} Not all prices are known: AWS would not (Denied)."
    )
    said = prices.sentence(NODES._replace(price=None), [HEAD], "us-west-2", how, "AWS would not (Denied)")
    assert said.startswith(f"What 2 trn1.32xlarge in us-west-2 cost an hour is not known; {HEAD_COST}. Not in it:")


def test_an_amount_keeps_what_matters() -> None:
    shown = [prices.shown(Decimal(price)) for price in ("43", "21.505", "1", "0.384", "0.0104", "0.00004", "0")]
    assert shown == ["43.00", "21.51", "1.00", "0.384", "0.0104", "0", "0.00"]
