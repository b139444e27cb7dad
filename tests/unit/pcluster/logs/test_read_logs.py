"""What pcluster_logs asks of AWS, gives back and writes."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls_logs
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_logs import PclusterLogs

from tests.unit.pcluster.pcluster_stand_ins import Item, ToldAccount, ToldError, event, groups

OLD, NEW = "/aws/parallelcluster/bert-202601010000", "/aws/parallelcluster/bert-202602010000"
HEAD, NODE = "ip-10-0-0-1.i-0a.cloud-init", "ip-10-0-0-2.i-0b.cloud-init"
LINE = {"timestamp": 1000, "message": "hello"}
EVENTS = [event("HeadNode", "CREATE_COMPLETE", Timestamp="t2"), event("bert", "CREATE_IN_PROGRESS", Timestamp="t1")]


def once(request: Item) -> Item:
    """GetLogEvents of a stream of one line."""
    return {"events": [] if "nextToken" in request else [LINE], "nextForwardToken": "f", "nextBackwardToken": "b"}


def account(**told: Any) -> ToldAccount:
    return ToldAccount(
        **{
            "DescribeLogGroups": groups(OLD, NEW),
            "DescribeLogStreams": {"logStreams": [{"logStreamName": name} for name in (NODE, HEAD)]},
            "DescribeStackEvents": {"StackEvents": EVENTS},
            "GetLogEvents": once,
            "DescribeInstances": {"Reservations": [{"Instances": [{"InstanceId": "i-0a"}]}]},
            **told,
        }
    )


def run(aws: ToldAccount, check: bool = False, **params: Any) -> Item:
    given = {
        "name": "bert",
        "stack_events": True,
        "nodes": [],
        "logs": [],
        "events": False,
        "limit": None,
        "start_time": None,
        "end_time": None,
        "dest": None,
        **params,
    }
    return PclusterLogs(aws.client, given, check).run()


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"name": "1"}, "name is no name of a cluster"),
        ({"start_time": "soon"}, "start_time soon is no time"),
        ({"start_time": "2026-01-02T00:00:00Z", "end_time": "2026-01-01"}, "start_time must be earlier than end_time"),
        ({"start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01"}, "start_time must be earlier than end_time"),
    ],
)
def test_bad_input_is_refused_before_aws_is_asked(params: Item, sentence: str) -> None:
    aws = account()
    with pytest.raises(TrainiumError, match=sentence):
        run(aws, **params)
    assert aws.asked == []


def test_a_cluster_that_never_was_is_refused() -> None:
    gone = ToldError("ValidationError", "Stack [bert] does not exist")
    with pytest.raises(TrainiumError, match="neither a stack nor a log group"):
        run(account(DescribeLogGroups=groups(), DescribeStackEvents=gone))
    # One of both is enough.
    assert run(account(DescribeStackEvents=gone))["log_group"] == NEW
    without = run(account(DescribeLogGroups=groups()), events=True)
    assert (without["log_group"], without["log_groups"], without["log_streams"]) == ("", [], [])
    assert len(without["stack_events"]) == 2


def test_the_newest_group_is_listed_and_nothing_is_read_unless_asked() -> None:
    aws = account()
    found = run(aws)
    assert (found["log_group"], found["log_groups"]) == (NEW, [NEW, OLD])
    assert [stream["name"] for stream in found["log_streams"]] == [HEAD, NODE]
    assert [item["resource"] for item in found["stack_events"]] == ["HeadNode", "bert"]
    assert (found["changed"], found["log_events"], found["files"]) == (False, {}, [])
    assert [request["logGroupName"] for request in aws.requests("DescribeLogStreams")] == [NEW]
    assert aws.requests("GetLogEvents") == aws.requests("DescribeInstances") == []
    assert run(account(), stack_events=False)["stack_events"] == []


def test_the_events_are_those_of_all_operations_of_the_stack() -> None:
    both = [*EVENTS, event("HeadNode", "CREATE_FAILED"), event("bert", "CREATE_IN_PROGRESS")]
    assert len(run(account(DescribeStackEvents={"StackEvents": both}))["stack_events"]) == 4


def test_the_head_node_is_who_ec2_says_it_is() -> None:
    aws = account()
    found = run(
        aws, nodes=["HeadNode"], events=True, start_time="1970-01-01T00:00:01Z", end_time="1970-01-01T00:00:02Z"
    )
    assert found["log_events"] == {HEAD: [{"time": "1970-01-01T00:00:01.000Z", "message": "hello"}]}
    (asked,) = aws.requests("DescribeInstances")
    assert {one["Name"]: one["Values"] for one in asked["Filters"]} == {
        "tag:parallelcluster:cluster-name": ["bert"],
        "tag:parallelcluster:node-type": ["HeadNode"],
    }
    asked = aws.requests("GetLogEvents")[0]
    assert (asked["logGroupName"], asked["logStreamName"]) == (NEW, HEAD)
    assert (asked["startTime"], asked["endTime"]) == (1000, 2000)


def test_files_are_written_once_and_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "logs"
    names = [str(folder / name) for name in (f"{HEAD}.log", f"{NODE}.log", "stack-events.log")]
    checked = run(account(), check=True, dest=str(folder))
    assert (checked["changed"], checked["files"], folder.exists()) == (True, names, False)
    written = run(account(), dest=str(folder))
    assert (written["changed"], written["files"], written["log_events"]) == (True, names, {})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(os.stat(name).st_mode) for name in names} == {0o600}
    assert Path(names[0]).read_text() == "1970-01-01T00:00:01.000Z hello\n"
    # The oldest comes first.
    assert [line.split()[0] for line in Path(names[2]).read_text().splitlines()] == ["t1", "t2"]
    assert not run(account(), dest=str(folder))["changed"]
    os.chmod(names[1], 0o644)
    Path(names[0]).write_text("other")
    assert run(account(), dest=str(folder))["changed"]
    assert stat.S_IMODE(os.stat(names[1]).st_mode) == 0o600
    assert Path(names[0]).read_text().endswith("hello\n")


def test_without_stack_events_there_is_no_file_of_them(tmp_path: Path) -> None:
    files = run(account(), dest=str(tmp_path), stack_events=False)["files"]
    assert [Path(file).name for file in files] == [f"{HEAD}.log", f"{NODE}.log"]


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrainiumError, match=r"dest .*/file.*: Not a directory"):
        run(account(), dest=str(tmp_path / "file" / "below"))
    # One that is there, and open to all, stays as it is.
    tmp_path.chmod(0o755)
    assert run(account(), dest=str(tmp_path))["changed"]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def page(first: int, last: int, forward: str = "", backward: str = "") -> Item:
    events = [{"timestamp": number, "message": str(number), "ingestionTime": 0} for number in range(first, last)]
    return {"events": events, "nextForwardToken": forward, "nextBackwardToken": backward}


def read(*answers: Item, **bounds: int) -> tuple[list[int], list[Item]]:
    aws = ToldAccount(GetLogEvents=list(answers))
    found = calls_logs.log_events(aws.client("logs"), "group", "stream", **bounds)
    assert all(item == {"timestamp": item["timestamp"], "message": str(item["timestamp"])} for item in found)
    return [item["timestamp"] for item in found], aws.requests("GetLogEvents")


def test_a_whole_stream_is_read_from_its_head_until_the_token_comes_back() -> None:
    found, asked = read(page(0, 3, "a"), page(3, 3, "b"), page(3, 5, "c"), page(5, 5, "c"))
    assert found == [0, 1, 2, 3, 4]
    common = {"logGroupName": "group", "logStreamName": "stream", "startFromHead": True, "limit": 10000}
    assert asked == [common, *({**common, "nextToken": token} for token in "abc")]


def test_the_newest_lines_are_read_backwards_and_given_forwards() -> None:
    found, asked = read(page(7, 10, "x", "a"), page(4, 7, "x", "b"), page(3, 4, "x", "c"), limit=7)
    assert found == [3, 4, 5, 6, 7, 8, 9]
    assert [(one["limit"], one["startFromHead"], one.get("nextToken")) for one in asked] == [
        (7, False, None),
        (4, False, "a"),
        (1, False, "b"),
    ]
    # A stream may have fewer, and one call gives so many at most.
    found, asked = read(page(0, 2, "x", "a"), page(0, 0, "x", "a"), limit=20000, start=0, end=5)
    assert (found, [one["limit"] for one in asked]) == ([0, 1], [10000, 10000])
    assert (asked[0]["startTime"], asked[0]["endTime"]) == (0, 5)
