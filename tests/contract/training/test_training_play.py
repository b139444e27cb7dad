"""playbooks/training.yml as a user runs it, on hosts that are this machine and by programs that play Slurm."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.warm_python import warm_ansible, warm_python

REPOSITORY = Path(__file__).resolve().parents[3]
# The queue is a file with a line "id|state|comment" for each job; one that is submitted has ended, and left its log.
TOOLS = {
    "sinfo": "echo 'compute*|node-1|idle|0|(null)|none'; echo 'compute*|node-2|idle|0|(null)|none'\n",
    "squeue": 'case "$*" in *%o*) ;; *) cat {folder}/queue ;; esac\n',
    "scontrol": """\
while IFS='|' read -r id state comment; do
  if [ "$5" = "$id" ] || [ "$4" = "$id" ]; then
    echo "JobId=$id JobName=own JobState=$state Reason=None ExitCode=0:0 NodeList=node-[1-2] BatchHost=node-1" \\
      "StartTime=100 EndTime=200 Restarts=0 Comment=$comment"
    exit 0
  fi
done < {folder}/queue
echo 'slurm_load_jobs error: Invalid job id specified' >&2
exit 1
""",
    "sbatch": """\
for last; do case $last in --comment=*) comment=${{last#--comment=}} ;; esac; done
id=$(($(wc -l < {folder}/queue) + 1))
echo "$id|COMPLETED|$comment" >> {folder}/queue
case $last in *train.batch) cat {folder}/log > "$(dirname "$last")/train.log" ;; esac
echo "$id"
""",
    "sacct": "echo 'Slurm accounting storage is disabled' >&2; exit 1\n",
}
LOG = "JOB nodes=2 processes=4\n" + "".join(
    f"LOG Wed Dec 21 00:00:{step:02} 2022 - (0, {step}) step_loss : {9 - step / 10:.2f} learning_rate : 2.80e-06 "
    f"throughput : {100 + step}.00\n"
    for step in range(1, 21)
)
DEFINITION = {"preset": "none", "name": "own", "script": "own.py", "files": ["own.py"], "steps": 20}


class Cluster:
    """Two hosts of one file system, with Slurm on the first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs, self.reports, self.slurm = folder / "trainium", folder / "reports", folder / "slurm"
        self.slurm.mkdir()
        for name, text in TOOLS.items():
            (self.slurm / name).write_text("#!/bin/sh\n" + text.format(folder=folder), encoding="utf-8")
            (self.slurm / name).chmod(0o755)
        (folder / "queue").write_text("", encoding="utf-8")
        (folder / "log").write_text(LOG, encoding="utf-8")
        (folder / "own.py").write_text("print(1)\n", encoding="utf-8")
        hosts = {"node-1": {"private_address": "192.0.2.1"}, "node-2": {"private_address": "192.0.2.2"}}
        children = {
            "head": {"hosts": {"node-1": {}}},
            **{one: {"hosts": hosts} for one in ("compute", "cluster_trainium")},
        }
        (folder / "hosts.json").write_text(json.dumps({"all": {"children": children}}), encoding="utf-8")

    @property
    def job(self) -> Path:
        (found,) = (self.jobs / "jobs").iterdir()
        return found

    def play(self, *arguments: str, playbook: str = "training", **variables: Any) -> subprocess.CompletedProcess[str]:
        known = {
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": warm_python(),
            "ansible_playbook_python": warm_python(),
            "training_job_directory": str(self.jobs),
            "training_job_user": "root",
            "training_job_slurm_path": str(self.slurm),
            "training_job_venv_path": sys.prefix,
            "trainium_report_dir": str(self.reports),
            "trainium_region": "us-west-2",
            "trainium_training": {**DEFINITION, "files": [str(self.folder / "own.py")]},
            **variables,
        }
        command = [str(warm_ansible() / "ansible-playbook"), "-i", str(self.folder / "hosts.json")]
        command += [str(REPOSITORY / "playbooks" / f"{playbook}.yml"), "-e", json.dumps(known), *arguments]
        nobody = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "none")
        environment = {
            **os.environ,
            **nobody,
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "tmp"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_STDOUT_CALLBACK": "default",
            "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "0",
        }
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=self.folder, check=False, timeout=600
        )

    def queue(self) -> list[str]:
        return (self.folder / "queue").read_text(encoding="utf-8").splitlines()


def changed(done: subprocess.CompletedProcess[str]) -> int:
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return sum(map(int, re.findall(r"changed=(\d+)", done.stdout)))


def tasks(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The tasks that some host has run, without those that were skipped by all."""
    return re.findall(r"^TASK \[(?:[\w.]+ : )?([^\]]+)\]", done.stdout, re.MULTILINE)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


STAGING = "Put the job's files into its folder, or see that they are there"


def test_a_training_that_has_ended_is_known_before_anything_is_staged(cluster: Cluster) -> None:
    assert changed(cluster.play()) > 0
    assert len(cluster.queue()) == 1
    assert (cluster.reports / "own.log").read_text() == LOG
    report = json.loads((cluster.reports / "report.json").read_text())
    assert (report["steps"], report["final_loss"], report["state"]) == (20, 7.0, "COMPLETED")
    again = cluster.play()
    assert changed(again) == 0
    assert "own: loss 8.9 -> 7.0 in 20 steps" in again.stdout
    assert len(cluster.queue()) == 1
    # One look at the nodes, one at the training, and what shows it.
    ours = tasks(again)
    ours = ours[ours.index("Refuse settings of the training that cannot work") + 1 :]
    assert len(ours) <= 15, ours
    assert STAGING in ours and "Fetch the log" not in ours


# What somebody does to a file of the training, and how it is seen whether that was mended.
def _gone(cluster: Cluster) -> Callable[[], bool]:
    (cluster.job / "own.py").unlink()
    return (cluster.job / "own.py").is_file


def _edited(cluster: Cluster) -> Callable[[], bool]:
    before = (cluster.job / "job.sh").read_text()
    (cluster.job / "job.sh").write_text("true\n")
    return lambda: (cluster.job / "job.sh").read_text() == before


def _closed(cluster: Cluster) -> Callable[[], bool]:
    (cluster.job / "train.batch").chmod(0o600)
    (cluster.jobs / "data").chmod(0o700)
    return lambda: (
        (cluster.job / "train.batch").stat().st_mode & 0o777 == (cluster.jobs / "data").stat().st_mode & 0o777 == 0o755
    )


def _open(cluster: Cluster) -> Callable[[], bool]:
    (cluster.job / "environment.json").chmod(0o644)
    return lambda: (cluster.job / "environment.json").stat().st_mode & 0o777 == 0o600


def _linked(cluster: Cluster) -> Callable[[], bool]:
    own = cluster.job / "restart.sh"
    own.rename(cluster.folder / "elsewhere.sh")
    own.symlink_to(cluster.folder / "elsewhere.sh")
    return lambda: own.is_file() and not own.is_symlink()


def _fetched(cluster: Cluster) -> Callable[[], bool]:
    (cluster.reports / "own.log").write_text(LOG.replace("8.90", "0.00"))
    return lambda: (cluster.reports / "own.log").read_text() == LOG


def _written(cluster: Cluster) -> Callable[[], bool]:
    before = (cluster.reports / "report.json").read_bytes()
    (cluster.reports / "report.json").write_bytes(b"\xff{}")
    (cluster.reports / "report.html").unlink()
    return lambda: (
        (cluster.reports / "report.json").read_bytes() == before and (cluster.reports / "report.html").is_file()
    )


def _unreported(cluster: Cluster) -> Callable[[], bool]:
    before = (cluster.job / "report.json").read_text()
    (cluster.job / "report.json").write_text("{")
    return lambda: (cluster.job / "report.json").read_text() == before


def test_what_was_changed_by_hand_is_mended(cluster: Cluster) -> None:
    cluster.play()
    changes = (_gone, _edited, _closed, _open, _linked, _fetched, _written, _unreported)
    mended = {change.__name__: change(cluster) for change in changes}
    assert changed(cluster.play("--check")) > 0
    assert [name for name, is_mended in mended.items() if is_mended()] == []
    assert changed(cluster.play()) > 0
    assert [name for name, is_mended in mended.items() if not is_mended()] == []
    assert len(cluster.queue()) == 1
    assert changed(cluster.play()) == 0


def test_another_definition_and_a_lost_folder_train_again(cluster: Cluster) -> None:
    cluster.play()
    (cluster.folder / "own.py").write_text("print(2)\n", encoding="utf-8")
    assert changed(cluster.play()) > 0
    assert len(cluster.queue()) == 2
    for path in (cluster.jobs / "jobs").iterdir():
        subprocess.run(["rm", "-rf", str(path)], check=True)
    (cluster.folder / "queue").write_text("", encoding="utf-8")
    assert changed(cluster.play()) > 0
    assert len(cluster.queue()) == 1


def test_a_file_of_the_environment_is_written_for_the_user_alone_and_once(cluster: Cluster) -> None:
    definition = {**DEFINITION, "files": [str(cluster.folder / "own.py")], "env": {"TOKEN": "planted-4711"}}
    first = cluster.play("--diff", "-vvv", trainium_training=definition)
    assert changed(first) > 0
    path = cluster.job / "environment.json"
    assert (json.loads(path.read_text()), path.stat().st_mode & 0o777) == ({"TOKEN": "planted-4711"}, 0o600)
    again = cluster.play("--diff", "-vvv", trainium_training=definition)
    assert changed(again) == 0
    # Extra variables of the command line are told by nobody but the test.
    assert "planted-4711" not in first.stdout + again.stdout
