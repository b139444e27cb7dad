"""Whose an Elastic IP is at the moment, and what follows from that."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.addresses import (
    AddressPlan,
    is_own,
    plan_addresses,
)

from tests.unit.ec2.addresses.test_addresses import OWNER, address, node


@pytest.mark.parametrize(
    "holder",
    [
        {"NetworkInterfaceId": "eni-1", "InstanceId": "i-1"},
        # DescribeAddresses leaves out one or the other for a while.
        {"NetworkInterfaceId": "eni-1"},
        {"InstanceId": "i-1"},
        {"NetworkInterfaceId": "eni-unknown", "InstanceId": "i-1"},
    ],
)
def test_a_node_that_has_one_needs_no_other(holder: dict[str, str]) -> None:
    held = {**address(1, set="bert"), "AssociationId": "eipassoc-1", **holder}
    assert plan_addresses([node(1)], 0, [held], OWNER, True) == AddressPlan([], 0, [])


def test_what_is_borrowed_and_on_a_stranger_stays_there() -> None:
    """Only what the set has allocated is given back."""
    assert plan_addresses([node(1)], 0, [address(1, on=9)], OWNER, True) == AddressPlan([], 1, [])
    assert plan_addresses([], 0, [address(1, on=9)], OWNER, True) == AddressPlan([], 0, [])


def test_those_of_another_role_or_set_are_left_alone() -> None:
    other = [address(1, set="other"), address(2, role="network"), address(3, set="bert", role="network")]
    assert plan_addresses([node(1)], 0, other, OWNER, True) == AddressPlan([], 1, [])
    same = address(4, set="bert", role="compute")
    assert plan_addresses([node(1)], 0, [*other, same], OWNER, True) == AddressPlan([(same, "i-1")], 0, [])


def test_what_is_too_much_is_given_back_if_it_is_own() -> None:
    own, borrowed = [address(number, set="bert") for number in (1, 2, 3)], address(0)
    plan = plan_addresses([node(1)], 1, [borrowed, *own], OWNER, True)
    assert plan == AddressPlan([(own[0], "i-1")], 0, [own[2]], 1)


@pytest.mark.parametrize(
    ("keep", "launch", "free", "plan"),
    [
        (0, 2, 1, (0, 1, 1)),
        (0, 2, 2, (0, 0, 2)),
        (1, 2, 2, (1, 1, 1)),
        (2, 1, 1, (1, 2, 0)),
        (1, 0, 0, (0, 1, 0)),
        (0, 0, 2, (0, 0, 0)),
    ],
)
def test_nodes_that_are_there_come_before_those_to_come(
    keep: int, launch: int, free: int, plan: tuple[int, int, int]
) -> None:
    addresses = [address(number, set="bert") for number in range(free)]
    made = plan_addresses([node(number) for number in range(keep)], launch, addresses, OWNER, True)
    assert (len(made.associate), made.allocate, made.reuse) == plan


def test_each_part_of_a_plan_is_a_change() -> None:
    item = address(1)
    assert AddressPlan([(item, "i-1")], 0, []).changes is True
    assert AddressPlan([], 1, []).changes is True
    assert AddressPlan([], 0, [item]).changes is True
    assert AddressPlan([], 0, [], 1).changes is True
    assert AddressPlan([], 0, []).changes is False


def test_own_is_what_a_set_has_allocated() -> None:
    assert is_own(address(1, set="other"))
    assert not is_own(address(1, role="compute"))
