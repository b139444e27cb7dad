"""The nodes of a set: how often EC2 is asked for them, and how long they are waited for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import run_nodes
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_nodes import Nodes

PARAMS = {"cluster_name": "c1", "name": "bert", "wait_timeout": 100}


class Ec2:
    """Shows one node in one state after the other, the last for ever; and how it was waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *states: str) -> None:
        self.states, self.looks = list(states), 0
        self.waited: list[tuple[str, list[str], float]] = []
        monkeypatch.setattr(run_nodes.ec2, "describe_instances", self._describe)
        monkeypatch.setattr(run_nodes, "wait_for", self._wait)
        self.nodes = Nodes(SimpleNamespace(), PARAMS)

    def _describe(self, _client: Any, filters: dict[str, str]) -> list[dict[str, Any]]:
        assert filters == {"tag:trainium:cluster": "c1", "tag:trainium:set": "bert"}
        self.looks += 1
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return [{"InstanceId": "i-1", "State": {"Name": state}}]

    def _wait(
        self, goal: str, ids: list[str], look: Callable[[], Any], timeout: float, _progress: Any, _pace: Any
    ) -> None:
        self.waited.append((goal, ids, timeout))
        self.seen = [[node["state"] for node in look()] for _time in range(2)]


def test_ec2_is_asked_again_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch, "pending", "running")
    assert [node["state"] for _time in range(3) for node in ec2.nodes.now()] == ["pending"] * 3
    assert ec2.looks == 1
    ec2.nodes.changed()
    assert [node["state"] for _time in range(2) for node in ec2.nodes.now()] == ["running"] * 2
    assert ec2.looks == 2
    ec2.nodes.find()
    assert ec2.looks == 3


@pytest.mark.parametrize(("goal", "seconds"), [("running", 100), ("stopped", 300), ("terminated", 300)])
def test_nodes_may_take_longer_to_end_than_to_run(monkeypatch: pytest.MonkeyPatch, goal: str, seconds: int) -> None:
    ec2 = Ec2(monkeypatch, "pending")
    ec2.nodes.wait_for(goal, ["i-1"])
    assert ec2.waited == [(goal, ["i-1"], seconds)]


def test_a_look_that_was_just_made_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch, "running")
    ec2.nodes.wait_for("running", ["i-1"], [{"state": "pending"}])
    assert (ec2.seen, ec2.looks) == ([["pending"], ["running"]], 1)
    # One that shows the goal tells nothing of the addresses that come with it.
    ec2.nodes.wait_for("running", ["i-1"], [{"state": "running"}])
    ec2.nodes.wait_for("running", ["i-1"], [])
    assert ec2.looks == 5
