"""What the module node_look tells of services, with small programs in the place of the real ones."""

from __future__ import annotations

import grp
import os
import pwd
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node import service_state
from ansible_collections.trainium.cluster.plugins.modules.internal import node_look as module

from tests.in_process import ended
from tests.unit.node.programs import program


def run(capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    """The module's answer, or how it failed."""
    result = ended(module.main, {"services": {"node": arguments}}, capsys)[0]
    found: dict[str, Any] = result if result.get("failed") else result["found"]["node"]
    return found


def test_packages(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tools, "dpkg-query", "munge\tinstall\tinstalled\t0.5\nslurmd\tdeinstall\tconfig-files\t23.11", code=1)
    found = run(capsys, packages=["munge", "slurmd", "unheard-of"])
    assert found["missing_packages"] == ["slurmd", "unheard-of"]


def test_services(tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "configuration"
    file.write_text("x")
    os.utime(file, (2000, 2000))
    started = "ActiveState=active\nUnitFileState=enabled\nExecMainStartTimestamp=@"
    program(tools, "systemctl", f"Id=a.service\n{started}1000\n\nId=b.service\n{started}3000")
    found = run(capsys, services={"a": [str(file)], "b": [str(file), "/no/such/file"]})
    assert found["services"] == {
        "a": {"enabled": True, "active": True, "stale": True},
        "b": {"enabled": True, "active": True, "stale": False},
    }


def test_no_systemd(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tools, "systemctl", "", code=1)
    assert "systemctl does not answer on this host" in run(capsys, services={"a": []})["msg"]


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"text")
    file.chmod(0o640)
    owner = f"{pwd.getpwuid(os.getuid()).pw_name}:{grp.getgrgid(file.stat().st_gid).gr_name}"
    found = run(capsys, files=[str(file), str(tmp_path / "missing")])
    assert found["files"] == [f"{owner} 0640 {sha256(b'text').hexdigest()} {file}"]


def test_folders_and_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder").mkdir(mode=0o755)
    (tmp_path / "folder" / "hook").write_bytes(b"text")
    (tmp_path / "masked").symlink_to("/dev/null")
    lines = run(capsys, files=[str(tmp_path / "folder"), str(tmp_path / "masked")])["files"]
    assert [line.split(" ", 2)[2] for line in lines[:2]] == [
        f"directory {tmp_path}/folder",
        f"{sha256(b'text').hexdigest()} {tmp_path}/folder/hook",
    ]
    assert lines[2:] == [f"link /dev/null {tmp_path}/masked"]


def test_slurm(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(service_state, "CONFIGURATION", tmp_path / "slurm.conf")
    monkeypatch.setattr(service_state, "MUNGE_KEY", tmp_path / "munge.key")
    (tmp_path / "munge.key").write_bytes(b"a" * 128)
    program(tools, "slurmd", "NodeName=n1 CPUs=8 RealMemory=31751")
    program(tools, "sacctmgr", "trainium")
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-2] CPUs=8\n")
    found = run(capsys, slurm=["configuration", "hardware", "accounting"])
    assert found["nodes"] == ["n1", "n2"]
    assert found["munge_key_digest"] == sha256(b"a" * 128).hexdigest()
    assert found["hardware"] == {"CPUs": "8", "RealMemory": "31751"}
    assert found["accounting_clusters"] == ["trainium"]
    idle = run(capsys)
    assert (idle["nodes"], idle["munge_key_digest"], idle["hardware"]) == ([], "", {})
    assert idle["accounting_clusters"] is None
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-2 CPUs=8\n")
    assert "slurm.conf cannot be understood" in run(capsys, slurm=["configuration"])["msg"]
