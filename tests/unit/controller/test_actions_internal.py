"""Internal action plugins: which module is called with what, and what is handed on, with answers of a test."""

from __future__ import annotations

import os

import pytest
from ansible_collections.trainium.cluster.plugins.action.internal import cluster_lease, long_command

from tests.unit.controller.test_actions import Asked
from tests.unit.controller.test_asking_again import Item


def test_the_lease_is_of_the_run_and_not_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, cluster_lease.ActionModule, [{"changed": True}], name="a", pid=1)
    assert asked.calls == [("its own", {"name": "a", "pid": os.getppid()})]
    assert asked.result["changed"]


@pytest.mark.parametrize(
    ("answer", "msg"),
    [
        ({"rc": 0}, None),
        ({"rc": 1, "failed": True, "msg": "non-zero return code"}, "non-zero return code"),
        ({"rc": 124, "failed": True, "msg": "x"}, "pip did not end within 60 s"),
        ({"rc": 137, "failed": True, "msg": "x"}, "pip did not end within 60 s"),
        ({"rc": 124}, None),
    ],
)
def test_a_command_has_its_time(monkeypatch: pytest.MonkeyPatch, answer: Item, msg: str | None) -> None:
    arguments: Item = {"argv": ["pip", "install"], "timeout": 60, "chdir": "/w", "creates": "/c"}
    asked = Asked(monkeypatch, long_command.ActionModule, [answer], **arguments)
    argv = ["timeout", "--kill-after=10", "60", "pip", "install"]
    assert asked.calls == [("ansible.legacy.command", {"argv": argv, "chdir": "/w", "creates": "/c"})]
    assert asked.result.get("msg") == msg
