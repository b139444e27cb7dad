"""Internal action plugins: which module is called with what, and what is handed on, with answers of a test."""

from __future__ import annotations

import os
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.action.internal import cluster_lease, long_command

from tests.unit.controller.test_actions import Asked
from tests.unit.controller.test_asking_again import Item


def test_the_lease_is_of_the_run_and_not_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, cluster_lease.ActionModule, [{"changed": True}], name="a", pid=1)
    assert asked.calls == [("its own", {"name": "a", "pid": os.getppid()})]
    assert asked.result["changed"]


def test_a_worker_whose_run_was_killed_takes_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parent is then one that lives for ever, as process 1, by which the cluster would be taken for ever."""
    monkeypatch.setattr(cluster_lease, "parent_process", lambda: SimpleNamespace(pid=os.getppid() + 1))
    asked = Asked(monkeypatch, cluster_lease.ActionModule, [], name="a")
    assert asked.calls == []
    assert asked.result["failed"]
    assert "has ended" in asked.result["msg"]


def test_the_run_is_known_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is forked by multiprocessing, as those of Ansible."""
    kept: Any = get_context("fork").Queue()

    def work() -> None:
        kept.put(Asked(monkeypatch, cluster_lease.ActionModule, [{"changed": True}], name="a").calls)

    worker = get_context("fork").Process(target=work)
    worker.start()
    assert kept.get(timeout=60) == [("its own", {"name": "a", "pid": os.getpid()})]
    worker.join()


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
