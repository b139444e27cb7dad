"""The report and its lines on the screen."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._node.health_report import (
    collective_line,
    make_report,
    settle,
    table,
)

PASSED_TEST = {"kind": "gloo", "nodes": ["a", "b"], "ranks": 2, "passed": True, "bus_bandwidth": 1.25, "message": ""}


def check(name: str, result: str = "ok", found: Any = 1, reason: str = "") -> dict[str, Any]:
    message = f"{reason}; do something." if reason else ""
    return {"name": name, "result": result, "found": found, "wanted": 1, "reason": reason, "message": message}


def node(name: str, *checks: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "instance_id": f"i-{name}", "instance_type": "trn1.32xlarge", "checks": list(checks)}


def verdict(name: str, result: str, *checks: dict[str, Any], slurm_reason: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "address": "192.0.2.1",
        "result": result,
        "slurm_reason": slurm_reason,
        "checks": list(checks),
    }


def report() -> dict[str, Any]:
    nodes = [
        node("a", check("devices", found=16), check("cores", found=32), check("driver", "skipped")),
        node("b", check("devices", "failed", 15, "15 of 16 Neuron devices")),
        node("c", check("disk", found={"/": 3.5})),
    ]
    gate = [
        verdict("a", "passed", check("ssh")),
        verdict("b", "failed", check("ssh"), slurm_reason="acceptance: 15 of 16 Neuron devices"),
        verdict("c", "held", slurm_reason="disk"),
        verdict("d", "failed"),
    ]
    return make_report(nodes, gate, PASSED_TEST)


def test_every_node_is_in_one_list() -> None:
    made = report()
    assert (made["passed"], made["failed"], made["held"]) == (["a"], ["b", "d"], ["c"])
    assert [check["name"] for check in made["nodes"][0]["checks"]] == ["devices", "cores", "driver", "ssh"]
    assert made["nodes"][3]["checks"][0]["reason"] == "lost in the middle of the run"


def test_lines_of_the_screen() -> None:
    lines = table(report(), {"b": "acceptance: 15 of 16 Neuron devices"}, ["e"])
    assert lines == [
        "acceptance: 1 of 4 nodes passed",
        "  a  passed  16 devices, 32 cores, not checked: driver",
        "  b  FAILED  15 of 16 Neuron devices",
        "  c  held    drained in Slurm, left so: disk",
        "  d  FAILED  lost in the middle of the run",
        "  b: devices: 15 of 16 Neuron devices; do something.",
        "  d: reached: Ansible lost it earlier in this run; see the task that failed on it.",
        '  b: drained in Slurm, "acceptance: 15 of 16 Neuron devices"',
        "  e: resumed in Slurm",
        "  collective: gloo all-reduce over 2 nodes, 2 ranks: 1.25 GB/s bus bandwidth",
    ]


def test_the_collective_in_one_line() -> None:
    assert collective_line({"kind": "none", "skipped": "switched off"}) == "collective: not run, switched off"
    failed = {"kind": "nccom", "passed": False, "message": "too slow; look."}
    assert collective_line(failed) == "collective: nccom-test FAILED: too slow; look."


def test_figures_of_checks_that_passed_both_times_are_no_news() -> None:
    before, now = report(), report()
    now["nodes"][2]["checks"][0]["found"] = {"/": 3.4}
    assert settle(copy.deepcopy(now), before) == before
    now["nodes"][1]["checks"][0]["found"] = 14
    assert settle(copy.deepcopy(now), before) != before
    assert settle(copy.deepcopy(now), None) == now
    assert settle(copy.deepcopy(now), {"nodes": [1]}) == now


def test_a_replaced_node_is_news() -> None:
    before, now = report(), report()
    now["nodes"][2]["instance_id"] = "i-other"
    now["nodes"][2]["checks"][0]["found"] = {"/": 3.4}
    assert settle(copy.deepcopy(now), before) == now


def test_check_mode_says_would() -> None:
    lines = table(report(), {"b": "acceptance: bad"}, ["e"], dry=True)
    assert lines[0] == "acceptance: 1 of 4 nodes passed, as they are now"
    assert lines[-3:-1] == ['  b: would be drained in Slurm, "acceptance: bad"', "  e: would be resumed in Slurm"]


def test_what_is_not_known_of_a_node_is_empty() -> None:
    made = make_report([], [verdict("a", "passed", check("ssh"))], {"kind": "none", "skipped": "x"})
    (shown,) = made["nodes"]
    assert (shown["instance_id"], shown["instance_type"], shown["address"]) == ("", "", "192.0.2.1")
    assert [one["name"] for one in shown["checks"]] == ["reached", "ssh"]
    bare = {name: value for name, value in verdict("a", "held").items() if name != "address"}
    made = make_report([node("a")], [bare], {"kind": "none", "skipped": "x"})
    assert made["nodes"][0]["address"] == ""
    assert (made["nodes"][0]["instance_id"], made["nodes"][0]["instance_type"]) == ("i-a", "trn1.32xlarge")
    assert made["collective"] == {"kind": "none", "skipped": "x"}


def test_only_what_was_good_under_the_same_wish_is_no_news() -> None:
    before, now = report(), report()
    for change in ({"wanted": 2}, {"name": "space"}):
        again = copy.deepcopy(now)
        again["nodes"][2]["checks"][0].update(found={"/": 9.0}, **change)
        assert settle(copy.deepcopy(again), before) == again
    # A check that failed before and is good now is told with its own figure.
    now["nodes"][1]["checks"][0].update(result="ok", found=16)
    assert settle(copy.deepcopy(now), before) == now


def test_names_are_beside_each_other_and_a_node_without_a_reason_is_held_all_the_same() -> None:
    nodes = [node("long-name", check("efa", found=8), check("devices", found=16)), node("b")]
    gate = [verdict("long-name", "passed"), verdict("b", "held")]
    lines = table(make_report(nodes, gate, {"kind": "none", "skipped": "switched off"}), {}, [])
    assert lines == [
        "acceptance: 1 of 2 nodes passed",
        "  long-name  passed  16 devices, 8 EFA interfaces",
        "  b          held    drained in Slurm, left so: no reason given",
        "  b: reached: Ansible lost it earlier in this run; see the task that failed on it.",
        "  collective: not run, switched off",
    ]
    assert table(make_report([], [], {"kind": "none", "skipped": "no node"}), {}, []) == [
        "acceptance: 0 of 0 nodes passed",
        "  collective: not run, no node",
    ]
