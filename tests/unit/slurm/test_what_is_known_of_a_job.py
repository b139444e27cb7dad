"""What is told of a job: by the controller, else by accounting, its list of completed jobs, or what was noted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import duration
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.look import look, read_tail, shown

from tests.unit.slurm.played_slurm import BUSY, Played
from tests.unit.slurm.test_one_job import DIGEST, MINE, accounted

STOPPED = (
    "training: stopped before the end of its time; what the script has saved stays.\n"
    "JOB is put into the queue again and goes on from its checkpoint.\n"
)
OTHER = "trainium:" + "0" * 16


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(tmp_path, monkeypatch)


def listed(slurm: Played, *lines: str) -> None:
    """The controller keeps a file of completed jobs."""
    file = slurm.folder / "completed"
    file.write_text("".join(f"{line}\n" for line in ("some other line", *lines)))
    slurm.says("scontrol.config", f"Configuration data\nJobCompLoc = {file}\nJobCompType = jobcomp/filetxt  \n")


def finished(number: int, state: str, end: str = "2033-05-18T03:33:20", name: str = "bert") -> str:
    return (
        f"JobId={number} UserId=u Name={name} JobState={state} StartTime=2033-05-18T03:30:00 EndTime={end} NodeList=n1"
    )


def test_the_controller_knows_it(slurm: Played) -> None:
    slurm.job(12, "FAILED", ExitCode="3:0", Comment=MINE)
    slurm.says("sacct", accounted("12.0", "FAILED", code="3:0", nodes="n2"))
    job = look(12)
    assert (job["job_id"], job["state"], job["ended"], job["succeeded"]) == (12, "FAILED", True, False)
    assert job["node_exit_codes"] == [{"node": "n2", "task": None, "exit_code": 3}]
    assert (job["requeue_reason"], job["last_lines"], job["progress"]) == ("", [], {})


def test_what_a_module_returns_of_it(slurm: Played) -> None:
    slurm.job(12, "COMPLETED", Comment=MINE)
    told = shown(look(12))
    assert set(told) == {
        *("job_id", "name", "state", "ended", "reason", "exit_code", "nodes", "batch_host", "restarts", "tasks"),
        *("started_at", "ended_at", "node_exit_codes", "progress", "last_lines", "requeue_reason", "succeeded"),
    }
    assert (told["succeeded"], told["started_at"], told["ended_at"]) == (True, 100, 200)


def test_accounting_knows_what_the_controller_has_forgotten(slurm: Played) -> None:
    slurm.says("sacct", f"{accounted('12', 'FAILED')}\n{accounted('12.0', 'FAILED', code='9:0', nodes='n1')}\n")
    job = look(12)
    assert (job["state"], job["ended_at"], job["succeeded"]) == ("FAILED", 200, False)
    assert job["node_exit_codes"]
    assert slurm.asked("sacct")[0].split()[-1] == "--jobs=12"
    # What was asked once is not asked again for the steps.
    assert len(slurm.asked("sacct")) == 1


@pytest.mark.parametrize(
    ("controller", "accounting", "state"),
    [
        (OTHER, MINE, "FAILED"),
        (OTHER, OTHER, "UNKNOWN"),
        # Without a comment nobody can say that it is another.
        ("(null)", OTHER, "RUNNING"),
        (MINE, OTHER, "RUNNING"),
    ],
)
def test_a_number_of_another_job_is_not_it(slurm: Played, controller: str, accounting: str, state: str) -> None:
    """A cluster that was made anew counts from 1 again."""
    slurm.job(12, "RUNNING", Comment=controller)
    slurm.says("sacct", accounted("12", "FAILED", accounting))
    assert look(12, record={"digest": DIGEST, "name": "bert"})["state"] == state
    # Who remembers nothing takes it as it is.
    assert look(12)["state"] == "RUNNING"


def test_the_list_of_completed_jobs_is_read(slurm: Played) -> None:
    slurm.lacks("sacct")
    listed(slurm, finished(11, "FAILED"), finished(12, "COMPLETED"))
    job = look(12)
    assert (job["state"], job["succeeded"], job["nodes"]) == ("COMPLETED", True, "n1")
    slurm.says("scontrol.config", f"JobCompLoc = {slurm.folder}/completed\nJobCompType = jobcomp/none\n")
    assert look(12)["state"] == "UNKNOWN"
    slurm.says("scontrol.config", "JobCompLoc = /nonexistent\nJobCompType = jobcomp/filetxt\n")
    assert look(12)["state"] == "UNKNOWN"


@pytest.mark.parametrize(
    ("name", "later", "state"),
    [("bert", -10, "COMPLETED"), ("bert", 50, "COMPLETED"), ("bert", 70, "UNKNOWN"), ("other", -10, "UNKNOWN")],
)
def test_one_that_ended_before_ours_was_submitted_is_another(
    slurm: Played, name: str, later: float, state: str
) -> None:
    end = int(time.mktime((2033, 5, 18, 3, 33, 20, 0, 0, -1)))
    listed(slurm, finished(12, "COMPLETED", name=name))
    record = {"digest": DIGEST, "name": "bert", "submitted_at": end + later}
    assert look(12, record=record)["state"] == state


def test_what_was_noted_of_its_end_is_the_last_resort(slurm: Played) -> None:
    kept = {"state": "COMPLETED", "job_id": 12}
    assert look(12, record={"digest": DIGEST, "name": "bert", "ended": True, "job": kept}) == kept
    assert look(12, record={"digest": DIGEST, "name": "bert", "ended": False, "job": kept})["state"] == "UNKNOWN"


@pytest.mark.parametrize(("step", "steps", "succeeded"), [(10, 10, True), (9, 10, False), (10, None, None)])
def test_a_log_tells_whether_it_came_to_its_end(
    tmp_path: Path, slurm: Played, step: int, steps: int | None, succeeded: bool | None
) -> None:
    log = tmp_path / "log"
    log.write_text(
        f"LOG Mon Jan  1 00:00:00 2026 - (0, {step}) step_loss : 1.5 learning_rate : 1.0e-03 throughput : 5.0\n"
    )
    job = look(12, str(log), steps)
    assert (job["state"], job["progress"].get("step"), job["succeeded"]) == ("UNKNOWN", step, succeeded)


def test_tasks_of_an_array_that_were_forgotten_are_counted(slurm: Played) -> None:
    slurm.says("scontrol.job.12", "JobId=13 ArrayJobId=12 ArrayTaskId=1 JobName=bert JobState=RUNNING\n")
    slurm.says("sacct", f"{accounted('12_0', 'COMPLETED')}\n{accounted('12_1', 'RUNNING')}\n")
    assert look(12)["tasks"] == {"COMPLETED": 1, "RUNNING": 1}


def test_accounting_that_is_busy_leaves_what_the_controller_knows(slurm: Played) -> None:
    slurm.job(12, "FAILED", Comment=MINE)
    slurm.says("sacct", err="sacct: error: Sending PersistInit msg: Connection refused", code=1)
    assert look(12)["node_exit_codes"] == []
    # But where only accounting could tell, nobody knows.
    with pytest.raises(calls.SlurmBusyError, match=r"Slurm's accounting does not answer .* check slurmdbd"):
        look(13)
    slurm.says("sacct", err="Slurm accounting storage is disabled", code=1)
    assert look(13)["state"] == "UNKNOWN"


@pytest.mark.parametrize(
    ("restarts", "log", "down", "reason"),
    [
        ("0", "", "n2", ""),
        ("1", "", "n2 n5", "node failure, n2,n5 down"),
        ("1", "", "", ""),
        ("1", STOPPED, "n2", "it stopped before the end of its time"),
    ],
)
def test_why_it_was_put_back(tmp_path: Path, slurm: Played, restarts: str, log: str, down: str, reason: str) -> None:
    (tmp_path / "log").write_text(log)
    slurm.job(12, "RUNNING", Comment=MINE, Restarts=restarts)
    slurm.says("sinfo", down)
    found = look(12, str(tmp_path / "log"))["requeue_reason"]
    assert (reason in found) and bool(reason) == bool(found)
    assert slurm.asked("sinfo") in ([], ["--noheader --states=down,fail,no_respond --format=%N"])


def test_nodes_are_not_guessed_where_sinfo_fails(slurm: Played) -> None:
    slurm.says("sinfo", "n1", BUSY, 1)
    assert calls.nodes_down() == ""


def test_a_controller_that_does_not_answer_is_no_forgotten_job(slurm: Played) -> None:
    slurm.says("scontrol.job.12", err=BUSY, code=1)
    with pytest.raises(calls.SlurmBusyError, match="Slurm does not answer") as caught:
        look(12)
    assert caught.value.details["transient"]
    slurm.says("squeue", err=BUSY, code=1)
    with pytest.raises(calls.SlurmBusyError):
        calls.named("bert")
    with pytest.raises(calls.SlurmBusyError):
        calls.jobs_on(["n1"])
    slurm.says("sinfo", err=BUSY, code=1)
    with pytest.raises(calls.SlurmBusyError):
        calls.nodes()


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 70000 + b"end")
    assert len(read_tail(str(log))) == 65536
    assert read_tail(str(log)).endswith("xend")
    assert read_tail(str(tmp_path / "none")) == ""
    assert read_tail(str(tmp_path)) == ""
    with pytest.raises(TrainiumError, match=r"log /a\x00b cannot be read"):
        read_tail("/a\x00b")


# --- what is asked of Slurm ---


def test_what_is_asked_of_nodes(slurm: Played) -> None:
    assert calls.nodes() == {}
    assert calls.nodes("trn1") == {}
    whole, part = slurm.asked("sinfo")
    assert whole.startswith("--Node --noheader --format=")
    assert part == f"{whole} --partition=trn1"
    assert calls.jobs_on([]) == {}
    assert slurm.asked("squeue") == []
    slurm.says("squeue", "7|RUNNING|n[1-2]\n8|PENDING|\n")
    assert calls.jobs_on(["n1", "n3"]) == {"n1": ["7"], "n3": []}
    assert slurm.asked("squeue") == ["--noheader --all --states=all --nodelist=n1,n3 --format=%i|%T|%N"]


def test_a_change_that_slurm_does_not_take_is_said(slurm: Played) -> None:
    slurm.says("scontrol.nodename=n1")
    calls.update_node("n1", "state=drain", "reason=a b")
    assert slurm.asked("scontrol") == ["update nodename=n1 state=drain reason=a b"]
    slurm.says("scontrol.nodename=n1", err="slurm_update error: Invalid node name\n", code=1)
    with pytest.raises(TrainiumError, match="does not take state=drain for n1: slurm_update error: Invalid node name"):
        calls.update_node("n1", "state=drain")


def test_accounted_jobs_come_newest_first(slurm: Played) -> None:
    slurm.says("sacct", "\n".join(accounted(number, "COMPLETED") for number in ("5", "12", "7")))
    found: list[dict[str, Any]] = calls.accounted_named("bert")
    assert [(job["job_id"], job["digest"]) for job in found] == [(12, DIGEST), (7, DIGEST), (5, DIGEST)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((89, "89 s"), (90, "2 min"), (7139, "119 min"), (7200, "2 h 0 min"), (47 * 3600 + 59 * 60, "47 h 59 min")),
        *((48 * 3600, "2 d 0 h"), (52 * 3600, "2 d 4 h")),
    ],
)
def test_how_long_something_takes(seconds: float, text: str) -> None:
    assert duration(seconds) == text
