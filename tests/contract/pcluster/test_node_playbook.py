"""The playbook that runs on the nodes: which roles, with what, on which kind of node. The roles only say what they get.

All nodes in one run, because starting Ansible costs more than what it does here.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.warm_python import warm_ansible, warm_python
from tests.sandbox_driver import REPOSITORY

Item = dict[str, Any]
SAY = "{{ efa_version | default('own') }} {{ efa_interfaces | default('own') }}"
CHECKED = "acceptance on_node"
OWN = ["efa own 8", "neuron", "neuron_venv verify", CHECKED]
# Node -> its variables, the EFA software of its image, and what runs there.
NODES: dict[str, tuple[Item, str, list[str]]] = {
    "head": ({"parallelcluster_node_type": "HeadNode"}, "", ["neuron_venv main", "acceptance on_head"]),
    "head of a GPU cluster": (
        {"parallelcluster_node_type": "HeadNode", "parallelcluster_neuron": False},
        "",
        ["acceptance on_head"],
    ),
    "head without a place for prologs": (
        {"parallelcluster_node_type": "HeadNode", "parallelcluster_neuron": False, "parallelcluster_version": "3.5.1"},
        "",
        [],
    ),
    "unchecked": ({"instance_type": "trn1.32xlarge", "parallelcluster_acceptance": False}, "", OWN[:3]),
    "trn1 without EFA software": ({"instance_type": "trn1.32xlarge"}, "", OWN),
    "trn1 with old EFA software": ({"instance_type": "trn1.32xlarge"}, "1.38.1", OWN),
    # That of ParallelCluster 3.16.1.
    "trn1 with newer EFA software": ({"instance_type": "trn1.32xlarge"}, "1.49.0", ["efa 1.49.0 8", *OWN[1:]]),
    "trn1 with a version that was asked for": (
        {"instance_type": "trn1.32xlarge", "efa_version": "1.51.0"},
        "1.49.0",
        ["efa 1.51.0 8", *OWN[1:]],
    ),
    "trn1 in a queue without EFA": (
        {"instance_type": "trn1.32xlarge", "parallelcluster_efa": "NONE"},
        "1.49.0",
        ["efa 1.49.0 0", *OWN[1:]],
    ),
    "trn1 in a queue with EFA": (
        {"instance_type": "trn1.32xlarge", "parallelcluster_efa": "efa"},
        "1.49.0",
        ["efa 1.49.0 8", *OWN[1:]],
    ),
    "trn1 with exporters": (
        {"instance_type": "trn1.32xlarge", "parallelcluster_exporters": True},
        "",
        [*OWN[:3], "monitoring head ['localhost']", CHECKED],
    ),
    "trn1 for containers": (
        {"instance_type": "trn1.32xlarge", "parallelcluster_containers": True},
        "",
        ["parallelcluster containers", *OWN],
    ),
    "trn2.3xlarge": ({"instance_type": "trn2.3xlarge"}, "1.49.0", ["efa 1.49.0 1", *OWN[1:]]),
    "inf2": ({"instance_type": "inf2.8xlarge"}, "1.49.0", ["efa 1.49.0 0", *OWN[1:]]),
    "a type that is newer than this collection": (
        {"instance_type": "trn9.48xlarge", "parallelcluster_efa": "efa"},
        "1.49.0",
        ["efa 1.49.0 0", *OWN[1:]],
    ),
    "GPUs": (
        {"instance_type": "p4d.24xlarge", "parallelcluster_neuron": False},
        "1.49.0",
        ["efa 1.49.0 4", CHECKED],
    ),
    "GPUs in a cluster with Neuron devices": (
        {"instance_type": "p4d.24xlarge", "parallelcluster_neuron": True},
        "1.49.0",
        ["efa 1.49.0 4", "neuron_venv verify", CHECKED],
    ),
    "no answer about the type": ({"instance_type": ""}, "1.49.0", ["efa 1.49.0 0", *OWN[1:]]),
    "image": (
        {"instance_type": "trn1.32xlarge", "parallelcluster_node_type": "Image"},
        "1.49.0",
        OWN[:2],
    ),
}


def collection(folder: Path) -> Path:
    """The collection with its filters, and with roles and a module that only say what they get."""
    root = folder / "ansible_collections" / "trainium" / "cluster"
    (root / "plugins" / "modules" / "internal").mkdir(parents=True)
    for name in ("filter", "module_utils", "plugin_utils"):
        (root / "plugins" / name).symlink_to(REPOSITORY / "plugins" / name)
    (root / "plugins" / "modules" / "internal" / "node_look.py").write_text(
        "from pathlib import Path\n"
        "from ansible.module_utils.basic import AnsibleModule\n"
        f"image = {{'efa': {{'installer': Path({str(folder / 'installer')!r}).read_text()}}}}\n"
        "AnsibleModule({'software': {'type': 'dict'}}).exit_json(found={'image': image})\n"
    )
    own = {"efa": ["main"], "neuron": ["main"], "neuron_venv": ["main", "verify"], "acceptance": ["on_head", "on_node"]}
    own.update(monitoring=["main"], parallelcluster=["containers"])
    for role, tasks in [(role, tasks) for role, names in own.items() for tasks in names]:
        path = root / "roles" / role / "tasks" / f"{tasks}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        monitoring = " {{ monitoring_host }} {{ monitoring_neuron_nodes }}"
        said = {"efa": f" {SAY}", "neuron": "", "monitoring": monitoring}.get(role, f" {tasks}")
        line = f"{{{{ node_name }}}}: {role}{said}"
        task = {
            "name": "Say",
            "ansible.builtin.lineinfile": {"path": str(folder / "said"), "line": line, "create": True},
        }
        path.write_text(json.dumps([task]))
    return folder


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the roles said, one line each: the node, the role, what it was given."""
    folder = collection(tmp_path_factory.mktemp("node"))
    plays: list[Item] = []
    for name, (variables, installer, _roles) in NODES.items():
        image = {"ansible.builtin.copy": {"content": installer, "dest": str(folder / "installer"), "mode": "0600"}}
        on_host = {"hosts": "localhost", "connection": "local", "gather_facts": False}
        plays.append({"name": "Image", **on_host, "tasks": [{"name": "Boot it", **image}]})
        common = {"node_name": name, "parallelcluster_node_type": "ComputeFleet", "parallelcluster_version": "3.16.1"}
        path = str(REPOSITORY / "playbooks" / "node.yml")
        plays.append({"name": name, "ansible.builtin.import_playbook": path, "vars": {**common, **variables}})
    (folder / "plays.yml").write_text(json.dumps(plays))
    extra = {"ansible_become": False, "ansible_python_interpreter": warm_python()}
    command = [str(warm_ansible() / "ansible-playbook"), "--inventory", "localhost,"]
    done = subprocess.run(
        [*command, "--extra-vars", json.dumps(extra), str(folder / "plays.yml")],
        cwd=folder,
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
            "ANSIBLE_COLLECTIONS_PATH": str(folder),
            "ANSIBLE_INJECT_FACT_VARS": "false",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "said").read_text().splitlines()


@pytest.mark.parametrize("name", NODES)
def test_what_runs_on_a_node(said: list[str], name: str) -> None:
    assert [line.partition(": ")[2] for line in said if line.startswith(f"{name}: ")] == NODES[name][2]
