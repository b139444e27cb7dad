"""The acceptance check as Slurm's prolog and epilog run it, on this machine as the node."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import CHECKS

PROGRAM = Path(__file__).parents[4] / "roles" / "acceptance" / "files" / "on_node.py"


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
        arguments = [when, str(self.folder / "wanted.json"), str(self.folder / "accepted"), str(self.folder / "found")]
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


def test_what_was_found_outlives_the_node_and_its_reason(node: Node) -> None:
    """clustermgtd gives the drained node another reason, and takes it away."""
    node.job("before", 1e9)
    node.job("after", 1e9, name="compute1-dy-trn1-2")
    node.job("before", 0)
    lines = (node.folder / "found").read_text().splitlines()
    assert [line.split(" ", 2)[1] for line in lines] == ["compute1-dy-trn1-1", "compute1-dy-trn1-2"]
    assert all("acceptance: " in line and line[:2] == "20" for line in lines)
    # Where it cannot be written the node fails all the same.
    (node.folder / "found").unlink()
    (node.folder / "found").mkdir()
    assert node.job("after", 1e9)[0] == 1
    assert "state=drain" in node.told.read_text()


def test_why_is_said_where_slurm_shows_what_a_prolog_printed(node: Node) -> None:
    """slurmd keeps it in its log."""
    (node.folder / "scontrol").write_text("#!/bin/sh\necho 'Access denied' >&2; exit 1\n")
    wanted = {"timeout": 5, "folders": [], "venv_path": "/nowhere", "names": [], "disk": {"/": 1e9}}
    (node.folder / "wanted.json").write_text(json.dumps({**wanted, "skip": sorted(CHECKS.keys() - {"disk"})}))
    arguments = ["before", str(node.folder / "wanted.json"), str(node.folder / "accepted")]
    environment = {"PATH": f"{node.folder}:/usr/bin:/bin", "SLURMD_NODENAME": "n1"}
    command = [sys.executable, str(PROGRAM), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    first, last = done.stderr.splitlines()
    assert first.startswith("acceptance: ") and "1e+09 GiB free in /" in first
    assert last.startswith("The reason cannot be told to Slurm: Slurm does not take state=drain")
    # Without a place for it nothing is kept of what was found.
    assert not (node.folder / "found").exists()


def test_what_was_found_is_for_all_to_read_and_no_link_is_followed(node: Node) -> None:
    node.job("before", 1e9)
    found = node.folder / "found"
    assert found.stat().st_mode & 0o777 == 0o644
    found.unlink()
    (node.folder / "elsewhere").write_text("theirs")
    found.symlink_to(node.folder / "elsewhere")
    assert node.job("after", 1e9)[0] == 1
    assert (node.folder / "elsewhere").read_text() == "theirs"
    found.unlink()
    node.job("after", 1e9, name="")
    assert found.read_text().split(" ", 2)[1] == "?"


def test_a_node_that_became_bad_is_checked_again_before_the_next_job(node: Node) -> None:
    assert node.job("after", 0) == (0, "")
    assert (node.folder / "accepted").exists()
    assert node.job("after", 1e9)[0] == 1
    assert not (node.folder / "accepted").exists()


@pytest.mark.parametrize(("queue", "lines", "code"), [("true", 5, 0), ("true", 0, 0), ("exit 1", 3, 1)])
def test_the_status_shows_what_was_found_last(tmp_path: Path, queue: str, lines: int, code: int) -> None:
    (block,) = yaml.safe_load((PROGRAM.parents[2] / "training_job/tasks/status.yml").read_text(encoding="utf-8"))
    argv = block["block"][0]["ansible.builtin.command"]["argv"]
    assert argv[-1] == "/opt/slurm/trainium-acceptance.log"
    for name, text in (("sinfo", "true"), ("squeue", queue)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    found = tmp_path / "found"
    found.write_text("".join(f"line {number}\n" for number in range(lines and lines + 2)))
    done = subprocess.run(
        [*argv[:-1], str(found)], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    shown = done.stdout.splitlines()
    assert len(shown) == (6 if lines and not code else 0)
    assert shown[-1:] == (["line 6"] if shown else [])
