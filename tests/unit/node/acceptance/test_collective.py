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


@pytest.mark.parametrize(
    ("wanted", "nodes", "said"),
    [
        (
            *("auto", [node(nccom=False), node("b", torchrun=False), node("c", torchrun=False)]),
            ("none", "neither nccom-test with Neuron devices nor torchrun on b, c"),
        ),
        ("auto", [node(torchrun=False)], ("nccom", "")),
        ("gloo", [node(torchrun=False), node("b"), node("c", torchrun=False)], ("gloo", "no torchrun on a, c")),
        ("nccom", [node(nccom=False, torchrun=False), node("b", nccom=False)], ("nccom", "no nccom-test on a, b")),
        # A test that was asked for by its name is not left for a node without devices.
        ("nccom", [node(cores=0)], ("nccom", "")),
        ("none", [], ("none", "switched off")),
    ],
)
def test_what_keeps_a_test_from_running_is_said_of_each_node(
    wanted: str, nodes: list[dict[str, Any]], said: tuple[str, str]
) -> None:
    assert choose(wanted, nodes) == said


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
        ({"digest": "d", "result": None}, 0, False, True),
        ({"digest": "d", "result": {"passed": False, "bus_bandwidth": 9.0}}, 0, False, True),
        # As much as is wanted is enough.
        ({"digest": "d", "result": {"passed": True, "bus_bandwidth": 2.0}}, 2, False, False),
        ({"digest": "d", "result": {"passed": True, "bus_bandwidth": None}}, 0, False, False),
    ],
)
def test_a_test_that_passed_is_not_repeated(record: dict[str, Any], minimum: float, repeat: bool, due: bool) -> None:
    assert is_due(record, "d", minimum, repeat) is due


def test_the_table_of_nccom() -> None:
    assert parse_nccom(TABLE) == {"bus_bandwidth": 14.62, "bytes": 33554432, "microseconds": 2754.15}
    assert "Failure running neuron-bench" in parse_nccom(BROKEN)["error"]
    assert "no bandwidth" in parse_nccom("")["error"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (BROKEN, "33554432    Failure running neuron-bench - log file /tmp/nccom_test_log_7pqpdfjf.log"),
        (f"{TABLE}1 error found - test failed\n", "1 error found - test failed"),
        (f"{TABLE}neuron-bench is not running!\n", "neuron-bench is not running!"),
        (TABLE.replace("Avg bus", "Max bus"), "nccom-test printed no bandwidth"),
        (TABLE.splitlines()[-1], "nccom-test printed no bandwidth"),
        (
            "  1048576  262144  fp32  oops\nAvg bus bandwidth: 1.0GB/s\n",
            "nccom-test printed a table of an unknown form",
        ),
        ("  1048576  262144  fp32  \nAvg bus bandwidth: 1.0GB/s\n", "nccom-test printed a table of an unknown form"),
        (TABLE.replace("14.6200", "1.2.3"), "nccom-test printed a table of an unknown form"),
    ],
)
def test_what_nccom_says_that_is_no_result(text: str, error: str) -> None:
    assert parse_nccom(text) == {"error": error}


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


@pytest.mark.parametrize(
    ("code", "out", "err", "words"),
    [
        (124, "", "", "the gloo all-reduce did not end in time; look whether the nodes reach each other on all ports"),
        (137, "", "killed\n", "the gloo all-reduce did not end in time: killed; look"),
        (3, "", "", "the gloo all-reduce ended with 3; look"),
        # What went wrong, and not what came after it.
        (1, "", "no such file\nlast\n", "ended with 1: no such file; "),
        (1, "", "first\nlast\n", "ended with 1: last; "),
        (1, "said\n", "", "ended with 1: said; "),
        (1, "said\n", "  \n", "ended with 1: said; "),
        (1, "", "Unable to connect\nsrun: error: x\n", "ended with 1: Unable to connect; "),
        (1, "", f"error {'x' * 400}\n", f"ended with 1: error {'x' * 294}; "),
        (1, "", "y" * 400, f"ended with 1: {'y' * 300}; "),
        (1, json.dumps(GLOO), "", "ended with 1: "),
    ],
)
def test_how_a_test_failed_is_said_by_what_it_printed(code: int, out: str, err: str, words: str) -> None:
    result = judge("gloo", code, out, err, 0)
    assert (result["passed"], result["kind"]) == (False, "gloo")
    assert words in result["message"]
    assert result["message"].endswith("then run again.")


def test_a_bandwidth_as_wanted_is_enough_and_figures_are_kept() -> None:
    good = judge("nccom", 0, TABLE, "", 14.62)
    assert good == {
        "kind": "nccom",
        "passed": True,
        "message": "",
        "bus_bandwidth": 14.62,
        "bytes": 33554432,
        "microseconds": 2754.15,
    }
    slow = judge("nccom", 0, TABLE, "", 14.63)
    assert slow == {**good, "passed": False, "message": slow["message"]}
    assert slow["message"] == (
        "bus bandwidth 14.62 GB/s is below the 14.63 GB/s wanted; look for a slow interface, or lower "
        "acceptance_collective_minimum_bandwidth."
    )
    assert judge("nccom", 1, "", "", 0)["message"].startswith("nccom-test ended with 1; ")


PLAN = {"kind": "gloo", "wanted": True, "due": True, "problem": "", "nodes": ["a"], "known": {}}


def test_what_is_reported() -> None:
    ran = result_of(PLAN, {"rc": 0, "stdout": json.dumps(GLOO), "stderr": ""}, 0, 2, False)
    assert (ran["passed"], ran["nodes"], ran["ranks"]) == (True, ["a"], 2)
    assert result_of({**PLAN, "due": False, "known": ran}, {}, 0, 2, False) == ran
    assert result_of({**PLAN, "wanted": False, "problem": "off"}, {}, 0, 2, False)["skipped"] == "off"
    assert not result_of({**PLAN, "problem": "no torchrun on a"}, {}, 0, 2, False)["passed"]
    assert result_of(PLAN, {}, 0, 2, True)["skipped"] == "not in check mode"
    # Whatever the outcome of another run, in check mode none is told.
    assert result_of(PLAN, {"rc": 0}, 0, 2, True) == {"kind": "gloo", "skipped": "not in check mode"}
    assert result_of(PLAN, {}, 0, 2, False)["skipped"] == "not in check mode"
    assert result_of({**PLAN, "wanted": False, "problem": "off"}, {}, 0, 2, False) == {"kind": "gloo", "skipped": "off"}
    lacking = result_of({**PLAN, "problem": "no torchrun on a"}, {"rc": 0}, 0, 2, False)
    assert lacking == {
        "kind": "gloo",
        "nodes": ["a"],
        "ranks": 2,
        "passed": False,
        "message": "no torchrun on a; install what is missing or set acceptance_collective.",
    }
    broken = result_of(PLAN, {"rc": 5, "stdout": None, "stderr": "no route"}, 0, 2, False)
    assert "ended with 5: no route; " in broken["message"]
    slow = result_of(PLAN, {"rc": None, "stdout": json.dumps(GLOO)}, 9, 2, False)
    assert "is below the 9 GB/s wanted" in slow["message"] and slow["ranks"] == 2
