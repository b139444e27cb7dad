"""Log streams of a cluster, and their events as text."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import plan_logs as planner
from hypothesis import given
from hypothesis import strategies as st

STREAMS = [
    planner.parsed({"logStreamName": name, "lastEventTimestamp": 1000})
    for name in (
        "ip-10-0-0-1.i-0a.clustermgtd",
        "ip-10-0-0-1.i-0a.cloud-init-output",
        "ip-10-0-0-2.i-0b.cloud-init-output",
        "ip-10-0-0-2.i-0b.slurmd",
        "odd",
    )
]


def names(*nodes: str, logs: tuple[str, ...] = (), heads: tuple[str, ...] = ("i-0a",)) -> list[str]:
    return [item["name"] for item in planner.chosen(STREAMS, nodes, logs, heads)]


def test_a_name_is_taken_apart() -> None:
    assert STREAMS[0] == {
        "name": "ip-10-0-0-1.i-0a.clustermgtd",
        "host": "ip-10-0-0-1",
        "instance_id": "i-0a",
        "log": "clustermgtd",
        "last_event_time": "1970-01-01T00:00:01.000Z",
    }
    assert (STREAMS[4]["host"], STREAMS[4]["log"]) == ("", "odd")


def test_which_streams_are_chosen() -> None:
    assert len(names()) == 5
    assert names("i-0b", logs=("slurm*",)) == ["ip-10-0-0-2.i-0b.slurmd"]
    assert names("ip-10-0-0-1", logs=("clustermgtd",)) == ["ip-10-0-0-1.i-0a.clustermgtd"]
    assert names("HeadNode") == ["ip-10-0-0-1.i-0a.cloud-init-output", "ip-10-0-0-1.i-0a.clustermgtd"]
    assert names("HeadNode", heads=()) == []
    assert planner.heads(STREAMS, ["i-0c"]) == {"i-0a", "i-0c"}


@given(st.text())
def test_a_file_stays_in_its_folder(name: str) -> None:
    file = planner.file_name(name)
    assert "/" not in file
    assert file not in (".", "..")
    assert file.endswith("log")


def test_text_of_events() -> None:
    assert planner.lines([{"timestamp": 0, "message": "one\ntwo\n"}]) == "1970-01-01T00:00:00.000Z one\n    two\n"
    event = planner.shown_stack_event(
        {
            "Timestamp": datetime(2026, 1, 1, tzinfo=timezone.utc),
            "LogicalResourceId": "A",
            "ResourceType": "T",
            "ResourceStatus": "CREATE_FAILED",
            "ResourceStatusReason": "no",
        }
    )
    assert planner.stack_lines([event]) == "2026-01-01T00:00:00.000Z CREATE_FAILED T A no\n"


@given(st.integers(0, 4_000_000_000_000))
def test_times_go_there_and_back(timestamp: int) -> None:
    assert planner.milliseconds("start_time", planner.iso(timestamp)) == timestamp


def test_times() -> None:
    assert planner.milliseconds("start_time", None) is None
    assert planner.milliseconds("start_time", "1970-01-01T00:00:01") == 1000
    assert planner.milliseconds("start_time", "1970-01-01T01:00:00+01:00") == 0
    with pytest.raises(TrainiumError, match="start_time yesterday is no time in ISO 8601"):
        planner.milliseconds("start_time", "yesterday")
