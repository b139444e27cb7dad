"""playbooks/report.yml and playbooks/status.yml as a user runs them, with this machine as head node without Slurm."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.warm_python import warm_ansible, warm_python

REPOSITORY = Path(__file__).resolve().parents[3]
DOCUMENT = REPOSITORY / "docs" / "reports.md"
FOLDER = "bert-0123456789ab"


def lines(first: int, last: int) -> str:
    return "".join(
        f"LOG Wed Dec 21 00:{step // 60:02}:{step % 60:02} 2022 - (0, {step}) step_loss : {9 - step / 100:.2f} "
        f"learning_rate : 2.80e-06 throughput : {100 + step % 5}.00\n"
        for step in range(first, last + 1)
    )


RESUMED = (
    "JOB nodes=2 processes=4\n"
    + lines(1, 60)
    + "JOB nodes=1 processes=2\ntraining: resumed from step 40\n"
    + lines(41, 100)
)
REPORT = {
    "name": "bert",
    "job_id": 7,
    "nodes": 2,
    "processes": 4,
    "hosts": "n[1-2]",
    "steps": 100,
    "initial_loss": 8.99,
    "final_loss": 8.0,
    "throughput": 102.0,
    "log_host": "node",
    # The last start, which the log has 40 seconds after the first: with it an hour.
    "started_at": 1671580040,
    "ended_at": 1671583600,
    "node_details": [{"name": "n1", "address": "192.0.2.1", "instance_type": "trn1.32xlarge"}],
    "versions": {"torch": "2.9.0"},
}


@pytest.fixture
def head(tmp_path: Path) -> Path:
    """A head node's folder for trainings, with one that has been made and has no log yet."""
    (tmp_path / "head" / "jobs" / FOLDER).mkdir(parents=True)
    return tmp_path / "head"


def play(head: Path, name: str, *arguments: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    inventory = head.parent / "hosts.ini"
    inventory.write_text(
        f"[head]\nnode ansible_connection=local ansible_python_interpreter={warm_python()}\n[compute]\nnode\n",
        encoding="utf-8",
    )
    known = {"training_job_directory": str(head), "trainium_report_dir": str(head.parent / "reports"), **variables}
    command = [str(warm_ansible() / "ansible-playbook"), "-i", str(inventory)]
    command += [str(REPOSITORY / "playbooks" / f"{name}.yml"), "-e", json.dumps(known), *arguments]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(head.parent / "tmp"), "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, check=False, timeout=600
    )


def test_a_training_that_has_ended_is_reported_once(head: Path) -> None:
    (head / "jobs" / FOLDER / "train.log").write_text(RESUMED, encoding="utf-8")
    (head / "jobs" / FOLDER / "report.json").write_text(json.dumps(REPORT), encoding="utf-8")
    events = head / "output" / "runs" / "a" / "events.out.tfevents.1671580040.n1.7.0"
    events.parent.mkdir(parents=True)
    events.write_bytes(b"of the script")
    (events.parent / "other").write_bytes(b"")
    (head / "jobs" / FOLDER / "tensorboard").symlink_to(head / "output")
    prices = {"trn1.32xlarge": 21.5}
    done = play(head, "report", trainium_price_per_hour=prices)
    assert done.returncode == 0, done.stdout
    reports = head.parent / "reports"
    found = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    assert found == {**REPORT, "log": str(reports / "bert.log")}
    metrics = json.loads((reports / "metrics.json").read_text(encoding="utf-8"))
    assert [step["step"] for step in metrics["steps"]] == list(range(1, 101))
    assert (metrics["summary"]["restarts"], metrics["summary"]["steps_redone"]) == (1, 20)
    assert metrics["cost"]["usd"] == 21.5
    assert "<h1>bert</h1>" in (reports / "report.html").read_text(encoding="utf-8")
    own, fetched = sorted(path for path in (reports / "tensorboard" / "bert").rglob("*") if path.is_file())
    assert own.name.endswith(".trainium")
    assert fetched == reports / "tensorboard" / "bert" / "script" / "runs" / "a" / events.name
    assert fetched.read_bytes() == b"of the script"
    again = play(head, "report", trainium_price_per_hour=prices)
    assert "changed=0 " in again.stdout, again.stdout

    # What docs/reports.md shows, in the folder of the reports.
    (example,) = re.findall(r"```yaml\n(- name: When.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    below = metrics["steps"][40]["loss"]
    assert "`7.0`" in example
    (head.parent / "example.yml").write_text(example.replace("`7.0`", f"`{below}`"), encoding="utf-8")
    ansible = str(warm_ansible() / "ansible-playbook")
    environment = {**os.environ, "PWD": str(head.parent), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_STDOUT_CALLBACK": "minimal"}
    run = [ansible, "example.yml"]
    said = subprocess.run(run, capture_output=True, text=True, env=environment, cwd=head.parent, check=False)
    first = next(step["step"] for step in metrics["steps"] if step["loss"] < below)
    assert re.search(rf"\b{first}\b", said.stdout), said.stdout + said.stderr


def test_what_is_too_long_is_cut_and_said_so(head: Path) -> None:
    """Whoever writes a log does not fill the controller's disk; and its owner chose who may read the folder."""
    log, reports = head / "jobs" / FOLDER / "train.log", head.parent / "reports"
    log.write_text(RESUMED, encoding="utf-8")
    for number, size in enumerate((3000, 900, 1000)):
        event = head / "output" / f"events.out.tfevents.{number}"
        event.parent.mkdir(exist_ok=True)
        event.write_bytes(b"x" * size)
        os.utime(event, (number, number))
    (head / "jobs" / FOLDER / "tensorboard").symlink_to(head / "output")
    reports.mkdir(mode=0o700)
    done = play(head, "report", training_job_fetch_bytes=4000)
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert f"{log} on node has {len(RESUMED)} bytes" in said and "training_job_fetch_bytes" in said
    assert "1 of 3 event files" in said
    kept = (reports / "bert.log").read_text(encoding="utf-8")
    begin, end = kept.split(
        f"\nJOB note: {len(RESUMED) - 4000} bytes of this log are left out here, all of it is in {log} on "
    )
    assert RESUMED.startswith(begin) and len(begin) == 2000
    assert RESUMED.endswith(end.partition("\n")[2]) and len(end.partition("\n")[2]) == 2000
    steps = json.loads((reports / "metrics.json").read_text(encoding="utf-8"))["steps"]
    assert (steps[0]["step"], steps[-1]["step"]) == (1, 100)
    assert sorted(path.name[-1] for path in (reports / "tensorboard" / "bert" / "script").iterdir()) == ["1", "2"]
    assert reports.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("what", ["fifo", "device", "link"])
def test_what_is_read_of_a_log_is_never_more_than_was_asked_for(tmp_path: Path, what: str) -> None:
    """Whatever the job's user has laid in its place, which is opened once."""
    log, long = tmp_path / "train.log", tmp_path / "long"
    long.write_text("x" * 9999, encoding="utf-8")
    if what == "fifo":
        os.mkfifo(log)
    else:
        log.symlink_to("/dev/zero" if what == "device" else long)
    script = (REPOSITORY / "roles" / "training_job" / "files" / "bounded.sh").read_text(encoding="utf-8")
    command = ["sh", "-s", str(log), "1000"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.count("x") == (1000 if what == "link" else 0)


def test_a_training_that_runs_is_reported_as_far_as_it_is(head: Path) -> None:
    log = head / "jobs" / FOLDER / "train.log"
    log.write_text("JOB nodes=2 processes=4\n" + lines(1, 30)[:-5], encoding="utf-8")
    done = play(head, "report", training_job_name="bert")
    assert done.returncode == 0, done.stdout
    found = json.loads((head.parent / "reports" / "report.json").read_text(encoding="utf-8"))
    assert (found["steps"], found["nodes"], found["processes"]) == (29, 2, 4)
    assert "Running: figures so far" in (head.parent / "reports" / "report.html").read_text(encoding="utf-8")
    shown = play(head, "status", "--start-at-task=Ask the head node")
    assert "bert: without Slurm: step 30" in shown.stdout, shown.stdout


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("other", "has no training named other; run playbooks/training.yml first."),
        ("bert", "bert has not started and has no log yet; try again when playbooks/status.yml shows it as running."),
    ],
)
def test_where_there_is_nothing_to_report_it_says_so(head: Path, name: str, sentence: str) -> None:
    done = play(head, "report", training_job_name=name)
    assert done.returncode == 2
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (head.parent / "reports").exists()


def test_check_mode_changes_nothing(head: Path) -> None:
    (head / "jobs" / FOLDER / "train.log").write_text(RESUMED, encoding="utf-8")
    (head / "jobs" / FOLDER / "report.json").write_text(json.dumps(REPORT), encoding="utf-8")
    done = play(head, "report", "--check", "--diff")
    assert done.returncode == 0, done.stdout
    assert not (head.parent / "reports").exists()
