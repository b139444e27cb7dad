"""The module mount_units against systemd's programs, played: what it asks, in what order, and what it undoes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage import unit_files
from ansible_collections.trainium.cluster.plugins.modules.internal import mount_units

from tests.in_process import ended

NEW = "[Mount]\nWhat=a:/b\nWhere=/data\nType=nfs\n"
OLD = "[Mount]\nWhat=a:/old\nWhere=/data\nType=nfs\n"
ENTRY = {"path": "/data", "unit": "data", "source": "a:/b", "fstype": "nfs", "mount_unit": NEW}


class Systemd:
    """Plays systemctl, systemd-analyze and the kernel's list of mounts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.calls: list[list[str]] = []
        self.mounted = ""
        self.complaint = ""
        self.broken = False
        self.why = "mount.nfs: access denied"
        self.busy = False

    def run(self, command: list[str], **_: Any) -> tuple[int, str, str]:
        self.calls.append(command)
        if command[0] == "systemd-analyze":
            return 0, "", self.complaint
        if "show" in command:
            return 0, self._show(command), ""
        if command[0] == "journalctl":
            return 0, f"{self.why}\n", ""
        verb, units = command[2], command[3:]
        unit = self.directory / "data.mount"
        if verb == "stop" and not self.busy:
            self.mounted = ""
        elif verb == "start" and units == ["data.mount"]:
            if self.broken and unit.read_text() == NEW:
                return 1, "", "Job failed."
            self.mounted = unit.read_text().split("What=")[1].splitlines()[0]
        return 0, "", ""

    def _show(self, command: list[str]) -> str:
        if "--property=RequiredBy,BoundBy" in command:
            return "RequiredBy=\nBoundBy=\n"
        blocks = []
        for name in command[command.index("--") + 1 :]:
            there = (self.directory / name).exists()
            active = "active" if there and self.mounted and name.endswith(".mount") else "inactive"
            state = "enabled" if active == "active" else ""
            blocks.append(f"Id={name}\nActiveState={active}\nUnitFileState={state}\nNeedDaemonReload=no\n")
        return "\n".join(blocks)

    def verbs(self) -> list[str]:
        return [call[2] for call in self.calls if call[:2] == ["systemctl", "--no-ask-password"]]


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    directory = tmp_path / "system"
    directory.mkdir()
    played = Systemd(directory)

    def read(path: Path, **_options: Any) -> str:
        if str(path) == "/proc/self/mountinfo":
            return f"30 22 0:50 / /data rw - nfs4 {played.mounted} rw\n" if played.mounted else ""
        with path.open(encoding="utf-8") as file:
            return file.read()

    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(
        AnsibleModule, "run_command", lambda _module, command, **options: played.run(command, **options)
    )
    monkeypatch.setattr(AnsibleModule, "get_bin_path", lambda _module, name, **_options: f"/sbin/{name}")
    monkeypatch.setattr(mount_units, "DIRECTORY", directory)
    monkeypatch.setattr(unit_files, "DIRECTORY", directory)
    return played


@pytest.fixture
def run(systemd: Systemd, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def call(entry: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        systemd.calls.clear()
        arguments = {"mounts": [entry], "_ansible_remote_tmp": str(tmp_path), **arguments}
        result, code = ended(mount_units.main, arguments, capsys)
        return {**result, "rc": code}

    return call


def replaced(systemd: Systemd) -> Path:
    """An old unit that is mounted."""
    unit = systemd.directory / "data.mount"
    unit.write_text(OLD)
    systemd.mounted = "a:/old"
    return unit


def test_a_new_mount_is_made_once(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    first = run(ENTRY)
    assert (first["changed"], first["repaired"], systemd.mounted) == (True, ["/data"], "a:/b")
    assert systemd.verbs() == ["daemon-reload", "enable", "start"]
    assert (systemd.directory / "data.mount").read_text() == NEW
    second = run(ENTRY)
    assert not second["changed"]
    assert len(systemd.calls) == 1


def test_check_mode_says_what_differs_and_changes_nothing(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    unit = replaced(systemd)
    result = run(ENTRY, _ansible_check_mode=True, _ansible_diff=True)
    assert result["changed"]
    assert [(part["before"], part["after"]) for part in result["diff"]] == [(OLD, NEW)]
    assert (unit.read_text(), systemd.mounted, systemd.verbs()) == (OLD, "a:/old", [])


def test_a_complaint_of_systemd_leaves_the_old_unit(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    unit = replaced(systemd)
    systemd.complaint = "/x/data.mount:3: Where= path is not absolute, ignoring: data\n"
    result = run(ENTRY)
    assert result["rc"] == 1
    assert "Where= path is not absolute" in result["msg"]
    assert (unit.read_text(), systemd.mounted, systemd.verbs()) == (OLD, "a:/old", [])


def test_complaints_about_other_units_do_not_count(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    systemd.complaint = "/lib/systemd/system/other.service:3: Unknown key\n"
    assert run(ENTRY)["changed"]


def test_a_mount_that_fails_brings_the_old_one_back(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    unit = replaced(systemd)
    systemd.broken = True
    result = run(ENTRY)
    assert result["msg"] == "a:/b cannot be mounted at /data (mount.nfs: access denied); everything is as it was."
    # That of a file system that was made a minute ago.
    source = "fs-1.efs.us-west-2.amazonaws.com:/"
    systemd.why = "mount.nfs4: Failed to resolve server fs-1.efs.us-west-2.amazonaws.com: Name or service not known"
    assert run({**ENTRY, "source": source})["msg"].endswith(
        "everything is as it was; the name of a new file system may take two minutes, so run the same again."
    )
    assert run(ENTRY)["msg"].endswith("everything is as it was.")
    assert (unit.read_text(), systemd.mounted) == (OLD, "a:/old")


def test_a_mount_that_fails_leaves_nothing_where_there_was_nothing(
    systemd: Systemd, run: Callable[..., dict[str, Any]]
) -> None:
    systemd.broken = True
    assert "everything is as it was" in run(ENTRY)["msg"]
    assert list(systemd.directory.iterdir()) == []


def test_a_mount_in_use_stays(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    unit = replaced(systemd)
    systemd.busy = True
    for entry in (ENTRY, {**ENTRY, "state": "absent"}):
        assert "cannot be unmounted" in run(entry)["msg"]
        assert (unit.read_text(), systemd.mounted) == (OLD, "a:/old")


def test_what_others_mounted_is_refused(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    systemd.mounted = "other:/x"
    assert "other:/x is mounted at /data already" in run(ENTRY)["msg"]
    assert systemd.verbs() == []


def test_a_mount_goes_away_with_its_unit(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    unit = replaced(systemd)
    assert run({**ENTRY, "state": "absent"})["changed"]
    assert (unit.exists(), systemd.mounted) == (False, "")
    assert not run({**ENTRY, "state": "absent"})["changed"]
