"""What a sign of a fault is: all of its pieces, and no part of them; and which nodes are named."""

from __future__ import annotations

import re

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.faults import FAULTS, Fault
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.recognise import (
    LINE_LIMIT,
    NAMES_LIMIT,
    SHOWN_LIMIT,
    known_faults,
)

OF_PIECES = [(fault, pieces) for fault in FAULTS for pieces in fault.signs if len(pieces) > 1]


def names(line: str) -> set[str]:
    return {found["fault"] for found in known_faults({"n1:x": [line]})}


@pytest.mark.parametrize(("fault", "pieces"), OF_PIECES, ids=range(len(OF_PIECES)))
def test_a_part_of_a_sign_is_none(fault: Fault, pieces: tuple[str, ...]) -> None:
    assert fault.name in names(" and ".join(pieces).upper())
    for piece in pieces:
        rest = " and ".join(one for one in pieces if one != piece)
        others = [sign for sign in fault.signs if sign != pieces and all(one in rest for one in sign)]
        assert others or fault.name not in names(rest)


def test_no_sign_is_a_word_that_any_line_may_have() -> None:
    for sign in [" ".join(pieces) for fault in FAULTS for pieces in fault.signs]:
        assert len(sign) >= 6
        assert sign == sign.lower()


def test_cause_and_remedy_are_sentences() -> None:
    for fault in FAULTS:
        for text in (fault.name, fault.cause, fault.remedy):
            assert re.match(r"\S.*\S", text) and "  " not in text
        assert len(fault.cause) > 30 and len(fault.remedy) > 30


@pytest.mark.parametrize(
    ("line", "node"),
    [
        # What the head node writes when it launches the nodes of a queue.
        ("(VcpuLimitExceeded) for following nodes: (x1) ['a-dy-b-1']", "a-dy-b-1"),
        ("InsufficientInstanceCapacity: a-dy-b-1, a-dy-b-2", "a-dy-b-[1-2]"),
        ("Resume timeout expires for node a-st-b-7", "a-st-b-7"),
        ("update_node: node node7 reason set to: x, state set to DOWN", "node7"),
        ("error: Node n[3-4] has low RealMemory", "n[3-4]"),
        # A word after node that is no name of one.
        ("Resume timeout expires for node that is gone", "head"),
        # Of a fault that a node has itself, its own log tells.
        ("a-dy-b-1: Too many open files", "head"),
        ("OSError: Too many open files on node n2", "head"),
    ],
)
def test_the_nodes_that_a_line_is_about(line: str, node: str) -> None:
    (found,) = known_faults({"head:/var/log/parallelcluster/clustermgtd": [line]})
    assert found["node"] == node


@pytest.mark.parametrize(
    ("length", "fault"), [(63, "Invalid NCCL_COMM_ID: wrong address"), (64, "Invalid NCCL_COMM_ID: name too long")]
)
def test_a_name_of_63_signs_is_not_too_long(length: int, fault: str) -> None:
    assert names(f"NCCL WARN Invalid NCCL_COMM_ID [{'q' * length}:42323], please use") == {fault}
    assert names("NCCL WARN Invalid NCCL_COMM_ID of another form") == {"Invalid NCCL_COMM_ID: wrong address"}


def test_a_fault_without_a_node_says_so() -> None:
    (found,) = known_faults({"stack events": ["VcpuLimitExceeded"]})
    assert (found["node"], found["time"], found["source"]) == ("", "", "stack events")


def test_names_that_are_no_hostlist_stand_beside_it() -> None:
    lines = [f"node n{name} has low RealMemory" for name in ("[9-1]", "1", "2", "[7-5]")]
    (found,) = known_faults({"h:x": lines})
    assert found["node"] == "n[1-2],n[7-5],n[9-1]"


def test_more_names_than_a_cluster_has_are_left_as_they_were() -> None:
    lines = [f"INVALID_REG node {letter}[1-{NAMES_LIMIT}]" for letter in "ab"]
    (found,) = known_faults({"h:x": lines})
    assert found["node"] == f"a[1-{NAMES_LIMIT}],b[1-{NAMES_LIMIT}]"


def test_long_lines_are_cut_and_short_ones_are_not() -> None:
    short = "EMFILE " + "word " * 10
    (found,) = known_faults({"h:x": [f"  {short}"]})
    assert found["line"] == short.strip()
    (found,) = known_faults({"h:x": ["EMFILE " + "word " * LINE_LIMIT]})
    assert len(found["line"]) == SHOWN_LIMIT
    # What stands after that is not read.
    assert known_faults({"h:x": [" " * LINE_LIMIT + "EMFILE"]}) == []


def test_more_lists_of_many_names_are_left_as_they_were() -> None:
    half = NAMES_LIMIT // 2
    lines = [f"INVALID_REG node {letter}[1-{half}]" for letter in "abc"]
    (found,) = known_faults({"h:x": lines})
    assert found["node"] == f"a[1-{half}],b[1-{half}],c[1-{half}]"
    # Two names that are one node are one name, as long as there is room.
    (found,) = known_faults({"h:x": ["INVALID_REG node a[1-3]", "INVALID_REG node a3"]})
    assert found["node"] == "a[1-3]"


def test_a_time_is_at_the_beginning_of_its_line() -> None:
    line = "[2026-11-21T07:00:00.101] EMFILE"
    assert known_faults({"h:x": [line]})[0]["time"] == "2026-11-21T07:00:00"
    assert known_faults({"h:x": ["EMFILE " + "word " * 20 + "2026-11-21 07:00:00"]})[0]["time"] == ""


def test_of_two_lines_of_one_second_the_later_is_shown() -> None:
    logs = {"a:x": ["2026-11-21 07:00:00 EMFILE 1", "2026-11-21 07:00:00 EMFILE 2"], "b:x": ["2026-11-21 07:00:00 x"]}
    assert known_faults(logs)[0]["line"].endswith("EMFILE 2")
    # Of two nodes that wrote at the same time, the one that is read later.
    both = {"b:x": ["2026-11-21 07:00:00 EMFILE 1"], "a:x": ["2026-11-21 07:00:00 EMFILE 2"]}
    assert known_faults(both)[0]["source"] == "a:x"
