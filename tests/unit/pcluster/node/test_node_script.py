"""The nodes' script by bash, on a head node and on one that comes after it; Ansible and AWS are stood in for."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.sandbox_driver import REPOSITORY

TEMPLATE = REPOSITORY / "roles" / "parallelcluster" / "templates" / "node.sh.j2"
COLLECTION, VARIABLES = "a collection", "{}"
# What python.sh.j2 does, in short.
ENVIRONMENTS = """
install_ansible() { mkdir -p "$1/venv/bin"; cp "$STUBS"/made/* "$1/venv/bin/"; echo "$2" >> "$NODE/installed"; }
"""
STUBS = {
    "curl": "exit 1",
    "aws": f"case $6 in */collection*) printf '{COLLECTION}';; *) printf '{VARIABLES}';; esac > \"$7\"",
    "made/python": f'exec {sys.executable} "$@"',
    "made/ansible-playbook": 'echo played >> "$NODE/played"; case $* in *HeadNode*) mkdir -p "$NODE/venv/bin";'
    ' echo "$SOFTWARE" | tee "$NODE/venv/bin/torchrun" > "$NODE/venv/.trainium";; esac',
}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Cluster:
    """Nodes, a folder each, that share one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in STUBS.items():
            path = folder / "stubs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/bash\n{text}\n")
            path.chmod(0o755)

    def script(self, node: Path, neuron: bool) -> str:
        variables: dict[str, Any] = {
            "parallelcluster_bucket": "bucket",
            "parallelcluster_region": "us-west-2",
            "parallelcluster_shared_dir": str(self.folder / "shared"),
            "parallelcluster_node_python": "",
            "__parallelcluster_node_lock": "",
            "neuron_venv_path": str(node / "venv"),
            "__parallelcluster_archive_key": "node/collection",
            "__parallelcluster_packed": {"sha256": sha256(COLLECTION)},
            "__parallelcluster_variables_key": "node/variables",
            "__parallelcluster_variables_text": VARIABLES,
            "__parallelcluster_node_requirements": ["ansible-core"],
            "__parallelcluster_node_pip": [],
            "__parallelcluster_neuron": neuron,
        }
        text = TEMPLATE.read_text().replace("{% include 'python.sh.j2' %}", ENVIRONMENTS)
        shown: str = Templar(loader=DataLoader(), variables=variables).template(trust_as_template(text))
        for path in ("/etc/parallelcluster/cfnconfig", "/opt/trainium-node", "/var/log/trainium-node.log"):
            shown = shown.replace(path, str(node / Path(path).name))
        return shown.replace("!= 0 ]", f"!= {os.getuid()} ]")

    def boot(self, name: str, software: str = "", neuron: bool = True) -> subprocess.CompletedProcess[str]:
        node = self.folder / name
        node.mkdir(exist_ok=True)
        kind = "HeadNode" if name == "head" else "ComputeFleet"
        (node / "cfnconfig").write_text(f"cfn_node_type={kind}\n")
        paths = {"PATH": f"{self.folder / 'stubs'}:{os.environ['PATH']}", "STUBS": str(self.folder / "stubs")}
        return subprocess.run(
            ["bash", "-c", self.script(node, neuron)],
            env={**paths, "NODE": str(node), "SOFTWARE": software},
            capture_output=True,
            text=True,
            check=False,
        )

    def torchrun(self, name: str) -> str:
        return (self.folder / name / "venv" / "bin" / "torchrun").read_text().strip()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_nodes_unpack_what_the_head_node_has_made(cluster: Cluster) -> None:
    for name in ("head", "first"):
        done = cluster.boot(name, "2.9.0" if name == "head" else "")
        assert done.returncode == 0, done.stderr
        assert cluster.torchrun(name) == "2.9.0"
    # One archive each, and nothing that a node would read file by file.
    shared = {path.name for path in (cluster.folder / "shared" / ".trainium-node").iterdir()}
    assert len(shared) == 4
    assert {"environment.tar", "environment.tar.mark"} < shared
    assert (cluster.folder / "head" / "installed").exists()
    assert not (cluster.folder / "first" / "installed").exists()


def test_other_software_takes_the_place_of_what_a_node_has(cluster: Cluster) -> None:
    for software in ("2.8.0", "2.9.0"):
        assert cluster.boot("head", software).returncode == 0
        assert cluster.boot("first").returncode == 0
        assert cluster.torchrun("first") == software
    archive = cluster.folder / "shared" / ".trainium-node" / "environment.tar"
    before = archive.stat()
    assert cluster.boot("head", "2.9.0").returncode == 0
    assert archive.stat() == before


def test_a_node_without_the_head_node_s_archive_says_so(cluster: Cluster) -> None:
    done = cluster.boot("first")
    assert done.returncode == 1
    assert "which the head node makes, is not there; see" in done.stderr


def test_a_cluster_without_neuron_devices_has_one_archive(cluster: Cluster) -> None:
    assert [cluster.boot(name, neuron=False).returncode for name in ("head", "first")] == [0, 0]
    assert len(list((cluster.folder / "shared" / ".trainium-node").glob("*.tar"))) == 1


def test_a_folder_of_somebody_else_is_refused(cluster: Cluster) -> None:
    node = cluster.folder / "head"
    node.mkdir()
    (node / "cfnconfig").write_text("cfn_node_type=HeadNode\n")
    script = cluster.script(node, True).replace(f"!= {os.getuid()} ]", f"!= {os.getuid() + 1} ]")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "does not belong to root" in done.stderr) == (1, True)
