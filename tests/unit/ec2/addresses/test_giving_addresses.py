"""The Elastic IPs of a set as they are allocated, given, taken back and released: all or none, and nobody else's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tag_list
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import run_addresses
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.addresses import AddressPlan
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_addresses import Addresses

from tests.unit.passing_time import Clock

Item = dict[str, Any]
PARAMS: Item = {
    "name": "bert",
    "cluster_name": "c1",
    "role": "compute",
    "public_ip": "primary",
    "state": "present",
    "wait_timeout": 30,
}
TAGS = tag_list({"Name": "bert", "trainium:cluster": "c1", "trainium:role": "compute", "trainium:set": "bert"})
DENIED = AwsCallError("AWS would not allocate an Elastic IP: no (Denied)", "Denied")


class Ec2(Clock):
    """Addresses of an account, what fails, and what was done; time passes by sleeping alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *shown: list[Item]) -> None:
        super().__init__()
        self.shown, self.done = [*shown] or [[]], []  # type: list[list[Item]], list[Any]
        self.fails: dict[Any, Exception] = {}
        self.number = 0
        for name in ("describe_addresses", "allocate_address", "associate_address", "release_address"):
            monkeypatch.setattr(run_addresses.ec2, name, getattr(self, f"_{name}"))
        monkeypatch.setattr(run_addresses.ec2, "release_new_address", self._release_new_address)
        self.governs(monkeypatch, run_addresses)

    def _do(self, *what: Any) -> None:
        if what in self.fails:
            raise self.fails[what]
        self.done.append(what)

    def _describe_addresses(self, _client: Any, **request: Any) -> list[Item]:
        (one,) = request["Filters"]
        self._do("look", one["Name"], *one["Values"])
        return self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]

    def _allocate_address(self, _client: Any, tags: Any) -> Item:
        self.number += 1
        assert tags == TAGS
        self._do("allocate", self.number)
        return {"AllocationId": f"eipalloc-{self.number}"}

    def _associate_address(self, _client: Any, address: str, interface: str) -> None:
        self._do("associate", address, interface)

    def _release_new_address(self, _client: Any, address: str) -> None:
        self._do("release", address)

    def _release_address(self, _client: Any, address: Item) -> None:
        self._do("release", address["AllocationId"], address.get("AssociationId"))

    def addresses(self, **params: Any) -> Addresses:
        return Addresses(SimpleNamespace(), {**PARAMS, **params})


def node(number: int) -> Item:
    interface = {"network_interface_id": f"eni-{number}", "network_card_index": 0, "device_index": 0}
    return {"instance_id": f"i-{number}", "network_interfaces": [interface]}


def address(number: int, **more: Any) -> Item:
    return {"AllocationId": f"eipalloc-{number}", "Tags": TAGS, **more}


LOOK = ("look", "tag:trainium:cluster", "c1")


def test_all_are_allocated_and_known_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch)
    mine = ec2.addresses()
    made = mine.allocate(2)
    assert sorted(one["AllocationId"] for one in made) == ["eipalloc-1", "eipalloc-2"]
    assert made[0]["Tags"] == TAGS
    # They suffice, so that EC2 is not asked, which may not show them yet.
    plan = mine.free([node(1), node(2)])
    assert len(plan.associate) == 2
    assert mine.allocate(0) == []
    assert [one[0] for one in ec2.done] == ["allocate"] * 2


def test_of_those_that_cannot_all_be_had_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch)
    ec2.fails[("allocate", 2)] = DENIED
    with pytest.raises(AwsCallError) as error:
        ec2.addresses().allocate(2)
    assert error.value is DENIED
    assert ec2.done == [("allocate", 1), ("release", "eipalloc-1")]
    assert ec2.addresses().plan([], 1).allocate == 1


def test_what_cannot_be_taken_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch)
    ec2.fails = {("allocate", 2): DENIED, ("release", "eipalloc-1"): AwsCallError("AWS would not release it")}
    with pytest.raises(TrainiumError) as error:
        ec2.addresses().allocate(2)
    assert str(error.value) == (f"{DENIED}; addresses are left, which state=absent releases: AWS would not release it")


def test_each_node_gets_its_own_at_card_0(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch)
    pairs: list[Any] = [(address(1), "i-2"), (address(2), "i-1")]
    ec2.addresses().associate(AddressPlan(pairs, 0, []), [node(1), node(2)])
    assert sorted(ec2.done) == [("associate", "eipalloc-1", "eni-2"), ("associate", "eipalloc-2", "eni-1")]


def test_after_a_failure_only_what_no_node_has_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """EC2's answer may be lost after the address was given."""
    ec2 = Ec2(monkeypatch, [{"AssociationId": "eipassoc-1"}], [{}])
    ec2.fails[("associate", "eipalloc-2", "eni-2")] = DENIED
    mine = ec2.addresses()
    with pytest.raises(AwsCallError):
        mine.associate(AddressPlan([(address(1), "i-1"), (address(2), "i-2")], 0, []), [node(1), node(2)])
    ec2.done.clear()
    assert mine.take_back([address(1), address(2), address(3)]) == ""
    assert ec2.done == [
        ("look", "allocation-id", "eipalloc-1"),
        ("look", "allocation-id", "eipalloc-2"),
        ("release", "eipalloc-2"),
        ("release", "eipalloc-3"),
    ]


def test_what_is_released_is_as_it_is_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch, [address(1), address(3)])
    mine = ec2.addresses()
    mine.release([])
    assert ec2.done == []
    mine.release([address(1, AssociationId="eipassoc-1"), address(2, AssociationId="eipassoc-2")])
    assert ec2.done[0] == LOOK
    assert sorted(ec2.done[1:]) == [("release", "eipalloc-1", None), ("release", "eipalloc-2", "eipassoc-2")]
    # They are no longer there to be given.
    assert [one["AllocationId"] for one, _node in mine.plan([node(1)], 1).associate] == ["eipalloc-3"]
    assert mine.plan([node(1)], 1).allocate == 1


def test_an_address_that_ec2_still_shows_with_a_node_that_is_gone_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = address(1, AssociationId="eipassoc-1", InstanceId="i-9")
    ec2 = Ec2(monkeypatch, [taken], [taken], [address(1)])
    mine = ec2.addresses()
    mine.look()
    assert [pair[1] for pair in mine.free([node(1)]).associate] == ["i-1"]
    assert ec2.done == [LOOK] * 3
    ec2 = Ec2(monkeypatch, [taken])
    said = "EC2 still shows 1 of the addresses of bert with nodes that are gone; run the same again"
    with pytest.raises(TrainiumError, match=said):
        ec2.addresses().free([node(1)])
    assert ec2.now == 30


@pytest.mark.parametrize(
    ("params", "allocate"), [({}, 2), ({"public_ip": "none"}, 0), ({"state": "absent"}, 0), ({"state": "stopped"}, 2)]
)
def test_only_nodes_that_want_one_get_one(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, str], allocate: int
) -> None:
    assert Ec2(monkeypatch).addresses(**params).plan([node(1)], 1).allocate == allocate
