"""What a node says of its trainings becomes paths on the controller: one that lies writes nothing outside of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.warm_python import warm_ansible

ROOT = Path(__file__).parents[2]
FOLDER = "bert-0123456789ab"
# In the place of the node's Python, which Ansible gives its modules on standard input: it answers for some by itself.
LIAR = """#!{python}
import os, sys
code = sys.stdin.buffer.read()
for name, answer in {answers!r}.items():
    if name.encode() in code:
        print(answer)
        sys.exit(0)
again, given = os.pipe()
if os.fork() == 0:
    os.close(again)
    with os.fdopen(given, "wb") as file:
        file.write(code)
    os._exit(0)
os.close(given)
os.dup2(again, 0)
os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""
TRAINING: dict[str, Any] = {
    "name": "bert",
    "folder": FOLDER,
    "job_id": 7,
    "running": False,
    "state": "COMPLETED",
    "batch_host": "node",
    "log_here": True,
    "events": True,
    "report": {"name": "bert", "log_host": "node"},
    "line": "bert",
}


def play(folder: Path, training: dict[str, Any], event: str) -> subprocess.CompletedProcess[str]:
    """playbooks/report.yml with a node that says these things."""
    node = folder / "node" / "jobs" / FOLDER
    (node / "tensorboard").mkdir(parents=True)
    (node / "train.log").write_text("JOB nodes=1 processes=1\n", encoding="utf-8")
    planted = folder / "planted"
    planted.write_text("planted", encoding="utf-8")
    said = {**TRAINING, "path": str(node), "log": str(node / "train.log"), **training}
    files = [{"path": f"{node}/tensorboard/{event}"}] if event else []
    answers = {
        "training_job_info": json.dumps({"changed": False, "trainings": [said]}),
        "ansible.modules.find": json.dumps({"changed": False, "files": files, "matched": len(files), "examined": 1}),
    }
    liar = folder / "python"
    liar.write_text(LIAR.format(python=sys.executable, answers=answers), encoding="utf-8")
    liar.chmod(0o755)
    inventory = folder / "hosts.ini"
    inventory.write_text(
        f"[head]\nnode ansible_connection=local ansible_python_interpreter={liar}\n[compute]\nnode\n"
        "[others]\nbystander ansible_connection=local\n",
        encoding="utf-8",
    )
    known = {"training_job_directory": str(folder / "node"), "trainium_report_dir": str(folder / "reports")}
    command = [str(warm_ansible() / "ansible-playbook"), "-i", str(inventory)]
    command += [str(ROOT / "playbooks" / "report.yml"), "-e", json.dumps(known)]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"), "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False, timeout=600)


def written(folder: Path) -> set[str]:
    """What there is outside of the reports, and beside what the test has made."""
    return {path.name for path in folder.iterdir()} - {"node", "planted", "python", "hosts.ini", "tmp", "reports"}


@pytest.mark.parametrize(
    ("training", "event", "sentence"),
    [
        ({"name": "../above"}, "", "a training 'bert-0123456789ab' with the name '../above'"),
        ({"report": {"log_host": "bystander"}}, "", "a log on 'bystander'"),
        ({}, "../../../../planted", "an event file '../../../../planted'"),
    ],
)
def test_a_node_that_lies_is_refused(tmp_path: Path, training: dict[str, Any], event: str, sentence: str) -> None:
    done = play(tmp_path, training, event)
    assert done.returncode != 0
    assert sentence in done.stdout, done.stdout + done.stderr
    assert written(tmp_path) == set()
