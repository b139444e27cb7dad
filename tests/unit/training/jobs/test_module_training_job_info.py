"""The module training_job_info: trainings by their folders, on a host with and without Slurm."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training import run_jobs
from ansible_collections.trainium.cluster.plugins.module_utils._training.plan_jobs import NO_JOB
from ansible_collections.trainium.cluster.plugins.modules.internal import training_job_info

from tests.in_process import ended

Item = dict[str, Any]
OLD, NEW, OTHER = "bert-0123456789ab", "bert-0123456789ac", "llama-0123456789ab"
STEP = "LOG Wed Dec 21 00:51:01 2022 - (0, {}) step_loss : 8.31 learning_rate : 2.80e-06 throughput : 155.20\n"


class Host:
    """A host's folder for trainings, and the module on it; without Slurm unless a test says otherwise."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._patch, self._capsys = folder, patch, capsys
        patch.setattr(run_jobs.slurm, "installed", lambda: False)

    def training(self, name: str, age: float = 0, **files: Any) -> Path:
        """A folder whose files are records, or texts where they are text."""
        path = self.folder / "jobs" / name
        path.mkdir(parents=True)
        for file, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (path / file.replace("__", ".")).write_text(text)
        for place in (*path.iterdir(), path):
            os.utime(place, (1_000_000 - age, 1_000_000 - age))
        return path

    def slurm(self, answer: Item) -> list[tuple[Any, ...]]:
        """Slurm is there and says this; what it was asked."""
        asked: list[tuple[Any, ...]] = []

        def look(*arguments: Any) -> Item:
            asked.append(arguments)
            return {**NO_JOB, **answer}

        self._patch.setattr(run_jobs.slurm, "installed", lambda: True)
        self._patch.setattr(run_jobs, "look", look)
        return asked

    def run(self, **arguments: Any) -> list[Item]:
        result, _code = ended(training_job_info.main, {"directory": str(self.folder), **arguments}, self._capsys)
        assert not result.get("failed"), result
        assert result["changed"] is False
        found: list[Item] = result["trainings"]
        return found


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, monkeypatch, capsys)


def test_without_trainings_there_are_none(host: Host) -> None:
    assert host.run() == []
    (host.folder / "jobs").mkdir()
    (host.folder / "jobs" / OLD).touch()
    assert host.run() == []


def test_a_folder_that_cannot_be_read_is_named(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.folder / "jobs").touch()
    result, _code = ended(training_job_info.main, {"directory": str(host.folder)}, capsys)
    assert result["msg"] == f"training_job_info: {host.folder}/jobs cannot be read (Not a directory); set directory."


def test_the_newest_are_told_first_by_what_was_done_last(host: Host) -> None:
    host.training(OLD, age=50)
    host.training(NEW, age=40)
    host.training(OTHER, age=30)
    assert [one["folder"] for one in host.run()] == [OTHER, NEW, OLD]
    # A log that grows makes a training new, as its record does.
    log = host.folder / "jobs" / OLD / "train.log"
    log.write_text(STEP.format(7))
    os.utime(log, (1_000_000, 1_000_000))
    os.utime(log.parent, (999_000, 999_000))
    record = host.folder / "jobs" / NEW / "train.json"
    record.write_text("{}")
    os.utime(record, (1_000_001, 1_000_001))
    assert [one["folder"] for one in host.run()] == [NEW, OLD, OTHER]
    assert [one["folder"] for one in host.run(limit=1)] == [NEW]
    assert [one["folder"] for one in host.run(name="bert")] == [NEW, OLD]
    assert [one["folder"] for one in host.run(folder=OTHER, limit=1)] == [OTHER]
    assert host.run(folder="none-0123456789ab") == []


def test_without_slurm_the_log_and_the_first_nodes_record_tell(host: Host) -> None:
    path = host.training(OLD, train__log=STEP.format(7), train__json={"steps": 100})
    (found,) = host.run()
    assert (found["running"], found["job_id"], found["progress"]["step"]) == (True, 0, 7)
    assert (found["path"], found["log"], found["log_here"]) == (str(path), str(path / "train.log"), True)
    assert "without Slurm" in found["line"] and "step 7 of 100" in found["line"]
    (path / "node.0.json").write_text(json.dumps({"exit_code": 1, "restarts": 2, "started_at": 5, "ended_at": 9}))
    (found,) = host.run()
    assert (found["running"], found["state"]) == (False, "FAILED")
    report = found["report"]
    assert (report["restarts"], report["started_at"], report["ended_at"]) == (2, 5, 9)


def test_a_number_of_a_job_is_of_no_use_without_slurm(host: Host) -> None:
    host.training(OLD, train__json={"job_id": 12})
    (found,) = host.run()
    assert (found["job_id"], found["state"], found["log_here"]) == (12, "UNKNOWN", False)


def test_slurm_is_asked_for_a_job_that_has_not_ended(host: Host) -> None:
    asked = host.slurm({"state": "RUNNING", "batch_host": "n1", "nodes": "n[1-2]"})
    record = {"job_id": 12, "steps": 100}
    path = host.training(OLD, train__json=record)
    host.training(NEW, age=1)
    running, unknown = host.run()
    assert asked == [(12, str(path / "train.log"), 100, record)]
    assert (running["state"], running["batch_host"], running["job_id"]) == ("RUNNING", "n1", 12)
    assert unknown["state"] == "UNKNOWN"


def test_a_host_with_the_log_alone_is_told_the_number(host: Host) -> None:
    asked = host.slurm({"state": "RUNNING"})
    host.training(OLD)
    host.training(NEW, age=1, train__json={"job_id": 5})
    first, second = host.run(known={OLD: "12", NEW: "13"})
    # Its own record counts more.
    assert (first["job_id"], second["job_id"]) == (12, 5)
    assert [one[0] for one in asked] == [12, 5]


def test_with_a_report_nobody_is_asked(host: Host) -> None:
    asked = host.slurm({"state": "RUNNING"})
    report = '{"name": "bert", "job_id": 12, "steps": 100, "initial_loss": NaN, "final_loss": 8.0}'
    host.training(OLD, train__json={"job_id": 12}, report__json=report)
    (found,) = host.run()
    assert (asked, found["state"], found["running"]) == ([], "COMPLETED", False)
    # JSON has no name for what is no number.
    assert found["report"]["initial_loss"] is None


def test_events_of_its_own_are_told_by_the_link_to_them(host: Host) -> None:
    path = host.training(OLD)
    assert not host.run()[0]["events"]
    (path / "tensorboard").symlink_to("/nonexistent")
    assert host.run()[0]["events"]


def test_the_checksum_of_a_log_that_is_not_too_long(host: Host) -> None:
    text = STEP.format(1)
    path = host.training(OLD, train__log=text)
    assert host.run()[0]["log_checksum"] == host.run(checksum=len(text) - 1)[0]["log_checksum"] == ""
    assert host.run(checksum=len(text))[0]["log_checksum"] == hashlib.sha256(text.encode()).hexdigest()
    (path / "train.log").unlink()
    assert host.run(checksum=10**6)[0]["log_checksum"] == ""


def test_the_checksum_is_of_a_plain_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "", "none"):
        assert run_jobs.checksum(str(tmp_path / name), 100) == ""
    (tmp_path / "large").write_bytes(b"x" * ((1 << 20) + 5))
    assert run_jobs.checksum(str(tmp_path / "large"), (1 << 20) + 4) == ""
    known = hashlib.sha256(b"x" * ((1 << 20) + 5)).hexdigest()
    assert run_jobs.checksum(str(tmp_path / "large"), (1 << 20) + 5) == known
    (tmp_path / "empty").touch()
    assert run_jobs.checksum(str(tmp_path / "empty"), 1) == hashlib.sha256().hexdigest()
    assert run_jobs.checksum(str(tmp_path / "empty"), 0) == ""
