"""Internal action plugins: which module is called with what, and what is handed on, with answers of a test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.action.internal import (
    acceptance_report,
    cluster_lease,
    long_command,
    node_check,
)

from tests.unit.common.test_actions import FAILED, Asked
from tests.unit.common.test_asking_again import Item


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


CHECKS = [
    {"name": "clock", "result": "ok", "reason": ""},
    {"name": "cores", "result": "ok", "found": 2, "reason": ""},
]


@pytest.mark.parametrize(
    ("arguments", "offset", "synchronised", "result"),
    [
        ({}, 0, True, "ok"),
        ({}, 60, True, "failed"),
        ({"clock_offset": "90"}, 60, True, "ok"),
        ({}, 0, False, "failed"),
        ({"clock_synchronised": "no"}, 0, False, "ok"),
        ({"clock_synchronised": "yes"}, 0, False, "failed"),
    ],
)
def test_the_clock_of_a_node_is_judged_by_the_controllers(
    monkeypatch: pytest.MonkeyPatch, arguments: Item, offset: float, synchronised: bool, result: str
) -> None:
    monkeypatch.setattr(node_check.time, "time", lambda: 1000.0)
    clock = {"time": 1000.0 + offset, "synchronised": synchronised}
    answer = {"name": "a", "checks": CHECKS, "clock": clock, "gate": {"identity": "x", "failures": ["before"]}}
    asked = Asked(monkeypatch, node_check.ActionModule, [answer], **arguments)
    assert [check["result"] for check in asked.result["checks"]] == [result, "ok"]
    # What decides over the node goes by it as well.
    gate = asked.result["gate"]
    assert (gate["name"], gate["identity"], gate["cores"]) == ("a", "x", 2)
    assert len(gate["failures"]) == (result == "failed")
    assert gate["failures"] != ["before"]


def test_a_node_that_could_not_be_checked_has_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Asked(monkeypatch, node_check.ActionModule, [FAILED]).result["failed"]


def report(monkeypatch: pytest.MonkeyPatch, path: Path, check: bool = False) -> Item:
    collective = {"kind": "gloo", "nodes": ["a"], "wanted": True, "problem": "", "due": True}
    gate = {"collective": collective, "nodes": [], "drained": {}, "resumed": []}
    outcome = {
        "rc": 0,
        "stdout": '{"all_reduce": {"correct": true, "bus_bandwidth": 2, "bytes": 8, "microseconds": 1}}',
    }
    more = {"outcome": outcome, "collective_minimum": "1.5", "ranks": "4"}
    return Asked(
        monkeypatch, acceptance_report.ActionModule, [], check, path=str(path), nodes=[], gate=gate, **more
    ).result


def test_the_report_of_the_acceptance_is_written_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "reports" / "acceptance.json"
    assert report(monkeypatch, path, check=True)["changed"]
    assert not path.parent.exists()
    first = report(monkeypatch, path)
    assert (first["changed"], first.get("failed")) == (True, None)
    assert json.loads(path.read_text())["collective"] == first["collective"]
    assert first["lines"][-1] == "  collective: gloo all-reduce over 1 nodes, 4 ranks: 2 GB/s bus bandwidth"
    assert not report(monkeypatch, path)["changed"]


def test_a_report_that_cannot_be_written_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = report(monkeypatch, tmp_path / "file" / "acceptance.json")
    assert result["failed"]
    assert (
        result["msg"].endswith("; set acceptance_report_path.")
        and "acceptance.json cannot be written (" in result["msg"]
    )
