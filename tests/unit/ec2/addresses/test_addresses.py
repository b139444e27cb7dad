"""Which Elastic IPs are associated, allocated and released."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._ec2.addresses import (
    AddressPlan,
    plan_addresses,
)
from hypothesis import given
from hypothesis import strategies as st

OWNER = ("bert", "compute")


def node(number: int) -> dict[str, Any]:
    primary = {"network_interface_id": f"eni-{number}", "network_card_index": 0, "device_index": 0}
    other = {"network_interface_id": f"eni-x{number}", "network_card_index": 1, "device_index": 1}
    return {"instance_id": f"i-{number}", "network_interfaces": [primary, other]}


def address(number: int, on: int | None = None, **tags: str) -> dict[str, Any]:
    """Associated with the primary interface of the node with that number; own by set='bert'."""
    item: dict[str, Any] = {
        "AllocationId": f"eipalloc-{number}",
        "Tags": [{"Key": f"trainium:{key}", "Value": value} for key, value in tags.items()],
    }
    if on is not None:
        item.update(AssociationId=f"eipassoc-{number}", NetworkInterfaceId=f"eni-{on}", InstanceId=f"i-{on}")
    return item


tag_sets = st.sampled_from([{"set": "bert"}, {}, {"set": "other"}, {"role": "network"}])
accounts = st.tuples(
    st.integers(0, 6),
    st.lists(
        st.tuples(st.none() | st.integers(0, 9), tag_sets), max_size=8, unique_by=lambda item: item[0] or id(item)
    ),
).map(
    lambda pair: (
        [node(number) for number in range(pair[0])],
        [address(number, on, **tags) for number, (on, tags) in enumerate(pair[1])],
    )
)


def carry_out(plan: AddressPlan, addresses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is there once the plan was carried out."""
    gone = {item["AllocationId"] for item in plan.release}
    result = [item for item in addresses if item["AllocationId"] not in gone]
    result += [address(100 + number, set="bert") for number in range(plan.allocate)]
    targets = {item["AllocationId"]: instance for item, instance in plan.associate}
    return [
        {
            **item,
            "AssociationId": "new",
            "InstanceId": targets[item["AllocationId"]],
            "NetworkInterfaceId": targets[item["AllocationId"]].replace("i-", "eni-"),
        }
        if item["AllocationId"] in targets
        else item
        for item in result
    ]


@given(accounts, st.booleans())
def test_two_rounds_settle_it(account: tuple[list[Any], list[Any]], wanted: bool) -> None:
    """The first allocates, the second associates, the third finds nothing to do."""
    nodes, addresses = account
    for _round in range(2):
        addresses = carry_out(plan_addresses(nodes, 0, addresses, OWNER, wanted), addresses)
    assert not plan_addresses(nodes, 0, addresses, OWNER, wanted).changes
    if wanted:
        served = {item["InstanceId"] for item in addresses if item.get("AssociationId")}
        assert {item["instance_id"] for item in nodes} <= served


@given(accounts, st.integers(0, 3), st.booleans())
def test_only_own_addresses_are_released(account: tuple[list[Any], list[Any]], launch: int, wanted: bool) -> None:
    nodes, addresses = account
    plan = plan_addresses(nodes, launch, addresses, OWNER, wanted)
    for item in plan.release:
        assert {"Key": "trainium:set", "Value": "bert"} in item["Tags"]
    for item, _instance in plan.associate:
        assert {"Key": "trainium:set", "Value": "other"} not in item["Tags"]
        assert {"Key": "trainium:role", "Value": "network"} not in item["Tags"]
        assert "AssociationId" not in item


def test_own_before_borrowed_before_allocated() -> None:
    borrowed, own = address(1), address(2, set="bert")
    plan = plan_addresses([node(1), node(2), node(3)], 0, [borrowed, own], OWNER, True)
    assert plan.associate == [(own, "i-1"), (borrowed, "i-2")]
    assert plan.allocate == 1


def test_addresses_are_kept_for_nodes_to_come() -> None:
    plan = plan_addresses([], 3, [address(1, set="bert")], OWNER, True)
    assert (plan.allocate, plan.release) == (2, [])


def test_a_node_that_is_replaced_leaves_its_address_to_the_one_that_comes() -> None:
    addresses = [address(1, on=1, set="bert"), address(2, on=2, set="bert")]
    plan = plan_addresses([node(1)], 1, addresses, OWNER, True, ["i-2"])
    assert plan == AddressPlan([], 0, [], 1)


def test_a_launch_for_which_there_are_addresses_has_something_to_associate() -> None:
    assert plan_addresses([], 2, [address(1), address(2), address(3)], OWNER, True).changes


def test_a_node_that_goes_gives_back_its_address() -> None:
    addresses = [address(1, on=1, set="bert"), address(2, on=2, set="bert")]
    plan = plan_addresses([node(1)], 0, addresses, OWNER, True)
    assert plan.release == addresses[1:]


def test_none_wanted() -> None:
    borrowed, own = address(1, on=1), address(2, on=2, set="bert")
    assert plan_addresses([node(1), node(2)], 0, [borrowed, own], OWNER, False) == AddressPlan([], 0, [own])
