"""The collective test: which one, whether it is due, and what its output says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.collective import (
    choose,
    digest,
    is_due,
    judge,
    parse_gloo,
    parse_nccom,
    result_of,
)
from hypothesis import given
from hypothesis import strategies as st

# As the guides of the Neuron SDK show them, in both spellings of the columns.
TABLE = """\
   size(B)    count(elems)    type    time:avg(us)    algbw(GB/s)    busbw(GB/s)
   1048576          262144    fp32          299.91           3.26           6.40
  33554432         8388608    fp32         2754.15          11.35          22.84
Avg bus bandwidth:\t14.6200GB/s
"""
BROKEN = """\
    size(B)    count(elems)    type    time(us)    algbw(GB/s)    busbw(GB/s)
   33554432    Failure running neuron-bench - log file /tmp/nccom_test_log_7pqpdfjf.log
1 errors found - test failed
"""
GLOO = {"all_reduce": {"ranks": 2, "bytes": 4096, "microseconds": 120.5, "bus_bandwidth": 0.5, "correct": True}}


def node(name: str = "a", **changes: Any) -> dict[str, Any]:
    sound = {"name": name, "address": "192.0.2.1", "identity": "x", "nccom": True, "torchrun": True, "cores": 32}
    return {**sound, **changes}


@pytest.mark.parametrize(
    ("wanted", "nodes", "kind", "problem"),
    [
        ("auto", [node(), node("b")], "nccom", ""),
        ("auto", [node(), node("b", cores=0)], "gloo", ""),
        ("auto", [node(nccom=False)], "gloo", ""),
        ("auto", [node(nccom=False, torchrun=False)], "none", "torchrun on a"),
        ("gloo", [node()], "gloo", ""),
        ("gloo", [node(torchrun=False)], "gloo", "no torchrun on a"),
        ("nccom", [node(), node("b", nccom=False)], "nccom", "no nccom-test on b"),
        ("none", [node()], "none", "switched off"),
        ("auto", [], "none", "no node passed"),
    ],
)
def test_choice(wanted: str, nodes: list[dict[str, Any]], kind: str, problem: str) -> None:
    found, why = choose(wanted, nodes)
    assert found == kind
    assert (problem in why) if problem else why == ""


def test_another_node_or_boot_or_test_is_another_digest() -> None:
    first = digest("gloo", [node(), node("b")], "s")
    assert digest("gloo", [node("b"), node()], "s") == first
    others = [
        digest("nccom", [node(), node("b")], "s"),
        digest("gloo", [node()], "s"),
        digest("gloo", [node(), node("b", identity="y")], "s"),
        digest("gloo", [node(), node("b")], "t"),
    ]
    assert len({first, *others}) == 5


@pytest.mark.parametrize(
    ("record", "minimum", "repeat", "due"),
    [
        ({}, 0, False, True),
        ({"digest": "d", "result": {"passed": True, "bus_bandwidth": 1.0}}, 0, False, False),
        ({"digest": "d", "result": {"passed": True, "bus_bandwidth": 1.0}}, 2, False, True),
        ({"digest": "d", "result": {"passed": True, "bus_bandwidth": 1.0}}, 0, True, True),
        ({"digest": "e", "result": {"passed": True, "bus_bandwidth": 1.0}}, 0, False, True),
        ({"digest": "d"}, 0, False, True),
    ],
)
def test_a_test_that_passed_is_not_repeated(record: dict[str, Any], minimum: float, repeat: bool, due: bool) -> None:
    assert is_due(record, "d", minimum, repeat) is due


def test_the_table_of_nccom() -> None:
    assert parse_nccom(TABLE) == {"bus_bandwidth": 14.62, "bytes": 33554432, "microseconds": 2754.15}
    assert "Failure running neuron-bench" in parse_nccom(BROKEN)["error"]
    assert "no bandwidth" in parse_nccom("")["error"]


def test_the_line_of_gloo() -> None:
    line = json.dumps(GLOO)
    assert parse_gloo(f"[rank0] a warning\n0: {line}\n")["bus_bandwidth"] == 0.5
    assert "wrong sum" in parse_gloo(line.replace("true", "false"))["error"]
    assert "no result" in parse_gloo("nothing")["error"]


@given(st.text())
def test_any_output_is_judged(text: str) -> None:
    for kind in ("nccom", "gloo"):
        result = judge(kind, 0, text, "", 0)
        assert result["passed"] or result["message"].endswith(".")


def test_failures_say_why() -> None:
    assert judge("gloo", 0, json.dumps(GLOO), "", 0)["passed"]
    slow = judge("gloo", 0, json.dumps(GLOO), "", 9.5)
    assert slow["message"].startswith("bus bandwidth 0.5 GB/s is below the 9.5 GB/s wanted; ")
    crash = judge("gloo", 1, "", "Traceback\nRuntimeError: connection refused\nsrun: error: task 0: exit 1\n", 0)
    assert "ended with 1: RuntimeError: connection refused; " in crash["message"]
    assert "did not end in time" in judge("nccom", 124, "", "", 0)["message"]


PLAN = {"kind": "gloo", "wanted": True, "due": True, "problem": "", "nodes": ["a"], "known": {}}


def test_what_is_reported() -> None:
    ran = result_of(PLAN, {"rc": 0, "stdout": json.dumps(GLOO), "stderr": ""}, 0, 2, False)
    assert (ran["passed"], ran["nodes"], ran["ranks"]) == (True, ["a"], 2)
    assert result_of({**PLAN, "due": False, "known": ran}, {}, 0, 2, False) == ran
    assert result_of({**PLAN, "wanted": False, "problem": "off"}, {}, 0, 2, False)["skipped"] == "off"
    assert not result_of({**PLAN, "problem": "no torchrun on a"}, {}, 0, 2, False)["passed"]
    assert result_of(PLAN, {}, 0, 2, True)["skipped"] == "not in check mode"
