"""slurm_node_info and monitoring_node_info: what they ask alike, with small programs in the place of the real ones."""

from __future__ import annotations

import grp
import json
import os
import pwd
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.trainium.cluster.plugins.modules.internal import monitoring_node_info, slurm_node_info

MODULES = pytest.mark.parametrize("module", [slurm_node_info, monitoring_node_info], ids=["slurm", "monitoring"])


def run(module: ModuleType, capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    """The module's result, failed or not."""
    with patch_module_args(arguments), pytest.raises(SystemExit):
        module.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def program(folder: Path, name: str, output: str, code: int = 0) -> None:
    """A program that prints something and ends with a code."""
    file = folder / name
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\nexit {code}\n")
    file.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is searched before all others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@MODULES
def test_packages(module: ModuleType, tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tools, "dpkg-query", "munge\tinstall\tinstalled\t0.5\nslurmd\tdeinstall\tconfig-files\t23.11", code=1)
    found = run(module, capsys, packages=["munge", "slurmd", "unheard-of"])
    assert found["missing_packages"] == ["slurmd", "unheard-of"]


@MODULES
def test_services(module: ModuleType, tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "configuration"
    file.write_text("x")
    os.utime(file, (2000, 2000))
    started = "ActiveState=active\nUnitFileState=enabled\nExecMainStartTimestamp=@"
    program(tools, "systemctl", f"Id=a.service\n{started}1000\n\nId=b.service\n{started}3000")
    found = run(module, capsys, services={"a": [str(file)], "b": [str(file), "/no/such/file"]})
    assert found["services"] == {
        "a": {"enabled": True, "active": True, "stale": True},
        "b": {"enabled": True, "active": True, "stale": False},
    }


@MODULES
def test_no_systemd(module: ModuleType, tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tools, "systemctl", "", code=1)
    assert "systemctl does not answer on this host" in run(module, capsys, services={"a": []})["msg"]


@MODULES
def test_files(module: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"text")
    file.chmod(0o640)
    owner = f"{pwd.getpwuid(os.getuid()).pw_name}:{grp.getgrgid(file.stat().st_gid).gr_name}"
    found = run(module, capsys, files=[str(file), str(tmp_path / "missing")])
    assert found["files"] == [f"{owner} 0640 {sha256(b'text').hexdigest()} {file}"]
