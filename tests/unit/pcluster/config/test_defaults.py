"""What the roles take from the variables of a ParallelCluster where nobody said it: one play for all cases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_driver import REPOSITORY

Item = dict[str, Any]
CASES: dict[str, tuple[Item, Item]] = {
    "a default cluster": ({}, {"user": "ubuntu", "neuron": True, "trains": True, "reservation": ""}),
    "another system": ({"parallelcluster_configuration": {"os": "alinux2023"}}, {"user": "ec2-user"}),
    "a user that was named": (
        {"parallelcluster_configuration": {"os": "rocky9"}, "trainium_ssh_user": "ann"},
        {"user": "ann"},
    ),
    "GPUs": ({"parallelcluster_preset": "gpu"}, {"neuron": False, "trains": False}),
    "GPUs by their type": ({"trainium_instance_type": "p5.48xlarge"}, {"neuron": False, "trains": False}),
    "GPUs with a training": (
        {"parallelcluster_preset": "gpu", "trainium_training": {"script": "a.py"}},
        {"neuron": False, "trains": True},
    ),
    "a reservation for all": (
        {"trainium_capacity_reservation": {"id": "cr-1"}},
        {"reservation": "cr-1"},
    ),
    "a reservation of the role": (
        {"parallelcluster_capacity_reservation": {"id": "cr-2"}, "trainium_capacity_reservation": {"id": "cr-1"}},
        {"reservation": "cr-2"},
    ),
    "a reservation of a queue": (
        {
            "trainium_capacity_reservation": {"id": "cr-1"},
            "parallelcluster_configuration": {"queues": [{"name": "compute1", "capacity_reservation": {"id": "cr-3"}}]},
        },
        {"reservation": "cr-3"},
    ),
    "a reservation of the queue that the training names": (
        {
            "parallelcluster_preset": "multi_queue",
            "training_job_partition": "debug-z2,debug",
            "parallelcluster_configuration": {"queues": [{"name": "debug", "capacity_reservation": {"id": "cr-4"}}]},
        },
        {"reservation": "cr-4"},
    ),
    "the other backend": (
        {
            "trainium_backend": "ec2",
            "parallelcluster_preset": "gpu",
            "trainium_capacity_reservation": {"id": "cr-5"},
            "parallelcluster_configuration": {"os": "rocky9"},
        },
        {"user": "ubuntu", "neuron": True, "trains": True, "reservation": "cr-5"},
    ),
}
PYTHON = f"ansible_python_interpreter={sys.executable}"
SEEN = {
    "user": "{{ trainium_ssh_user }}",
    "neuron": "{{ __trainium_neuron | bool }}",
    "trains": "{{ __trainium_trains | bool }}",
    "reservation": "{{ __trainium_reservation }}",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Item]:
    folder = tmp_path_factory.mktemp("defaults")
    tasks = [
        {
            "name": name,
            "ansible.builtin.set_fact": {"all_seen": "{{ all_seen | default({}) | combine({case: found}) }}"},
            "vars": {"case": name, "found": SEEN, "trainium_backend": "pcluster", **variables},
        }
        for name, (variables, _expected) in CASES.items()
    ]
    result = {"content": "{{ all_seen | to_json }}", "dest": str(folder / "seen.json"), "mode": "0600"}
    play = {
        "name": "Test",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "tasks": [
            # Its defaults and variables alone.
            {
                "name": "Role",
                "ansible.builtin.import_role": {
                    "name": "trainium.cluster.trainium",
                    "rolespec_validate": False,
                },
                "when": False,
            },
            *tasks,
            {"name": "Result", "ansible.builtin.copy": result},
        ],
    }
    (folder / "play.yml").write_text(json.dumps([play]))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "ANSIBLE_", "TRAINIUM_"))}
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible-playbook")),
            "--inventory",
            "localhost,",
            "--extra-vars",
            PYTHON,
            "play.yml",
        ],
        cwd=folder,
        env={**clean, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Item] = json.loads((folder / "seen.json").read_text())
    return found


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_nobody_said_follows_from_the_cluster(seen: dict[str, Item], name: str) -> None:
    expected = CASES[name][1]
    assert {key: seen[name][key] for key in expected} == expected
