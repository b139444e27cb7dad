"""The modules slurm_job, slurm_job_info and slurm_ready on a host with programs that play Slurm."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls
from ansible_collections.trainium.cluster.plugins.modules import slurm_job, slurm_job_info, slurm_ready

from tests.in_process import ended
from tests.unit.slurm.played_slurm import BUSY, PROGRAMS, Played

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    made = Played(tmp_path, monkeypatch)
    made.says("sbatch", "12\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    return made


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The modules set that of their process."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def job(tmp_path: Path, slurm: Played, capsys: pytest.CaptureFixture[str]) -> Run:
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\n")

    def call(**arguments: Any) -> dict[str, Any]:
        known = {"name": "bert", "script": str(script), "_ansible_remote_tmp": str(tmp_path), **arguments}
        return ended(slurm_job.main, {name: value for name, value in known.items() if value is not None}, capsys)[0]

    return call


def test_a_job_is_submitted_with_all_that_it_is_given(slurm: Played, job: Run, tmp_path: Path) -> None:
    slurm.job(12, "PENDING")
    found = job(
        partition="compute",
        nodes="2",
        ntasks_per_node=1,
        exclusive=True,
        time_limit="1:00:00",
        account="lab",
        qos="high",
        requeue=True,
        array="1-3",
        open_mode="append",
        args=["a b"],
        dependency=[{"job_ids": [5]}],
        chdir="/fsx",
        output="/fsx/%j.log",
        environment={"A": 1},
    )
    (asked,) = slurm.asked("sbatch")
    for word in (
        *("--partition=compute", "--nodes=2", "--ntasks-per-node=1", "--exclusive", "--time=1:00:00", "--account=lab"),
        *("--qos=high", "--requeue", "--array=1-3", "--open-mode=append", "--chdir=/fsx", "--output=/fsx/%j.log"),
        *("--dependency=afterok:5", "--job-name=bert"),
    ):
        assert f" {word} " in asked, word
    assert asked.endswith("/train.sh a b")
    assert slurm.environment("sbatch")["A"] == "1"
    assert (found["changed"], found["submitted"], found["job_id"], found["log"]) == (True, True, 12, "/fsx/12.log")
    assert found["diff"]["before"] == ""
    assert found["diff"]["after"].startswith("sbatch --comment=trainium:")
    # Its record lies where Slurm's own user may look for it.
    assert Path(found["record"]).stat().st_mode & 0o777 == 0o644
    assert Path(found["record"]).parent.stat().st_mode & 0o777 == 0o755


def test_nothing_that_was_not_given_is_told(slurm: Played, job: Run) -> None:
    slurm.job(12, "PENDING")
    job()
    words = [word.partition("=")[0] for word in slurm.asked("sbatch")[0].split()[:-1]]
    assert words == ["--parsable", "--comment", "--job-name", "--chdir"]
    # A home need not be shared; every node has this folder.
    assert "--chdir=/tmp " in slurm.asked("sbatch")[0]


def test_the_log_is_the_one_that_is_named_and_steps_make_a_progress_of_it(
    slurm: Played, job: Run, tmp_path: Path
) -> None:
    slurm.job(12, "RUNNING")
    (tmp_path / "own.log").write_text("first\nlast\n")
    found = job(log=str(tmp_path / "own.log"), steps=100, wait_timeout=5, record=str(tmp_path / "r" / "bert.json"))
    assert found["log"] == f"{tmp_path}/own.log"
    assert found["last_lines"] == ["first", "last"]
    assert found["record"] == f"{tmp_path}/r/bert.json"
    for option, value in (("steps", "many"), ("wait_timeout", "long"), ("wait", "maybe"), ("state", "started")):
        assert option in job(**{option: value})["msg"]
    for option, choices in (("resubmit", "failed, never, always"), ("open_mode", "append, truncate")):
        assert job(**{option: "x"})["msg"].startswith(f"value of {option} must be one of: {choices}")


def test_the_same_job_again_is_no_change(slurm: Played, job: Run) -> None:
    slurm.job(12, "RUNNING")
    first = job()
    slurm.says("squeue", f"12|RUNNING|trainium:{first['digest']}\n")
    slurm.job(12, "RUNNING", Comment=f"trainium:{first['digest']}")
    again = job()
    assert (again["changed"], again["submitted"], again["job_id"], again["state"]) == (False, False, 12, "RUNNING")
    assert again["diff"] == {"before": "job 12 RUNNING\n", "after": "job 12 RUNNING\n"}
    # Something that the script does not show makes it another.
    assert job(identity="v2", _ansible_check_mode=True)["digest"] != first["digest"]
    # It runs, so that only where just that is wanted there is a second one.
    assert job(resubmit="always", _ansible_check_mode=True)["submitted"]
    assert not job(resubmit="never", _ansible_check_mode=True)["submitted"]


def test_check_mode_needs_neither_script_nor_slurm(
    slurm: Played, job: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = job(script=str(tmp_path / "later.sh"), _ansible_check_mode=True)
    assert (found["changed"], found["submitted"], found["job_id"], found["log"]) == (True, True, 0, "")
    assert slurm.asked("squeue") == []
    monkeypatch.setattr(calls, "FOLDERS", [])
    for program in PROGRAMS:
        slurm.lacks(program)
    bare = job(_ansible_check_mode=True)
    assert {name: bare[name] for name in ("submitted", "command", "digest", "record")} == {
        "submitted": True,
        "command": [],
        "digest": "",
        "record": "",
    }
    assert job()["msg"].startswith("slurm_job: sbatch is not installed on this host;")
    # What would be refused anyway is refused already.
    assert job(time_limit="soon", _ansible_check_mode=True)["msg"].startswith("slurm_job: time_limit")


def test_what_is_missing_or_wrong_is_one_sentence(slurm: Played, job: Run, tmp_path: Path) -> None:
    assert job(script=None)["msg"] == "state is present but all of the following are missing: script"
    assert job(name=None)["msg"] == "missing required arguments: name"
    assert job(script=str(tmp_path / "none"))["msg"].startswith("slurm_job: script ")
    slurm.says("sbatch", err=BUSY, code=1)
    busy = job()
    assert busy["msg"].startswith("slurm_job: Slurm does not answer (")
    # Who asks in its place may ask again.
    assert busy["transient"] is True


def test_a_slurm_that_hangs_does_not_answer(slurm: Played, job: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (slurm.folder / "bin" / "squeue").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(calls, "SECONDS", 0.3)
    assert job()["msg"] == "slurm_job: Slurm does not answer (no answer within 0 s); check slurmctld on the head node."
    assert slurm.asked("sbatch") == []


def test_arguments_are_text_for_the_script(slurm: Played, job: Run) -> None:
    slurm.job(12, "PENDING")
    found = job(args=[1, True, "x"])
    assert found["command"][-3:] == ["1", "True", "x"]
    # Numbers of jobs are read from text as well.
    assert "--dependency=afterany:5:6" in job(dependency=[{"type": "afterany", "job_ids": ["5", 6]}])["command"]


@pytest.mark.parametrize("script", [None, ""])
@pytest.mark.parametrize("check", [True, False])
def test_a_script_that_a_variable_left_empty_is_missed(
    slurm: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str | None, check: bool
) -> None:
    given = {"name": "bert", "script": script, "_ansible_remote_tmp": str(tmp_path), "_ansible_check_mode": check}
    said = ended(slurm_job.main, given, capsys)[0]["msg"]
    assert said == "slurm_job: script is ''; give an absolute path on the host."
    assert slurm.asked("sbatch") == []


def test_jobs_of_a_name_are_cancelled_and_none_is_no_change(slurm: Played, job: Run) -> None:
    mine = "trainium:0123456789abcdef"
    slurm.says("squeue", f"5|R|{mine}\n8|R|{mine}\n")
    for number in (5, 8):
        slurm.job(number, "RUNNING", Comment=mine)
    foreseen = job(state="absent", script=None, _ansible_check_mode=True)
    assert (foreseen["changed"], foreseen["job_id"], slurm.asked("scancel")) == (True, 8, [])
    found = job(state="absent", script=None)
    assert (found["changed"], found["cancelled"], found["job_id"]) == (True, [8, 5], 8)
    assert found["diff"] == {
        "before": "job 8 RUNNING\njob 5 RUNNING\n",
        "after": "job 8 CANCELLED\njob 5 CANCELLED\n",
    }
    slurm.says("squeue", "")
    none = job(state="absent", script=None)
    assert (none["changed"], none["cancelled"], none["job_id"]) == (False, [], 0)
    assert none["diff"] == {"before": "", "after": ""}


def test_a_job_is_looked_at_once(slurm: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def info(**arguments: Any) -> dict[str, Any]:
        return ended(slurm_job_info.main, {"_ansible_remote_tmp": str(tmp_path), **arguments}, capsys)[0]

    slurm.job(12, "RUNNING")
    (tmp_path / "log").write_text("a line\nthe last line\n")
    found = info(job_id=12, log=str(tmp_path / "log"), steps=5, _ansible_check_mode=True)
    assert (found["changed"], found["state"], found["job_id"]) == (False, "RUNNING", 12)
    assert found["last_lines"][-1] == "the last line"
    assert info(job_id=0)["msg"] == "slurm_job_info: job_id is 0; give the number that sbatch printed."
    assert info(job_id=1)["state"] == "UNKNOWN"
    assert info()["msg"] == "missing required arguments: job_id"
    slurm.says("scontrol.job.12", err=BUSY, code=1)
    busy = info(job_id=12)
    assert (busy["msg"].startswith("slurm_job_info: Slurm does not answer"), busy["transient"]) == (True, True)


SINFO = "a|idle|root|static|none\nb|idle~|root|dynamic|none\nc|drained|ann|static|bad fan\nd|down*|slurm|static|gone\n"


def test_who_takes_jobs_who_is_waited_for_and_who_is_drained(
    slurm: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ready(**arguments: Any) -> dict[str, Any]:
        return ended(slurm_ready.main, {"_ansible_remote_tmp": str(tmp_path), **arguments}, capsys)[0]

    slurm.says("sinfo", SINFO)
    found = ready(_ansible_check_mode=True)
    assert (found["changed"], found["ready"]) == (False, ["a", "b"])
    assert (found["awaited"], found["drained"]) == (["d (down*, gone)"], ["c (drained, bad fan)"])
    assert found["text"]
    assert "--partition" not in slurm.asked("sinfo")[0]
    ready(partition="trn1")
    assert "--partition=trn1" in slurm.asked("sinfo")[1].split()
    slurm.says("sinfo", err=BUSY, code=1)
    busy = ready()
    assert (busy["msg"].startswith("slurm_ready: Slurm does not answer"), busy["transient"]) == (True, True)
