"""The environment of a training job may hold tokens: only the job's user can read them, and nothing shows them."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.warm_python import warm_ansible

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "roles" / "training_job"
SECRET = "planted-secret-4711"


def play(folder: Path, tasks_from: list[str], definition: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """The role's tasks on this machine, with everything that Ansible can print."""
    steps = [
        {
            "name": name,
            "ansible.builtin.include_role": {"name": "trainium.cluster.training_job", "tasks_from": name},
        }
        for name in tasks_from
    ]
    variables = {
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
        "trainium_ssh_user": getpass.getuser(),
        "trainium_shared_dir": "",
        "trainium_report_dir": str(folder / "reports"),
        "training_job_directory": str(folder / "jobs"),
        "training_job_venv_path": str(folder / "venv"),
        "training_job_slurm_path": str(folder / "no-slurm"),
        "training_job_nodes": ["localhost"],
        "training_job_head": "localhost",
        "training_job_definition": definition,
        "private_address": "127.0.0.1",
    }
    document = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": steps}]
    extra = folder / "variables.json"
    extra.write_text(json.dumps(variables), encoding="utf-8")
    playbook = folder / "play.yml"
    playbook.write_text(json.dumps(document), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", "-vvv", "--diff"]
    command += ["-e", f"@{extra}", str(playbook)]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)


@contextmanager
def shown_by_ps() -> Iterator[list[set[str]]]:
    """The command lines of all processes, looked at again and again until the end."""
    looks: list[set[str]] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            lines = set()
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                # It may have ended since.
                with contextlib.suppress(OSError):
                    lines.add(file.read_bytes().decode(errors="replace"))
            looks.append(lines)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield looks
    finally:
        ended.set()
        looking.join()


def test_the_environment_is_for_the_jobs_user_alone(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text("pass\n", encoding="utf-8")
    definition = {"preset": "none", "files": [str(script)], "script": "a.py", "env": {"TOKEN": SECRET}}
    with shown_by_ps() as looks:
        done = play(tmp_path, ["check", "stage"], definition)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert SECRET not in done.stdout + done.stderr
    assert len(looks) > 10
    assert [line for look in looks for line in look if SECRET in line] == []
    holders = [path for path in (tmp_path / "jobs").rglob("*") if path.is_file() and SECRET in path.read_text()]
    assert [path.name for path in holders] == ["environment.json"]
    assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600
    assert json.loads(holders[0].read_text()) == {"TOKEN": SECRET}


def tasks(value: Any) -> list[dict[str, Any]]:
    """All tasks of a file, those in blocks too."""
    found: list[dict[str, Any]] = []
    for task in value:
        found.append(task)
        for key in ("block", "rescue", "always"):
            found += tasks(task.get(key, []))
    return found


@pytest.mark.parametrize("name", [path.name for path in sorted((ROLE / "tasks").glob("*.yml"))])
def test_no_task_shows_the_environment(name: str) -> None:
    """The keyword environment is written before the command that Ansible runs on the node, where ps shows it."""
    for task in tasks(yaml.safe_load((ROLE / "tasks" / name).read_text(encoding="utf-8"))):
        own = {key: value for key, value in task.items() if key not in ("block", "rescue", "always")}
        if "__training_job.env" in str(own):
            assert "environment" not in own, task["name"]
            # Nothing is lost where there are no values.
            assert own.get("no_log") in (True, "{{ __training_job.env | length > 0 }}"), task["name"]
            assert own.get("diff") is False, task["name"]
