"""What Slurm says of a job."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.jobs import (
    ENDED,
    NEVER,
    accounted,
    completed,
    has_ended,
    job_of,
    jobs_of,
    summed,
    task_count,
    with_forgotten,
)

NOW = 1795277200.0
# scontrol show job --oneliner of Slurm 22.05, shortened.
RUNNING = (
    "JobId=12 JobName=bert UserId=ubuntu(1000) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=2 "
    "ExitCode=0:0 StartTime=1795277100 EndTime=1795377100 NodeList=ip-192-0-2-[5-6] BatchHost=ip-192-0-2-5 NumNodes=2 "
    "Command=/opt/a=b/batch.sh Comment=trainium:0123456789abcdef  StdErr=/a.log "
)
PENDING = "JobId=13 JobName=bert JobState=PENDING Reason=Resources ExitCode=0:0 StartTime=1795278000 NodeList= "
FAILED = "JobId=14 JobName=bert JobState=FAILED Reason=NonZeroExitCode Requeue=1 ExitCode=3:0 NodeList=n1 BatchHost=n1"
ARRAY = """\
JobId=7 ArrayJobId=7 ArrayTaskId=3-5%2 JobName=arr JobState=PENDING Reason=JobArrayTaskLimit ExitCode=0:0 NodeList=
JobId=9 ArrayJobId=7 ArrayTaskId=2 JobName=arr JobState=FAILED Reason=NonZeroExitCode ExitCode=1:0 NodeList=n2
JobId=8 ArrayJobId=7 ArrayTaskId=1 JobName=arr JobState=RUNNING Reason=None ExitCode=0:0 StartTime=5 NodeList=n1
"""
# sacct --parsable2 --noheader --duplicates with SACCT_FIELDS.
ACCOUNTED = """\
21|NODE_FAIL|0:0|n[1-2]|100|110|None|bert||sbatch --comment=trainium:0123456789abcdef /a b|c
21.batch|CANCELLED|0:15|n1|100|110|None|batch||
21|FAILED|3:0|n[1-2]|230|250|NonZeroExitCode|bert||sbatch --comment=trainium:0123456789abcdef /a b|c
21.batch|FAILED|3:0|n1|230|250|None|batch||
21.0|FAILED|3:0|n[1-2]|230|250|None|bash||
22|CANCELLED by 1000|0:0|None assigned|None|300|Dependency|bert||sbatch /x
"""
# jobcomp/filetxt.
COMPLETED = """\
JobId=9 UserId=ubuntu(1000) GroupId=ubuntu(1000) Name=arr JobState=FAILED Partition=compute TimeLimit=UNLIMITED \
StartTime=2026-11-21T16:05:01 EndTime=2026-11-21T16:05:03 NodeList=n2 ArrayJobId=7 ArrayTaskId=2 ExitCode=1:0
JobId=1 UserId=ubuntu(1000) GroupId=ubuntu(1000) Name=f JobState=NODE_FAIL Partition=compute \
StartTime=2026-11-21T16:05:01 EndTime=2026-11-21T16:05:01 NodeList=n1 ExitCode=0:0
JobId=1 UserId=ubuntu(1000) GroupId=ubuntu(1000) Name=f JobState=COMPLETED Partition=compute \
StartTime=Unknown EndTime=2026-11-21T16:05:01 NodeList=(null) ExitCode=0:0
"""


def test_a_running_job() -> None:
    job = job_of(RUNNING)
    assert (job["job_id"], job["state"], job["reason"], job["exit_code"]) == (12, "RUNNING", "None", "0:0")
    assert (job["batch_host"], job["nodes"]) == ("ip-192-0-2-5", "ip-192-0-2-[5-6]")
    assert (job["restarts"], job["requeue"], job["comment"]) == (2, True, "trainium:0123456789abcdef")


def test_a_pending_job_has_no_nodes() -> None:
    job = job_of(PENDING)
    assert (job["state"], job["reason"], job["batch_host"], job["nodes"]) == ("PENDING", "Resources", "", "")


def test_times_that_slurm_only_expects_are_none() -> None:
    pending, running = summed(jobs_of(PENDING), NOW), summed(jobs_of(RUNNING), NOW)
    assert (pending["started_at"], pending["ended_at"]) == (None, None)
    assert (running["started_at"], running["ended_at"]) == (1795277100, None)


def test_a_job_that_slurm_forgot_has_ended() -> None:
    job = summed(jobs_of(""), NOW)
    assert (job["state"], job["ended"]) == ("UNKNOWN", True)


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "REQUEUED", "SUSPENDED"])
def test_states_in_which_a_job_goes_on(state: str) -> None:
    assert state not in ENDED


@pytest.mark.parametrize(
    ("changes", "ended"),
    [
        ({"state": "PENDING", "reason": NEVER}, True),
        ({"state": "PENDING", "reason": "Dependency"}, False),
        ({"state": "NODE_FAIL", "requeue": True, "ended_at": int(NOW) - 3}, False),
        ({"state": "NODE_FAIL", "requeue": True, "ended_at": int(NOW) - 300}, True),
        ({"state": "NODE_FAIL", "requeue": False, "ended_at": int(NOW) - 3}, True),
        ({"state": "FAILED", "requeue": True, "ended_at": int(NOW)}, True),
    ],
)
def test_when_a_job_has_ended(changes: dict[str, Any], ended: bool) -> None:
    assert has_ended({**job_of(FAILED), **changes}, NOW) is ended


def test_an_array_goes_on_as_long_as_a_task_does() -> None:
    job = summed(jobs_of(ARRAY), NOW)
    assert (job["state"], job["ended"], job["nodes"]) == ("RUNNING", False, "n2,n1")
    assert job["tasks"] == {"FAILED": 1, "PENDING": 3, "RUNNING": 1}


def test_an_array_has_failed_when_one_of_its_tasks_has() -> None:
    ended = [{**job, "state": "FAILED" if job["state"] == "FAILED" else "COMPLETED"} for job in jobs_of(ARRAY)]
    job = summed(ended, NOW)
    assert (job["state"], job["ended"], job["exit_code"]) == ("FAILED", True, "1:0")
    assert job["tasks"] == {"COMPLETED": 4, "FAILED": 1}


def test_tasks_of_an_array_that_are_forgotten_count() -> None:
    others = accounted(
        "7_0|FAILED|1:0|n1|1|2|None|a||\n7_2|COMPLETED|0:0|n1|1|2|None|a||\n7_[3-5]|PENDING|0:0||||None|a||"
    )
    job = summed(with_forgotten(jobs_of(ARRAY), others[0]), NOW)
    assert job["tasks"] == {"FAILED": 2, "PENDING": 3, "RUNNING": 1}


@pytest.mark.parametrize(
    ("tasks", "count"), [("3", 1), ("4-9:2", 3), ("[1,7-9%2]", 4), ("1,3,5,...", 3), ("", 1), ("0-3%1", 4)]
)
def test_tasks_of_an_array(tasks: str, count: int) -> None:
    assert task_count(tasks) == count


def test_accounting_knows_restarts_and_steps() -> None:
    (first, second), steps = accounted(ACCOUNTED)
    assert (first["job_id"], first["state"], first["restarts"], first["exit_code"]) == (21, "FAILED", 1, "3:0")
    assert (first["started_at"], first["ended_at"]) == (230, 250)
    assert first["comment"].endswith("/a b|c")
    assert (second["state"], second["nodes"], second["started_at"]) == ("CANCELLED", "", None)
    assert steps[-1] == {"step": "21.0", "state": "FAILED", "exit_code": "3:0", "nodes": "n[1-2]"}


def test_accounting_of_an_array() -> None:
    jobs, _steps = accounted("7_1|COMPLETED|0:0|n1|1|2|None|a||\n7_[2-3]|PENDING|0:0||||None|a||\n")
    assert summed(jobs, NOW)["tasks"] == {"COMPLETED": 1, "PENDING": 2}


def test_torn_lines_of_accounting_are_left_out() -> None:
    assert accounted("21|FAILED|3:0\n\n") == ([], [])


def test_the_list_of_completed_jobs() -> None:
    found = completed(COMPLETED.splitlines())
    assert [(job["name"], job["task"], job["state"], job["exit_code"]) for job in found[7]] == [
        ("arr", "2", "FAILED", "1:0")
    ]
    (job,) = found[1]
    assert (job["state"], job["restarts"], job["nodes"], job["started_at"]) == ("COMPLETED", 1, "", None)
    assert found[4711] == []
