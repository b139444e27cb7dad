"""Whom to drain and whom to resume: never anybody else's drain, never the same twice."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.drain import (
    FAILED,
    HELD,
    LONGEST_REASON,
    PASSED,
    PREFIX,
    drain_reason,
    outcome,
    plan_gate,
    reason_for,
    reasons_of,
    slurm_check,
    tcp_check,
    verdicts,
)
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode, parse_sinfo
from hypothesis import given
from hypothesis import strategies as st

IDLE = SlurmNode("idle", "none")
OURS = SlurmNode("drained", "acceptance: 15 of 16 Neuron devices")
THEIRS = SlurmNode("drained", "disk is | being replaced")
DOWN = SlurmNode("down*", "Not responding")


@pytest.mark.parametrize(
    ("node", "reasons", "drain", "resume"),
    [
        (IDLE, [], False, False),
        (IDLE, ["bad"], True, False),
        (DOWN, ["bad"], True, False),
        (OURS, [], False, True),
        (OURS, ["15 of 16 Neuron devices"], False, False),
        (OURS, ["14 of 16 Neuron devices"], True, False),
        (THEIRS, [], False, False),
        (THEIRS, ["bad"], False, False),
        (SlurmNode("draining", "acceptance: bad"), [], False, True),
        (SlurmNode("drained*", "acceptance: bad"), [], False, True),
        # A reason of ours that was left on a node that serves.
        (SlurmNode("idle", "acceptance: bad"), [], False, False),
    ],
)
def test_whom_to_drain(node: SlurmNode, reasons: list[str], drain: bool, resume: bool) -> None:
    plan = plan_gate({"a": reasons}, {"a": node})
    assert (plan.drain, plan.resume) == ({"a": drain_reason(reasons)} if drain else {}, ["a"] if resume else [])


@pytest.mark.parametrize(
    ("instance_id", "reasons", "drain", "resume"),
    [
        ("", ["bad"], False, False),
        ("i-2", [], False, True),
        ("i-2", ["bad"], True, False),
    ],
)
def test_a_node_that_was_to_go_is_judged_once_it_has_another_instance(
    instance_id: str, reasons: list[str], drain: bool, resume: bool
) -> None:
    marked = SlurmNode("drained*", reason_for("i-1", THEIRS), "root")
    plan = plan_gate({"a": reasons}, {"a": marked}, {"a": instance_id})
    assert (plan.drain, plan.resume) == ({"a": "acceptance: bad"} if drain else {}, ["a"] if resume else [])


@pytest.mark.parametrize(
    ("before", "reasons", "drain", "resume"),
    [
        # Somebody else's drain, for which it is drained again.
        (THEIRS, [], THEIRS.reason, False),
        (THEIRS, ["bad"], THEIRS.reason, False),
        (OURS, [], "", True),
        (OURS, ["bad"], "acceptance: bad", False),
        (IDLE, [], "", True),
        (IDLE, ["bad"], "acceptance: bad", False),
        (SlurmNode("down", "HBM errors", "anna"), [], "HBM errors", False),
        (SlurmNode("down*", "Not responding", "slurm"), [], "", True),
    ],
)
def test_a_node_that_was_to_go_and_was_not_replaced_is_what_it_was_before(
    before: SlurmNode, reasons: list[str], drain: str, resume: bool
) -> None:
    """A run that drained it was killed, and nodes.yml came after it."""
    marked = SlurmNode("drained*", reason_for("i-1", before), "root")
    plan = plan_gate({"a": reasons}, {"a": marked}, {"a": "i-1"})
    assert (plan.drain, plan.resume) == ({"a": drain} if drain else {}, ["a"] if resume else [])


def test_nodes_that_slurm_does_not_know_are_left_alone() -> None:
    plan = plan_gate({"a": ["bad"]}, {})
    assert (plan.drain, plan.resume) == ({}, [])


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_a_drain_is_told_once(reasons: list[str]) -> None:
    """What Slurm shows after the drain makes no further plan, and a sound node after it is resumed."""
    told = plan_gate({"a": reasons}, {"a": IDLE}).drain["a"]
    assert told.startswith(PREFIX.strip())
    assert len(told) <= LONGEST_REASON
    assert not set(told) & set("\"'`\\\n")
    shown = parse_sinfo(f"a|drained|root|(null)|{told}\n")
    assert plan_gate({"a": reasons}, shown).drain == {}


@pytest.mark.parametrize(
    ("node", "result"),
    [
        (IDLE, "ok"),
        (SlurmNode("allocated", "none"), "ok"),
        (SlurmNode("mixed", "none"), "ok"),
        (SlurmNode("completing", "none"), "ok"),
        (SlurmNode("idle*", "none"), "failed"),
        (DOWN, "failed"),
        (SlurmNode("unknown", "none"), "failed"),
        (OURS, "skipped"),
        (THEIRS, "skipped"),
        (None, "failed"),
    ],
)
def test_what_slurm_says_of_a_node(node: SlurmNode | None, result: str) -> None:
    check = slurm_check("a", node)
    assert check["result"] == result
    assert bool(check["reason"]) == (result == "failed")


def test_a_port() -> None:
    assert tcp_check("ssh", 22, None)["result"] == "ok"
    assert tcp_check("ssh", 22, "no answer")["reason"] == "port 22 cannot be reached from the head (no answer)"


@pytest.mark.parametrize(
    ("reasons", "node", "result"),
    [([], IDLE, PASSED), ([], None, PASSED), (["bad"], IDLE, FAILED), (["bad"], OURS, FAILED), ([], THEIRS, HELD)],
)
def test_outcome(reasons: list[str], node: SlurmNode | None, result: str) -> None:
    assert outcome(reasons, node) == result


def test_our_own_drain_of_a_sound_node_holds_it_unless_it_would_be_resumed() -> None:
    assert outcome([], OURS) == HELD
    assert outcome([], OURS, resumed=True) == PASSED


def test_verdicts_come_in_the_order_of_the_nodes() -> None:
    checks = {
        "c": [tcp_check("ssh", 22, None)],
        "b": [tcp_check("ssh", 22, "refused")],
        "a": [tcp_check("ssh", 22, None)],
    }
    reasons = {name: reasons_of(made) for name, made in checks.items()}
    addresses = {"a": "192.0.2.1", "b": "192.0.2.2", "c": "192.0.2.3"}
    found = verdicts(addresses, checks, reasons, {"a": THEIRS}, ["a", "b"])
    assert [(one["name"], one["address"], one["result"], one["slurm_reason"]) for one in found] == [
        ("a", "192.0.2.1", HELD, "disk is | being replaced"),
        ("b", "192.0.2.2", FAILED, ""),
        ("c", "192.0.2.3", PASSED, ""),
    ]
