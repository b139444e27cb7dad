"""Nodes by sinfo: which take jobs, and which a cluster waits for."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import (
    SlurmNode,
    nodes_of_partition,
    parse_sinfo,
    readiness,
)
from hypothesis import given
from hypothesis import strategies as st

STATIC = frozenset({"static", "trn1.32xlarge", "trn1"})
DYNAMIC = frozenset({"dynamic", "trn1.32xlarge", "trn1"})


def test_lines_of_sinfo() -> None:
    text = (
        "a|idle|Unknown|(null)|none\na|idle|Unknown|(null)|none\n"
        "b|drained|root(0)|(null)|disk is | being replaced\n"
        "c|down*|slurm|static,trn1.32xlarge,trn1|Not responding\n\nnoise\n"
    )
    assert parse_sinfo(text) == {
        "a": SlurmNode("idle", "none", "Unknown", frozenset({"(null)"})),
        "b": SlurmNode("drained", "disk is | being replaced", "root", frozenset({"(null)"})),
        "c": SlurmNode("down*", "Not responding", "slurm", STATIC),
    }


@pytest.mark.parametrize(
    ("partition", "wanted"),
    [("", ["a", "b"]), ("compute", ["a", "b"]), ("debug", ["c"]), ("debug,all", ["a", "b", "c"]), ("gone", [])],
)
def test_nodes_are_counted_in_the_partition_of_the_job(partition: str, wanted: list[str]) -> None:
    of = {"compute*": "ab", "debug": "c", "all": "abc"}
    lines = [f"{name}|{node}|idle~|none|dynamic|none" for name, nodes in of.items() for node in nodes]
    assert list(nodes_of_partition(["noise", *lines], partition)) == wanted


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    readiness(parse_sinfo(text))


@pytest.mark.parametrize(
    ("state", "takes_jobs", "awaited"),
    [
        ("idle", True, False),
        ("allocated", True, False),
        ("mixed", True, False),
        ("completing", True, False),
        ("reserved", True, False),
        # Not there, or on the way, or going: a job that is given such a node may lose it again.
        ("idle~", False, True),
        ("idle#", False, True),
        ("idle%", False, True),
        ("idle!", False, True),
        ("idle^", False, True),
        ("allocated#", False, True),
        ("idle*", False, True),
        ("down", False, True),
        ("down~", False, True),
        ("down*", False, True),
        ("unknown*", False, True),
        ("powering_up", False, True),
        ("inval", False, True),
        # By Slurm itself, for a fault.
        ("drained", False, True),
    ],
)
def test_a_node_that_is_always_there(state: str, takes_jobs: bool, awaited: bool) -> None:
    for features in (frozenset({"(null)"}), STATIC):
        node = SlurmNode(state, "a reason", "slurm", features)
        assert (node.takes_jobs, node.awaited) == (takes_jobs, awaited)


@pytest.mark.parametrize(
    ("state", "takes_jobs"),
    [("idle", True), ("idle~", True), ("idle#", True), ("allocated#", True), ("idle*", False), ("down~", False)],
)
def test_a_node_that_comes_with_a_job_is_not_awaited(state: str, takes_jobs: bool) -> None:
    node = SlurmNode(state, features=DYNAMIC)
    assert (node.takes_jobs, node.awaited) == (takes_jobs, False)


@pytest.mark.parametrize("state", ["drained", "draining", "drained*"])
def test_a_node_that_somebody_drained_is_not_awaited(state: str) -> None:
    node = SlurmNode(state, "disk", "root")
    assert (node.takes_jobs, node.awaited) == (False, False)


def test_how_far_a_cluster_is() -> None:
    nodes = {
        "a": SlurmNode("idle"),
        "b": SlurmNode("down*", "Not responding"),
        "c": SlurmNode("idle~", "none", "", DYNAMIC),
    }
    assert readiness(nodes) == "2 of 3 nodes take jobs, waiting for b (down*, Not responding)"
    assert readiness({"a": SlurmNode("idle")}) == "1 of 1 nodes take jobs"
    assert readiness({}) == "no node is known to Slurm"


def test_of_many_nodes_some_are_named() -> None:
    text = readiness({f"n{number}": SlurmNode("down") for number in range(1000)})
    named = ", ".join(f"n{number} (down)" for number in range(5))
    assert text == f"0 of 1000 nodes take jobs, waiting for {named} and 995 more"
