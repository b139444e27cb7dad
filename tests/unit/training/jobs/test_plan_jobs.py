"""The trainings of a host, from their folders and from what Slurm says."""

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
RUNNING = {
    **NO_JOB,
    "state": "RUNNING",
    "nodes": "n[1-2]",
    "batch_host": "n1",
    "restarts": 1,
    "started_at": 5,
    "progress": {"step": 14, "steps": 100, "loss": 10.7, "throughput": 6449.36, "seconds_left": 180},
}


@pytest.mark.parametrize(
    ("folder", "name"),
    [(FOLDER, "bert"), ("bert-large-p1-0123456789ab", "bert-large-p1"), ("data", None), ("bert-0123456789AB", None)],
)
def test_a_folder_is_named_after_its_training(folder: str, name: str | None) -> None:
    assert name_of(folder) == name


def test_the_newest_come_first() -> None:
    folders = {"a-0123456789ab": 1.0, "b-0123456789ab": 3.0, "a-0123456789ac": 2.0, "lost+found": 9.0}
    assert chosen(folders, "", 2) == ["b-0123456789ab", "a-0123456789ac"]
    assert chosen(folders, "a", 10) == ["a-0123456789ac", "a-0123456789ab"]
    assert chosen(folders, "c", 10) == []


def test_a_running_training_has_as_much_of_a_report_as_is_known() -> None:
    found = described(FOLDER, {"job_id": 12}, {}, RUNNING, log_here=False)
    assert (found["running"], found["job_id"], found["log_here"]) == (True, 12, False)
    assert found["report"] == {
        "name": "bert",
        "job_id": 12,
        "state": "",
        "hosts": "n[1-2]",
        "steps_wanted": 0,
        "restarts": 1,
        "started_at": 5,
        "ended_at": None,
        "log_host": "n1",
    }
    assert found["line"].startswith("bert: job 12 RUNNING on n[1-2]")
    assert "step 14 of 100, loss 10.70, 6449.4 examples/s, about 3 min left" in found["line"]


def test_a_training_with_a_report_has_ended() -> None:
    report = {"name": "bert", "job_id": 12, "steps": 100, "initial_loss": 10.7, "final_loss": None}
    found = described(FOLDER, {}, report, NO_JOB, log_here=True)
    assert (found["running"], found["state"], found["report"]) == (False, "COMPLETED", report)
    assert found["line"] == "bert: has succeeded after 100 steps, loss 10.7 to None"


def test_one_that_failed_is_not_running() -> None:
    job = {**RUNNING, "state": "FAILED", "ended": True, "ended_at": 9}
    found = described(FOLDER, {"job_id": 12}, {}, job, log_here=True)
    assert (found["running"], found["report"]["state"], found["report"]["ended_at"]) == (False, "FAILED", 9)


@pytest.mark.parametrize(
    ("end", "state", "line"),
    [
        ({}, "UNKNOWN", "bert: without Slurm"),
        ({"exit_code": 0, "started_at": 1, "ended_at": 2, "restarts": 1}, "COMPLETED", "bert: without Slurm COMPLETED"),
        ({"exit_code": 3}, "FAILED", "bert: without Slurm FAILED"),
    ],
)
def test_without_slurm_the_first_node_tells(end: dict[str, Any], state: str, line: str) -> None:
    found = described(FOLDER, {}, {}, unit_job(end), log_here=True)
    assert (found["state"], found["running"]) == (state, not end)
    assert found["line"].startswith(line)


@pytest.mark.parametrize(
    ("record", "report", "steps"),
    [
        ({}, {}, None),
        ({"steps": 100}, {}, 100),
        ({"job": {"progress": {"steps": 50}}}, {}, 50),
        ({"steps": 100}, {"steps_wanted": 7}, 7),
        ({"job": None, "steps": "x"}, {}, None),
    ],
)
def test_the_steps_that_are_to_be_done(record: dict[str, Any], report: dict[str, Any], steps: int | None) -> None:
    assert steps_wanted(record, report) == steps
