"""Making a virtual environment deletes what is in its place, so a folder that has something else is refused."""

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


def play(tmp_path: Path, role: str, tasks: str, variables: dict[str, Any]) -> str:
    """Run some tasks of a role on this machine; what the playbook printed."""
    book = tmp_path / "play.yml"
    include = {"ansible.builtin.include_role": {"name": f"trainium.cluster.{role}", "tasks_from": tasks}}
    own = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [include]}
    book.write_text(json.dumps([own]), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", str(book)]
    command += ["-e", json.dumps({"ansible_python_interpreter": sys.executable, **variables})]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_INVENTORY": "localhost,"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    return " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which somebody keeps something."""
    made = tmp_path / "work"
    (made / "checkpoints").mkdir(parents=True)
    return made


def test_the_nodes_environment_empties_no_folder(tmp_path: Path, folder: Path) -> None:
    node = {"space": {str(folder): 99999}, "packages": [], "environment": {"owner": "root", "note": "", "python": ""}}
    variables = {"neuron_venv_path": str(folder), "neuron_venv_system_packages": [], "__neuron_venv_node": node}
    output = play(tmp_path, "neuron_venv", "install", {**variables, "__neuron_venv_new": True, "neuron_venv_space": 1})
    assert f"{folder} on localhost has files and is no virtual environment" in output
    assert (folder / "checkpoints").is_dir()


def test_the_controllers_environment_empties_no_folder(tmp_path: Path, folder: Path) -> None:
    variables = {"parallelcluster_venv": str(folder), "parallelcluster_base_python": sys.executable}
    output = play(tmp_path, "parallelcluster", "environment", {**variables, "trainium_cluster_name": "bert"})
    assert f"{folder} has files and is no virtual environment" in output
    assert (folder / "checkpoints").is_dir()
