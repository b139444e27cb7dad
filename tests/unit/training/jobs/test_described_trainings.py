"""All that is told of a training, where Slurm knows it, where it has ended, and where there is no Slurm."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.plan_jobs import (
    NO_JOB,
    chosen,
    described,
    name_of,
    steps_wanted,
    unit_job,
)

FOLDER = "bert-0123456789ab"
PROGRESS = {"step": 14, "steps": 100, "loss": 10.7, "throughput": 6449.36, "seconds_left": 180}
ENDED = {
    **NO_JOB,
    "state": "FAILED",
    "ended": True,
    "nodes": "n[1-2]",
    "batch_host": "n1",
    "restarts": 2,
    "started_at": 5,
    "ended_at": 9,
    "progress": PROGRESS,
}


def test_one_that_has_failed() -> None:
    found = described(FOLDER, {"job_id": 12, "steps": 100}, {}, ENDED, log_here=True)
    line = found.pop("line")
    assert line.startswith("bert: job 12 FAILED")
    assert found == {
        "name": "bert",
        "folder": FOLDER,
        "job_id": 12,
        "running": False,
        "state": "FAILED",
        "batch_host": "n1",
        "log_here": True,
        "progress": PROGRESS,
        "report": {
            "name": "bert",
            "job_id": 12,
            "state": "FAILED",
            "hosts": "n[1-2]",
            "steps_wanted": 100,
            "restarts": 2,
            "started_at": 5,
            "ended_at": 9,
            "log_host": "n1",
        },
    }


def test_a_report_counts_more_than_what_was_noted_before() -> None:
    report = {"job_id": 13, "steps": 10, "initial_loss": 10.70049, "final_loss": 7}
    found = described(FOLDER, {"job_id": 12}, report, {**ENDED, "ended": False}, log_here=False)
    assert (found["job_id"], found["running"], found["state"], found["report"]) == (13, False, "COMPLETED", report)
    assert found["line"] == "bert: has succeeded after 10 steps, loss 10.7 to 7"


def test_another_folder_goes_by_its_own_name() -> None:
    found = described("data", {}, {}, NO_JOB, log_here=False)
    assert (found["name"], found["job_id"], found["running"]) == ("data", 0, True)
    assert found["line"].startswith("data: without Slurm")
    assert "job 0" not in found["line"]


def test_the_end_as_the_first_node_noted_it() -> None:
    assert unit_job({}) == NO_JOB
    end = {"exit_code": 0, "started_at": 1, "ended_at": 2, "restarts": 3}
    assert unit_job(end) == {
        **NO_JOB,
        "state": "COMPLETED",
        "ended": True,
        "restarts": 3,
        "started_at": 1,
        "ended_at": 2,
    }
    assert unit_job({"exit_code": 85})["state"] == "FAILED"
    assert unit_job({"exit_code": None})["restarts"] == 0


def test_what_is_not_known_is_empty() -> None:
    """Who shows it need not ask whether it is there."""
    assert NO_JOB == {
        "state": "UNKNOWN",
        "ended": False,
        "reason": "",
        "nodes": "",
        "batch_host": "",
        "restarts": 0,
        "started_at": None,
        "ended_at": None,
        "progress": {},
        "requeue_reason": "",
    }


def test_of_those_of_the_same_time_the_first_name_comes_first() -> None:
    folders = {"b-0123456789ab": 1.0, "a-0123456789ab": 1.0, "c-0123456789ab": 2.0}
    assert chosen(folders, "", 3) == ["c-0123456789ab", "a-0123456789ab", "b-0123456789ab"]
    assert name_of("-0123456789ab") is None


@pytest.mark.parametrize(
    ("record", "report", "steps"),
    [
        ({"steps": 0}, {}, None),
        ({"steps": 1}, {}, 1),
        ({"steps": -5, "job": {"progress": {"steps": 4}}}, {"steps_wanted": "x"}, 4),
        ({"job": {"progress": None}}, {}, None),
        ({"job": {"progress": {"step": 4}}}, {"steps": 3}, None),
    ],
)
def test_steps_that_make_no_sense_are_not_taken(
    record: dict[str, Any], report: dict[str, Any], steps: int | None
) -> None:
    assert steps_wanted(record, report) == steps
