"""What Slurm says of a job."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._planners.slurm_jobs import (
    ENDED,
    job_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._planners.slurm_report import job_text

# scontrol show job --oneliner of Slurm 22.05, shortened.
RUNNING = (
    "JobId=12 JobName=bert UserId=ubuntu(1000) JobState=RUNNING Reason=None Dependency=(null) ExitCode=0:0 "
    "NodeList=ip-192-0-2-[5-6] BatchHost=ip-192-0-2-5 NumNodes=2 Command=/opt/a=b/batch.sh "
)
PENDING = "JobId=13 JobName=bert JobState=PENDING Reason=Resources ExitCode=0:0 NodeList= NumNodes=2-2 "


def test_a_running_job() -> None:
    job = job_of(RUNNING)
    assert (job["job_id"], job["state"], job["reason"], job["exit_code"]) == (12, "RUNNING", "None", "0:0")
    assert (job["batch_host"], job["nodes"]) == ("ip-192-0-2-5", "ip-192-0-2-[5-6]")


def test_a_pending_job_has_no_nodes() -> None:
    job = job_of(PENDING)
    assert (job["state"], job["reason"], job["batch_host"], job["nodes"]) == ("PENDING", "Resources", "", "")


def test_a_job_that_slurm_forgot_has_ended() -> None:
    assert job_of("")["state"] == "UNKNOWN"
    assert "UNKNOWN" in ENDED


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "REQUEUED", "SUSPENDED"])
def test_states_in_which_a_job_goes_on(state: str) -> None:
    assert state not in ENDED


@pytest.mark.parametrize(
    ("line", "progress", "text"),
    [
        (PENDING, {}, "job 13 PENDING (Resources)"),
        (RUNNING, {}, "job 12 RUNNING on ip-192-0-2-[5-6]"),
        (
            RUNNING,
            {"step": 14, "steps": 100, "loss": 10.7011, "throughput": 6449.36},
            "job 12 RUNNING on ip-192-0-2-[5-6]: step 14 of 100, loss 10.70, 6449.4 examples/s",
        ),
    ],
)
def test_the_line_for_the_screen(line: str, progress: dict[str, Any], text: str) -> None:
    assert job_text({**job_of(line), "progress": progress}) == text
