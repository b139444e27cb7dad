"""The actions node_check and acceptance_report: the clock by the controller's, and the report that is written once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.action.internal import acceptance_report, node_check

from tests.unit.controller.test_actions import FAILED, Asked
from tests.unit.controller.test_asking_again import Item

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


def test_the_node_is_looked_at_between_two_looks_at_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock of the node between both may be right."""
    looks = iter([1000.0, 1010.0])
    monkeypatch.setattr(node_check.time, "time", lambda: next(looks, 1010.0))
    answer = {"name": "a", "checks": CHECKS, "clock": {"time": 1005.0, "synchronised": True}, "gate": {}}
    asked = Asked(monkeypatch, node_check.ActionModule, [answer], clock_offset=0)
    assert asked.result["checks"][0]["result"] == "ok"


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


def test_the_report_keeps_old_figures_and_is_readable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    result = report(monkeypatch, Path("~/reports/acceptance.json"))
    path = tmp_path / "reports/acceptance.json"
    assert (result["collective"]["passed"], result["collective"]["ranks"]) == (True, 4)
    text = path.read_text()
    assert text.endswith("}\n") and '\n  "passed": []' in text
    assert path.parent.stat().st_mode & 0o777 == 0o755
    path.write_text("no report")
    assert report(monkeypatch, Path("~/reports/acceptance.json"))["changed"]
