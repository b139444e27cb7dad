"""node_ready: a node is asked anew until it answers, with a little more patience each time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.trainium.cluster.plugins.action.internal import node_ready

from tests.unit.controller.test_asking_again import asking
from tests.unit.passing_time import Clock


class Node:
    """Answers at the ``at``-th call; ``patience`` is what ssh is configured with, None for no such option."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, patience: int | None = 12, **arguments: Any) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.timeouts: list[int] = []
        self.resets = 0
        self.told: list[str] = []
        Clock().governs(monkeypatch, node_ready)
        monkeypatch.setattr(node_ready, "tell", self.told.append)
        self.action = asking(node_ready.ActionModule, [{}], **arguments)
        self.action._connection = SimpleNamespace(
            set_option=lambda _name, value: self.timeouts.append(value),
            get_option=self._option,
            reset=self._reset,
            _shell=SimpleNamespace(tmpdir="/tmp"),  # noqa: S108 - nothing is written there
        )
        self.action._execute_module = self._execute
        self._at, self._patience = at, patience

    def _option(self, _name: str) -> int:
        if self._patience is None:
            raise KeyError("timeout")
        return self._patience

    def _reset(self) -> None:
        self.resets += 1

    def _execute(self, name: str, arguments: Any, task_vars: Any = None) -> dict[str, Any]:
        self.asked.append((name, arguments))
        if len(self.asked) < self._at:
            raise AnsibleConnectionFailure("no route\nmore")
        return {"ansible_facts": {"a": 1}}

    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = self.action.run(task_vars={"inventory_hostname": "node-1"})
        return found


def test_a_node_that_answers_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, 1, gather_subset=["min"])
    result = node.run()
    assert result["ansible_facts"] == {"a": 1}
    assert result["waited"] == 0
    assert node.asked == [("ansible.legacy.setup", {"gather_subset": ["min"]})]
    assert (node.resets, node.told, node.timeouts) == (0, [], [5])


def test_each_try_is_more_patient_up_to_what_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, 4)
    node.run()
    assert node.timeouts == [5, 10, 12, 12]
    assert node.resets == 3
    assert node.asked[0] == ("ansible.legacy.setup", {"gather_subset": ["all"]})


def test_a_connection_without_a_limit_of_time_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, 2, patience=None)
    node.run()
    assert node.timeouts == []


def test_a_node_that_never_answers_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, 10**9, timeout=100)
    with pytest.raises(AnsibleConnectionFailure, match=r"^node-1 did not answer over ssh for 100 s: .*\(no route\)$"):
        node.run()
    assert node.told
    assert all(line.startswith("node_ready: waiting for node-1 to answer over ssh (") for line in node.told)
    assert len(node.told) < len(node.asked)
