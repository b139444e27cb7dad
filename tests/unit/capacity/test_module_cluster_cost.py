"""cluster_cost as a module: what it asks prices of, and what it says of the whole."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import cluster_cost

from tests.unit.aws_answers import Aws, Item
from tests.unit.capacity.test_prices import product
from tests.unit.in_aws import Module

TWO: Item = {"instance_type": "trn1.32xlarge", "count": 2}
PRICES = {"trn1.32xlarge": "10", "m5.large": "0.5"}


@pytest.fixture
def aws() -> Aws:
    return Aws({"GetProducts": {"PriceList": [product("10")]}})


@pytest.fixture
def module(aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    return Module(cluster_cost, {"pricing": aws.client("pricing")}, monkeypatch, capsys, TWO)


def test_nodes_are_asked_for_in_the_region_that_tells_prices(module: Module, aws: Aws) -> None:
    result = module.run()
    assert (result["changed"], result["dollars_per_hour"]) == (False, 20.0)
    assert result["sentence"] == (
        "2 trn1.32xlarge in us-west-2 cost 20.00 USD an hour on demand. Not in it: storage, addresses and traffic."
    )
    assert module.asked == [("pricing", "us-east-1")]
    filters = {one["Field"]: one["Value"] for one in aws.last("GetProducts")["Filters"]}
    assert (filters["instanceType"], filters["regionCode"]) == ("trn1.32xlarge", "us-west-2")


def test_all_that_is_billed_by_the_hour_is_counted_once_each(module: Module, aws: Aws) -> None:
    beside: Item = {"head_instance_type": "m5.large", "system_instance_type": "m5.large", "system_count": 3}
    result = module.run(prices=PRICES, unknown=["the control plane"], **beside)
    assert (result["dollars_per_hour"], aws.asked) == (22.0, [])
    said = result["sentence"]
    assert "the head node m5.large 0.5 USD an hour; 3 system nodes m5.large 1.5" in said
    assert "together 22.00 USD an hour. Not in it: the control plane, storage, addresses and traffic." in said
    for none in ({"system_count": 0}, {"system_instance_type": ""}):
        assert module.run(prices=PRICES, **{**beside, **none})["dollars_per_hour"] == 20.5


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        ({}, False),
        ({"least": 0}, True),
        ({"least": 2}, False),
        ({"least": 0, "reserved": True}, False),
    ],
)
def test_nodes_that_need_not_run_cost_at_most_that(module: Module, arguments: Item, most: bool) -> None:
    said = module.run(prices=PRICES, head_instance_type="m5.large", **arguments)["sentence"]
    assert ("at most" in said) is most


def test_a_price_that_is_not_known_leaves_the_whole_unknown(module: Module, aws: Aws) -> None:
    result = module.run(nat_gateways=1, prices={"trn1.32xlarge": "none"})
    assert result["dollars_per_hour"] is None
    aws.answers["GetProducts"] = "AccessDeniedException"
    result = module.run(head_instance_type="m5.large")
    assert result["dollars_per_hour"] is None
    assert result["sentence"].startswith("What the cluster costs an hour is not known: AWS would not list the prices")
    result = module.run(head_instance_type="m5.large", prices={"m5.large": 1})
    assert result["sentence"].startswith("What 2 trn1.32xlarge in us-west-2 cost an hour is not known; the head node")


def test_what_is_paid_in_advance_needs_no_price(module: Module, aws: Aws) -> None:
    result = module.run(market="capacity-block")
    assert (aws.asked, result["dollars_per_hour"]) == ([], None)
    assert "nothing more in the Capacity Block, which is paid in advance" in result["sentence"]
