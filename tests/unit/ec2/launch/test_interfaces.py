"""Network interfaces from what EC2 says about an instance type."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import (
    LAYOUTS,
    Interface,
    efa_count,
    known_network,
    network_of,
    plan_interfaces,
)
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES, has_efa
from hypothesis import given
from hypothesis import strategies as st
from moto.ec2.models.instance_types import INSTANCE_TYPES

EFA_LAYOUTS = [layout for layout in LAYOUTS if layout != "none"]
EFA_TYPES = sorted(name for name, record in INSTANCE_TYPES.items() if record["NetworkInfo"].get("EfaSupported"))


def record(limits: list[int], efa: int, kinds: list[str] | None = None) -> dict[str, Any]:
    """A DescribeInstanceTypes record with as many cards as limits."""
    cards: list[dict[str, Any]] = [
        {"NetworkCardIndex": index, "MaximumNetworkInterfaces": limit} for index, limit in enumerate(limits)
    ]
    for card in cards:
        if kinds is not None:
            card["InterfaceTypes"] = kinds
    info = {"NetworkCards": cards, "EfaSupported": efa > 0, "EfaInfo": {"MaximumEfaInterfaces": efa}}
    return {"InstanceType": "made.up", "NetworkInfo": info}


records = st.lists(st.integers(1, 15), min_size=1, max_size=40).flatmap(
    lambda limits: st.builds(
        record,
        st.just(limits),
        st.integers(1, len(limits)),
        st.sampled_from([None, ["interface", "efa", "efa-only"]]),
    )
)


@given(records, st.sampled_from([*LAYOUTS, None]))
def test_what_ec2_would_accept(described: dict[str, Any], layout: str | None) -> None:
    """One primary interface, distinct places, no card overfull, one EFA a card at most, the primary has an address."""
    network = network_of(described)
    planned = plan_interfaces(network, layout)
    places = [(item.card, item.device) for item in planned]
    assert places[0] == (0, 0)
    assert len(set(places)) == len(places)
    assert planned[0].kind != "efa-only"
    per_card = Counter(item.card for item in planned)
    limits = {card.card: card.maximum_interfaces for card in network.cards}
    assert all(number <= limits[card] for card, number in per_card.items())
    assert all(item.device < limits[item.card] for item in planned)
    efa = Counter(item.card for item in planned if item.kind != "interface")
    assert all(number == 1 for number in efa.values())
    assert sum(efa.values()) == efa_count(planned) <= network.maximum_efa


@given(records, st.sampled_from(["efa", "parallelcluster"]))
def test_every_efa_is_used(described: dict[str, Any], layout: str) -> None:
    """These layouts give away none, save where the record leaves no card for it."""
    network = network_of(described)
    carriers = [card for card in network.cards if card.carries_efa]
    assert efa_count(plan_interfaces(network, layout)) == min(network.maximum_efa, len(carriers))


@given(records, st.sampled_from(EFA_LAYOUTS), st.randoms(use_true_random=False))
def test_the_order_of_the_answer_of_ec2_does_not_matter(
    described: dict[str, Any], layout: str, shuffler: random.Random
) -> None:
    """Else a repeated run would ask for something else, with another token."""
    planned = plan_interfaces(network_of(described), layout)
    shuffler.shuffle(described["NetworkInfo"]["NetworkCards"])
    assert plan_interfaces(network_of(described), layout) == planned


@pytest.mark.parametrize("layout", EFA_LAYOUTS)
@pytest.mark.parametrize("name", EFA_TYPES)
def test_every_type_with_efa(name: str, layout: str) -> None:
    described = INSTANCE_TYPES[name]
    planned = plan_interfaces(network_of(described), layout)
    expected = described["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"]
    # hpc6id takes a single interface per card: with its address, or with EFA alone.
    single = described["NetworkInfo"]["NetworkCards"][0]["MaximumNetworkInterfaces"] == 1
    assert efa_count(planned) == (expected - 1 if single and layout == "efa-only" else expected)


@pytest.mark.parametrize("name", sorted(name for name, kind in TYPES.items() if kind.cards))
@pytest.mark.parametrize("layout", [*LAYOUTS, None])
def test_the_table_says_what_ec2_says(name: str, layout: str | None) -> None:
    described = network_of(INSTANCE_TYPES[name])
    if layout in EFA_LAYOUTS and not described.maximum_efa:
        with pytest.raises(TrainiumError, match="has no EFA"):
            plan_interfaces(known_network(name), layout)
        return
    assert plan_interfaces(known_network(name), layout) == plan_interfaces(described, layout)


@pytest.mark.parametrize("name", ["trn3.48xlarge", "trn3e.24xlarge"])
def test_of_a_type_whose_cards_nobody_has_published_ec2_is_asked(name: str) -> None:
    with pytest.raises(TrainiumError, match=f"network cards of instance type {name} are not known"):
        known_network(name)
    described = {**record([2] * 16, 16), "InstanceType": name}
    assert efa_count(plan_interfaces(network_of(described), "efa")) == 16
    assert has_efa(name) is None


@pytest.mark.parametrize(("name", "cards"), [("trn1.32xlarge", 8), ("trn1n.32xlarge", 16), ("trn2.48xlarge", 16)])
def test_layout_efa(name: str, cards: int) -> None:
    assert plan_interfaces(known_network(name), "efa") == [
        Interface(0, 0, "efa"),
        *[Interface(card, 1, "efa") for card in range(1, cards)],
    ]


@pytest.mark.parametrize("layout", ["efa-only", "parallelcluster"])
def test_layouts_with_one_address(layout: str) -> None:
    planned = plan_interfaces(known_network("trn1.32xlarge"), layout)
    assert planned == [Interface(0, 0, "interface"), *[Interface(card, 1, "efa-only") for card in range(8)]]


@pytest.mark.parametrize("layout", EFA_LAYOUTS)
def test_a_primary_card_without_efa(layout: str) -> None:
    planned = plan_interfaces(known_network("p6-b300.48xlarge"), layout)
    assert [item for item in planned if item.card == 0] == [Interface(0, 0, "interface")]
    assert len(planned) == 17


def test_cards_that_take_one_interface() -> None:
    network = network_of(record([1, 1], 2))
    assert plan_interfaces(network, "efa") == [Interface(0, 0, "efa"), Interface(1, 0, "efa")]
    assert plan_interfaces(network, "parallelcluster") == [Interface(0, 0, "efa"), Interface(1, 0, "efa-only")]
    assert plan_interfaces(network, "efa-only") == [Interface(0, 0, "interface"), Interface(1, 0, "efa-only")]


def test_a_reply_without_the_fields_is_completed_from_the_table() -> None:
    bare = {"InstanceType": "trn1.32xlarge", "NetworkInfo": {"MaximumNetworkInterfaces": 40}}
    assert plan_interfaces(network_of(bare), "efa") == plan_interfaces(known_network("trn1.32xlarge"), "efa")


def test_no_layout_means_efa_where_there_is_efa() -> None:
    assert len(plan_interfaces(known_network("trn1.32xlarge"), None)) == 8
    assert plan_interfaces(known_network("trn1.2xlarge"), None) == [Interface(0, 0, "interface")]


def test_what_cannot_be_planned() -> None:
    with pytest.raises(TrainiumError, match="not in the table"):
        known_network("m5.large")
    with pytest.raises(TrainiumError, match=r"network cards of instance type x\.y are not known"):
        network_of({"InstanceType": "x.y"})
    with pytest.raises(TrainiumError, match="is not one of"):
        plan_interfaces(known_network("trn1.32xlarge"), "best")
