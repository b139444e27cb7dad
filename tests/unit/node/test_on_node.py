"""The acceptance check as Slurm's prolog and epilog run it, on this machine as the node."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import CHECKS

PROGRAM = Path(__file__).parents[3] / "roles" / "acceptance" / "files" / "on_node.py"


class Node:
    def __init__(self, folder: Path) -> None:
        self.folder, self.told = folder, folder / "told"
        (folder / "scontrol").write_text(f'#!/bin/sh\necho "$*" >> {self.told}\n')
        (folder / "scontrol").chmod(0o755)

    def job(self, when: str, space: float, name: str = "compute1-dy-trn1-1") -> tuple[int, str]:
        """The exit code, and what Slurm was told, where so much space in GiB is wanted."""
        wanted: dict[str, Any] = {"timeout": 5, "folders": [], "venv_path": "/nowhere", "names": []}
        wanted.update(disk={"/": space}, skip=sorted(CHECKS.keys() - {"disk"}))
        (self.folder / "wanted.json").write_text(json.dumps(wanted))
        self.told.write_text("")
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin", **({"SLURMD_NODENAME": name} if name else {})}
        arguments = [when, str(self.folder / "wanted.json"), str(self.folder / "accepted")]
        done = subprocess.run([sys.executable, str(PROGRAM), *arguments], env=environment, check=False)
        return done.returncode, self.told.read_text()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_node_is_checked_before_its_first_job_and_after_each(node: Node) -> None:
    code, told = node.job("before", 1e9)
    assert code == 1
    assert told.startswith("update nodename=compute1-dy-trn1-1 state=drain reason=acceptance: ")
    assert "1e+09 GiB free in /" in told
    assert node.job("before", 0) == (0, "")
    # What was good after the last job is not looked at again.
    assert node.job("before", 1e9) == (0, "")
    assert node.job("after", 1e9)[0] == 1
    assert node.job("before", 1e9)[0] == 1


def test_a_node_fails_also_where_slurm_cannot_be_told(node: Node) -> None:
    assert node.job("before", 1e9, name="") == (1, "")
