"""A job from its submission to its end: submitted once, found again wherever it is known, and told of as it is."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import run
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.calls import SlurmBusyError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.submit import digest_of

from tests.unit.slurm.played_slurm import BUSY, PROGRAMS, Played

SCRIPT = b"#!/bin/sh\n"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    made = Played(tmp_path, monkeypatch)
    made.says("sbatch", "12;cluster\n")
    return made


def options(folder: Path, **changes: Any) -> dict[str, Any]:
    record = str(folder / "records" / "bert.json")
    known = {"name": "bert", "script": "/fsx/train.batch", "args": ["a b"], "environment": {"A": "b"}}
    return {**known, "resubmit": "failed", "record": record, "steps": 10, **changes}


DIGEST = digest_of(options(Path("/")), SCRIPT)
MINE = f"trainium:{DIGEST}"


def noted(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "records" / "bert.json").read_text())
    return found


def note(folder: Path, **record: Any) -> None:
    (folder / "records").mkdir(exist_ok=True)
    (folder / "records" / "bert.json").write_text(json.dumps({"name": "bert", "digest": DIGEST, **record}))


def accounted(number: str, state: str, comment: str = MINE, **fields: str) -> str:
    """A line of sacct."""
    known = {"code": "0:0", "nodes": "n[1-2]", "start": "100", "end": "200", **fields}
    return "|".join(
        [number, state, known["code"], known["nodes"], known["start"], known["end"], "None", "bert", comment, "sbatch"]
    )


def test_a_job_is_submitted_and_remembered(tmp_path: Path, slurm: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SBATCH_PARTITION", "SLURM_CONF", "LANG"):
        monkeypatch.setenv(name, "mine")
    slurm.job(12, "RUNNING", Comment=MINE)
    before = time.time()
    made = run.present(options(tmp_path), SCRIPT, False)
    assert slurm.asked("sbatch") == [f"--parsable --comment={MINE} --job-name=bert /fsx/train.batch a b"]
    assert made["command"] == ["sbatch", f"--comment={MINE}", "--job-name=bert", "/fsx/train.batch", "a b"]
    assert (made["submitted"], made["before"], made["digest"]) == (True, None, DIGEST)
    assert (made["job_id"], made["state"], made["ended"], made["succeeded"]) == (12, "RUNNING", False, False)
    record = noted(tmp_path)
    assert before <= record.pop("submitted_at") <= time.time()
    assert record.pop("job")["nodes"] == "n[1-2]"
    assert record == {"job_id": 12, "name": "bert", "digest": DIGEST, "steps": 10, "ended": False}
    given = slurm.environment("sbatch")
    assert given["A"] == "b"
    assert given["TRAINIUM_END_FILE"] == f"{tmp_path}/records/bert.json.end"
    assert {"HOME", "USER", "LOGNAME", "SHELL"} <= set(given)
    # What a session of Ansible brings along would change the job unseen; where Slurm is, it needs.
    assert "SBATCH_PARTITION" not in given
    assert (given["SLURM_CONF"], given["LANG"]) == ("mine", "mine")
    # Times are asked for in seconds.
    assert slurm.environment("scontrol")["SLURM_TIME_FORMAT"] == "%s"


@pytest.mark.parametrize(
    ("queue", "accounting", "record", "found"),
    [
        (f"12|RUNNING|{MINE}\n13|RUNNING|{MINE}\n", "", {}, 13),
        (f"14|RUNNING|trainium:0123456789abcdef\n13|RUNNING|{MINE}\nx|y\n", "", {}, 13),
        ("14|RUNNING|\n", accounted("12", "RUNNING") + "\n" + accounted("11", "COMPLETED"), {}, 12),
        ("", accounted("12", "RUNNING", "(null)"), {"job_id": 15}, 15),
        # The controller first, then the record, then accounting, which may have one of a cluster before.
        ("", accounted("12", "RUNNING"), {"job_id": 15}, 15),
        ("", accounted("12", "RUNNING"), {"job_id": 15, "digest": "other"}, 12),
    ],
)
def test_the_same_job_is_found_again(
    tmp_path: Path, slurm: Played, queue: str, accounting: str, record: dict[str, Any], found: int
) -> None:
    slurm.says("squeue", queue)
    slurm.says("sacct", accounting)
    for number in (11, 12, 13, 14, 15):
        slurm.job(number, "RUNNING", Comment=MINE)
    if record:
        note(tmp_path, **record)
    made = run.present(options(tmp_path), SCRIPT, False)
    assert (made["submitted"], made["job_id"], made["before"]["job_id"]) == (False, found, found)
    assert slurm.asked("sbatch") == []
    assert noted(tmp_path)["job_id"] == found


def test_our_own_jobs_of_the_name_are_asked_for(tmp_path: Path, slurm: Played) -> None:
    slurm.job(12, "RUNNING", Comment=MINE)
    run.present(options(tmp_path), SCRIPT, False)
    mine = f"--user={os.getuid()}"
    assert slurm.asked("squeue")[0] == f"--noheader {mine} --name=bert --states=all --format=%F|%T|%k"
    words = slurm.asked("sacct")[0].split()
    assert {"--noheader", "--parsable2", "--duplicates", "--allocations", "--name=bert", mine} <= set(words)
    assert "--starttime=now-90days" in words


def test_one_that_failed_is_submitted_again_unless_never(tmp_path: Path, slurm: Played) -> None:
    slurm.says("squeue", f"11|FAILED|{MINE}\n")
    slurm.job(11, "FAILED", Comment=MINE, ExitCode="3:0")
    slurm.job(12, "PENDING", Comment=MINE)
    kept = run.present(options(tmp_path, resubmit="never"), SCRIPT, False)
    assert (kept["submitted"], kept["job_id"], kept["ended"], kept["succeeded"]) == (False, 11, True, False)
    again = run.present(options(tmp_path), SCRIPT, False)
    assert (again["submitted"], again["job_id"], again["before"]["job_id"]) == (True, 12, 11)
    assert slurm.asked("scancel") == []


def test_one_that_can_never_start_is_cancelled_first(tmp_path: Path, slurm: Played) -> None:
    slurm.says("squeue", f"11|PENDING|{MINE}\n")
    slurm.job(11, "PENDING", Comment=MINE, Reason="DependencyNeverSatisfied")
    slurm.job(12, "PENDING", Comment=MINE)
    assert run.present(options(tmp_path), SCRIPT, False)["job_id"] == 12
    assert slurm.asked("scancel") == ["11"]


def test_check_mode_foresees_and_changes_nothing(tmp_path: Path, slurm: Played) -> None:
    slurm.says("sbatch", err="sbatch: Job 13 to start at 2026-01-01\n")
    made = run.present(options(tmp_path), SCRIPT, True)
    assert (made["submitted"], made["before"], made["foreseen"]) == (True, None, "Job 13 to start at 2026-01-01")
    assert slurm.asked("sbatch")[0].startswith(f"--test-only --comment={MINE} ")
    assert not (tmp_path / "records").exists()
    slurm.says("squeue", f"12|RUNNING|{MINE}\n")
    slurm.job(12, "RUNNING", Comment=MINE)
    known = run.present(options(tmp_path), SCRIPT, True)
    assert (known["submitted"], known["job_id"], known["before"]["state"]) == (False, 12, "RUNNING")
    slurm.says("sbatch", err="sbatch: error: Batch job submission failed: Invalid qos\n", code=1)
    with pytest.raises(TrainiumError, match="Slurm would refuse the job: Invalid qos;"):
        run.present(options(tmp_path, resubmit="always"), SCRIPT, True)


@pytest.mark.parametrize(
    ("out", "err", "code", "busy", "said"),
    [
        (
            "",
            "sbatch: error: Batch job submission failed: Invalid qos",
            1,
            False,
            "Slurm refuses the job: Invalid qos;",
        ),
        ("", BUSY, 1, True, "Slurm does not answer"),
        ("oops", "", 0, False, "Slurm refuses the job: exit code 0"),
        ("12", "sbatch: error: Requested node configuration is not available", 1, False, "is not available; see sinfo"),
    ],
)
def test_what_slurm_does_not_take_is_said(
    tmp_path: Path, slurm: Played, out: str, err: str, code: int, busy: bool, said: str
) -> None:
    slurm.says("sbatch", out, err, code)
    with pytest.raises(TrainiumError, match=said) as caught:
        run.present(options(tmp_path), SCRIPT, False)
    assert isinstance(caught.value, SlurmBusyError) == busy
    assert not (tmp_path / "records" / "bert.json").exists()


@pytest.mark.parametrize(("end", "submitted"), [("12 0", False), ("12 3", True), ("12 0 more", False)])
def test_how_a_job_ended_it_has_written_itself(tmp_path: Path, slurm: Played, end: str, submitted: bool) -> None:
    """For when Slurm has forgotten it and there is no accounting."""
    slurm.lacks("sacct")
    note(tmp_path, job_id=12)
    (tmp_path / "records" / "bert.json.end").write_text(f"{end}\n")
    slurm.says("sbatch", "13\n")
    slurm.job(13, "PENDING", Comment=MINE)
    made = run.present(options(tmp_path), SCRIPT, False)
    assert (made["submitted"], made["before"]["succeeded"]) == (submitted, not submitted)


@pytest.mark.parametrize("end", ["11 0", "", "x", "12"])
def test_an_end_of_another_job_or_none_says_nothing(tmp_path: Path, slurm: Played, end: str) -> None:
    note(tmp_path, job_id=12)
    (tmp_path / "records" / "bert.json.end").write_text(end)
    with pytest.raises(ValueError, match="Slurm has forgotten job 12"):
        run.present(options(tmp_path), SCRIPT, False)
    assert slurm.asked("sbatch") == []


@pytest.mark.parametrize(
    ("kind", "state", "refused"),
    [
        ("afterok", "FAILED", True),
        ("aftercorr", "CANCELLED", True),
        ("afterok", "COMPLETED", False),
        ("afterok", "RUNNING", False),
        ("afterany", "FAILED", False),
    ],
)
def test_a_job_that_was_forgotten_is_not_taken_for_a_success(
    tmp_path: Path, slurm: Played, kind: str, state: str, refused: bool
) -> None:
    slurm.says("sacct", accounted("5", state, "(null)"))
    slurm.job(12, "PENDING", Comment=MINE)
    wanted = options(tmp_path, dependency=[{"type": kind, "job_ids": [5]}])
    if refused:
        with pytest.raises(TrainiumError, match=f"job 5, which has to succeed first, ended as {state};"):
            run.present(wanted, SCRIPT, False)
        assert slurm.asked("sbatch") == []
    else:
        assert run.present(wanted, SCRIPT, False)["job_id"] == 12


def test_one_that_the_controller_knows_it_judges_itself(tmp_path: Path, slurm: Played) -> None:
    slurm.job(5, "FAILED")
    slurm.says("sacct", accounted("5", "FAILED", "(null)"))
    slurm.job(12, "PENDING", Comment=MINE)
    assert run.present(options(tmp_path, dependency=[{"type": "afterok", "job_ids": [5]}]), SCRIPT, False)["submitted"]


def test_a_record_lies_where_nobody_named_one(tmp_path: Path, slurm: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    slurm.job(12, "RUNNING", Comment=MINE)
    made = run.present(options(tmp_path, record=None), SCRIPT, False)
    assert made["record"] == f"{tmp_path}/.local/state/trainium/jobs/bert-{DIGEST}.json"
    assert json.loads(Path(made["record"]).read_text())["job_id"] == 12


def test_a_record_that_cannot_be_is_said_before_the_job(tmp_path: Path, slurm: Played) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrainiumError, match=r"record .*/file/x.json cannot be made \(.*\); see its folder"):
        run.present(options(tmp_path, record=str(tmp_path / "file" / "x.json")), SCRIPT, False)
    assert slurm.asked("sbatch") == []


@pytest.mark.parametrize("text", ["[]", "{", '{"job_id": "12"}'])
def test_a_record_that_is_not_ours_counts_for_nothing(tmp_path: Path, slurm: Played, text: str) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "bert.json").write_text(text)
    slurm.job(12, "RUNNING", Comment=MINE)
    assert run.present(options(tmp_path), SCRIPT, False)["submitted"]


def test_a_host_without_slurm_is_named(tmp_path: Path, slurm: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in PROGRAMS:
        slurm.lacks(program)
    monkeypatch.setattr(run.slurm, "FOLDERS", [])
    with pytest.raises(TrainiumError, match="sbatch is not installed on this host"):
        run.present(options(tmp_path), SCRIPT, False)
    with pytest.raises(TrainiumError, match="scancel is not installed on this host"):
        run.absent({"name": "bert"}, False)
    assert run.absent({"name": "bert"}, True) == {"cancelled": [], "before": []}


def test_the_time_of_the_submission_is_kept(tmp_path: Path, slurm: Played) -> None:
    """A record that was lost has the job's start in its place."""
    slurm.says("squeue", f"12|RUNNING|{MINE}\n")
    slurm.job(12, "RUNNING", Comment=MINE)
    run.present(options(tmp_path), SCRIPT, False)
    assert noted(tmp_path)["submitted_at"] == 100
    note(tmp_path, job_id=12, submitted_at=55)
    run.present(options(tmp_path), SCRIPT, False)
    assert noted(tmp_path)["submitted_at"] == 55


# --- what is cancelled ---


def test_jobs_of_a_name_are_cancelled_that_are_ours_and_have_not_ended(tmp_path: Path, slurm: Played) -> None:
    slurm.says("squeue", f"5|R|{MINE}\n6|R|\n7|F|{MINE}\n8|PD|{MINE}\n")
    slurm.job(5, "RUNNING", Comment=MINE)
    slurm.job(7, "FAILED", Comment=MINE)
    slurm.job(8, "PENDING", Comment=MINE, Reason="DependencyNeverSatisfied")
    assert run.absent({"name": "bert"}, True)["cancelled"] == [8, 5]
    assert slurm.asked("scancel") == []
    made = run.absent({"name": "bert"}, False)
    assert (made["cancelled"], [job["job_id"] for job in made["before"]]) == ([8, 5], [8, 5])
    assert slurm.asked("scancel") == ["8 5"]
    note(tmp_path, job_id=5)
    assert run.absent(options(tmp_path), False)["cancelled"] == [5]
    note(tmp_path, job_id=7)
    assert run.absent(options(tmp_path), False)["cancelled"] == []


@pytest.mark.parametrize(
    ("err", "busy", "said"),
    [
        ("scancel: error: Kill job error on job id 5: Invalid job id specified", False, ""),
        ("scancel: error: Job/step already completing or completed", False, ""),
        (BUSY, True, "Slurm does not answer"),
        ("scancel: error: Access/permission denied", False, "does not cancel job 5: Access/permission denied"),
    ],
)
def test_one_that_has_ended_meanwhile_is_no_error(slurm: Played, err: str, busy: bool, said: str) -> None:
    slurm.says("squeue", f"5|R|{MINE}\n")
    slurm.job(5, "RUNNING", Comment=MINE)
    slurm.says("scancel", err=err, code=1)
    if said:
        with pytest.raises(TrainiumError, match=said) as caught:
            run.absent({"name": "bert"}, False)
        assert isinstance(caught.value, SlurmBusyError) == busy
    else:
        assert run.absent({"name": "bert"}, False)["cancelled"] == [5]


# --- the script ---


def test_the_script_is_read_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "a.sh"
    script.write_bytes(SCRIPT)
    assert run.read_script(str(script), False) == SCRIPT
    assert run.read_script(None, False) is None
    assert run.read_script(str(tmp_path / "none"), True) is None
    with pytest.raises(ValueError, match="does not exist on this host; write it there first"):
        run.read_script(str(tmp_path / "none"), False)
    for check in (True, False):
        with pytest.raises(ValueError, match=r"cannot be read \(Is a directory\)"):
            run.read_script(str(tmp_path), check)
    script.write_bytes(b"echo\n")
    with pytest.raises(ValueError, match="does not begin with #!"):
        run.read_script(str(script), True)
