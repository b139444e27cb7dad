"""What is secret stays out of what Ansible prints, with -vvv and --diff too: by the tasks, and by a play of some."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.contract.warm_python import warm_ansible, warm_python

ROLES = Path(__file__).parents[2] / "roles"
SECRET = "plantedSecret4711" * 8
Item = dict[str, Any]
# File -> its tasks that have secrets. Those of package indexes depend on the addresses (test_index_passwords.py).
ALWAYS = {
    "dataset/tasks/s3.yml": ["List the objects and sign an address for each"],
    "eks_storage/tasks/fetch.yml": ["List the objects and sign an address for each", "Make the objects"],
    "eks_storage/tasks/forget.yml": ["Take addresses and code out of the cluster"],
    "monitoring/tasks/environment.yml": ["Write what pip installs, and from where, for root alone"],
    "neuron_venv/tasks/install.yml": ["Write the addresses of the indexes for the owner alone", "Bind them"],
    "parallelcluster/tasks/environment.yml": ["Write what pip installs, and from where, for this user alone"],
    "slurm/tasks/munge.yml": [
        "Read the munge key of the controller",
        "Use the controller's key, or make one, once for the whole cluster",
        "Write the munge key",
    ],
    "training_job/tasks/check.yml": ["Complete the definition"],
    "training_job/tasks/kubernetes.yml": ["Make the objects"],
    "training_job/tasks/stage.yml": ["Write the job's environment for its user alone"],
}
# Whatever has one of these is secret, wherever it is used.
NAMES = ("{{ __slurm_munge_key }}", "{{ __slurm_munge_key_text", "__training_job.env | to_json")


def tasks(found: Any) -> Iterator[Item]:
    """All tasks of a file, those in blocks too."""
    for task in found or ():
        yield task
        for key in ("block", "rescue", "always"):
            yield from tasks(task.get(key))


def tasks_of(name: str) -> list[Item]:
    return list(tasks(yaml.safe_load((ROLES / name).read_text(encoding="utf-8"))))


def test_tasks_with_secrets_are_not_logged() -> None:
    hidden: dict[str, list[str]] = {}
    for path in sorted(ROLES.glob("*/tasks/*.yml")):
        name = str(path.relative_to(ROLES))
        for task in tasks_of(name):
            if task.get("no_log") is True:
                hidden.setdefault(name, []).append(task["name"])
            elif "block" not in task:
                assert not any(one in str(task) for one in NAMES), f"{task['name']} in {name} shows a secret"
    assert hidden == ALWAYS


def taken(name: str, task: str) -> Item:
    """A task as it is, without the conditions under which its role has it."""
    (found,) = [one for one in tasks_of(name) if one["name"] == task]
    return {key: value for key, value in found.items() if key != "when"}


def test_what_ansible_prints_has_no_secret(tmp_path: Path) -> None:
    munge, check, stage = "slurm/tasks/munge.yml", "training_job/tasks/check.yml", "training_job/tasks/stage.yml"
    variables = {
        "__slurm_munge_key_found": {"stdout": base64.b64encode(SECRET.encode()).decode()},
        "__slurm_munge_key_format": "^plantedSecret",
        "__training_job_resolved": {"env": {"HF_TOKEN": SECRET}, "refused": ""},
        "__training_job_folder": str(tmp_path),
    }
    written = taken(munge, "Write the munge key")["trainium.cluster.internal.text_files"]
    own = {"contents": {str(tmp_path / "munge.key"): written["contents"]["/etc/munge/munge.key"]}, "mode": "0400"}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": variables,
        "tasks": [
            taken(munge, "Use the controller's key, or make one, once for the whole cluster"),
            {**taken(munge, "Write the munge key"), "trainium.cluster.internal.text_files": own},
            taken(check, "Complete the definition"),
            taken(stage, "Write the job's environment for its user alone"),
        ],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", str(tmp_path / "play.yml")]
    command += ["-e", f"ansible_connection=local ansible_python_interpreter={warm_python()}", "-vvv", "--diff"]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "munge.key").read_text(encoding="utf-8") == SECRET
    assert json.loads((tmp_path / "environment.json").read_text(encoding="utf-8")) == {"HF_TOKEN": SECRET}
    said = done.stdout + done.stderr
    assert "censored" in said
    assert SECRET not in said and base64.b64encode(SECRET.encode()).decode() not in said
