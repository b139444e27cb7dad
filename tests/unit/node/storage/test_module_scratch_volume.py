"""The module scratch_volume: what it installs before the service starts, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage import unit_files
from ansible_collections.trainium.cluster.plugins.modules.internal import scratch_volume

from tests.in_process import ended

DISK = {"name": "nvme1n1", "type": "disk", "model": "Amazon EC2 NVMe Instance Storage"}


class Host:
    """Plays lsblk and systemctl; the service makes and mounts the file system unless it is broken."""

    def __init__(self, tmp_path: Path) -> None:
        self.directory = tmp_path / "system"
        self.scratch = tmp_path / "scratch"
        self.program = tmp_path / "lib" / "scratch.py"
        self.directory.mkdir()
        self.disks: list[dict[str, Any]] = [dict(DISK)]
        self.broken = False
        self.started = False
        self.missing: set[str] = set()

    def run(self, command: list[str], **_: Any) -> tuple[int, str, str]:
        if command[0] == "lsblk":
            return 0, json.dumps({"blockdevices": self.disks}), ""
        if command[0] == "journalctl":
            return 0, "mkfs.xfs failed (no space)\n", ""
        if "show" in command:
            state = ("active", "enabled") if self.started else ("inactive", "")
            return 0, "Id=s.service\nActiveState={}\nUnitFileState={}\n".format(*state), ""
        if "restart" in command:
            if self.broken:
                return 1, "", "Job failed."
            self.started = True
            self.scratch.mkdir(exist_ok=True)
            self.scratch.chmod(0o1777)
            self.disks[0].update(fstype="xfs", label="tc-scratch", mountpoint=str(self.scratch))
        return 0, "", ""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    played = Host(tmp_path)
    monkeypatch.setattr(
        AnsibleModule, "run_command", lambda _module, command, **options: played.run(command, **options)
    )
    monkeypatch.setattr(
        AnsibleModule, "get_bin_path", lambda _module, name, **_options: None if name in played.missing else name
    )
    monkeypatch.setattr(scratch_volume, "DIRECTORY", played.directory)
    monkeypatch.setattr(unit_files, "DIRECTORY", played.directory)
    return played


@pytest.fixture
def run(host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def call(**arguments: Any) -> dict[str, Any]:
        texts = {"programs": {str(host.program): "print()\n"}, "unit": "[Service]\n", "unit_name": "s.service"}
        arguments = {"path": str(host.scratch), **texts, "_ansible_remote_tmp": str(tmp_path), **arguments}
        result, code = ended(scratch_volume.main, arguments, capsys)
        return {**result, "rc": code}

    return call


def test_it_is_made_once_and_drift_is_seen(host: Host, run: Callable[..., dict[str, Any]]) -> None:
    first = run()
    assert (first["changed"], first["step"], first["devices"]) == (True, "make_filesystem", ["/dev/nvme1n1"])
    assert host.program.read_text() == "print()\n"
    assert first["differs"] is True
    again = run()
    assert (again["changed"], again["differs"]) == (False, False)
    host.scratch.chmod(0o755)
    assert run()["changed"]
    host.disks[0]["mountpoint"] = None
    assert run(_ansible_check_mode=True)["step"] == "mount"


def test_check_mode_changes_nothing_and_names_what_is_missing(host: Host, run: Callable[..., dict[str, Any]]) -> None:
    host.missing = {"mkfs.xfs", "mdadm"}
    host.disks.append({**DISK, "name": "nvme2n1"})
    result = run(_ansible_check_mode=True)
    assert (result["changed"], result["missing_programs"]) == (True, ["mkfs.xfs", "mdadm"])
    assert not host.started
    assert not host.program.exists()
    assert "The host lacks mkfs.xfs, mdadm" in run()["msg"]


def test_a_device_in_use_is_refused_before_anything_is_written(host: Host, run: Callable[..., dict[str, Any]]) -> None:
    host.disks[0].update(fstype="ext4", label="data")
    assert "is left as it is" in run()["msg"]
    assert not host.program.exists()
    assert list(host.directory.iterdir()) == []


def test_a_service_that_fails_leaves_nothing_behind(host: Host, run: Callable[..., dict[str, Any]]) -> None:
    host.broken = True
    assert run()["msg"].endswith("cannot be made: mkfs.xfs failed (no space).")
    assert not host.program.exists()
    assert list(host.directory.iterdir()) == []
