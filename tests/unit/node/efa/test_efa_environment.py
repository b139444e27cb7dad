"""The environment of EFA: one file, which jobs and the test across the nodes have word for word."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).parents[4] / "roles"
SNIPPET = ROLES / "efa" / "files" / "environment.sh"
NAMES = ("FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "RDMAV_FORK_SAFE")
VALUES = {"FI_PROVIDER": "efa"}


@pytest.mark.parametrize(("role", "template"), [("training_job", "job.sh.j2"), ("acceptance", "nccom.sh.j2")])
def test_nobody_has_an_environment_of_his_own(role: str, template: str) -> None:
    variables = yaml.safe_load((ROLES / role / "vars/main.yml").read_text())
    assert "role_path ~ '/../efa/files/environment.sh'" in variables[f"__{role}_efa"]
    text = (ROLES / role / "templates" / template).read_text()
    assert f"{{{{ __{role}_efa }}}}\n" in text
    assert not any(f"{name}=" in text for name in NAMES)


@pytest.mark.parametrize(
    ("kernel", "libfabric", "wanted"),
    [
        ("6.8.0-1015-aws", "2.1.0", NAMES[:2]),
        ("5.10.0-1", "1.22.0", NAMES[:3]),
        ("5.4.0-1", "1.12.1", NAMES),
        # Without EFA: no libfabric, or one that finds no interface of it.
        ("", "", ()),
        ("5.4.0-1", "", ()),
    ],
)
def test_what_a_node_gets(tmp_path: Path, kernel: str, libfabric: str, wanted: tuple[str, ...]) -> None:
    """Without a kernel's name here there is no fi_info either."""
    programs = {"uname": f"echo {kernel}\n"}
    if kernel:
        finds = "exit 0" if libfabric else "exit 61"
        programs["fi_info"] = f'[ "$1" != --version ] || echo "libfabric: {libfabric}"\n'
        # What it prints is for people.
        programs["fi_info"] += f'[ "$*" != "-p efa" ] || {{ echo provider; echo warning >&2; {finds}; }}\n'
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}")
        (tmp_path / name).chmod(0o755)
    script = f"set -euo pipefail\n. {SNIPPET}\nenv"
    shown = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stderr == ""
    told = dict(line.split("=", 1) for line in shown.stdout.splitlines())
    assert {name: told[name] for name in NAMES if name in told} == {name: VALUES.get(name, "1") for name in wanted}
