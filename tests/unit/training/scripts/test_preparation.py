"""The preparation of the data: who asks for it may go away, and who asks again waits for it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.training.scripts.job_scripts import Job

# It says that it has begun, and ends when it is told.
WORK = """#!/bin/bash
echo begun > {folder}/begun
read -r word < {folder}/go
echo "$word" >> {folder}/done
echo "the reason"
[ "$word" != fail ]
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    made = Job(tmp_path, {"prepare": {"script": "a.py"}})
    for name in ("begun", "go"):
        os.mkfifo(tmp_path / name)
    program = Path(made.job_bin()) / "python"
    program.write_text(WORK.format(folder=tmp_path))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    started: list[subprocess.Popen[str]] = []
    start = made.start

    def remember(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        started.append(start(*arguments, **environment))
        return started[-1]

    monkeypatch.setattr(made, "start", remember)
    yield made
    for process in started:
        process.kill()
        process.wait()


def say(tmp_path: Path, word: str) -> None:
    (tmp_path / "go").write_text(f"{word}\n")


def test_it_goes_on_without_its_connection_and_the_next_run_waits_for_it(job: Job, tmp_path: Path) -> None:
    first = job.start("job.sh", "prepare")
    assert (tmp_path / "begun").read_text() == "begun\n"
    # The connection has gone: the terminal with it, and whoever read the output.
    first.send_signal(signal.SIGHUP)
    assert first.stdout
    assert first.stderr
    first.stdout.close()
    first.stderr.close()
    second = job.start("job.sh", "prepare")
    say(tmp_path, "first")
    assert first.wait(timeout=300) == 0
    # Only now: it had the data to itself.
    assert (tmp_path / "begun").read_text() == "begun\n"
    assert (tmp_path / "done").read_text() == "first\n"
    say(tmp_path, "second")
    assert second.wait(timeout=300) == 0
    assert (tmp_path / "done").read_text() == "first\nsecond\n"
    second.communicate()


def test_a_failure_is_told_with_the_end_of_its_log(job: Job, tmp_path: Path) -> None:
    work = job.start("job.sh", "prepare")
    assert (tmp_path / "begun").read_text() == "begun\n"
    say(tmp_path, "fail")
    _output, errors = work.communicate(timeout=300)
    assert (work.returncode, errors) == (1, "the reason\n")
