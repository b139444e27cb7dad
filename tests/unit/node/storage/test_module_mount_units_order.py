"""The module mount_units: the order of its steps, what was stopped on the way and runs again, what it finds right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage import unit_files
from ansible_collections.trainium.cluster.plugins.modules.internal import mount_units

from tests.in_process import ended

FSTYPE = "nfs4"


def text(path: str, source: str = "a:/b") -> str:
    return f"[Mount]\nWhat={source}\nWhere={path}\n"


def entry(name: str, **changes: Any) -> dict[str, Any]:
    path = f"/{name.replace('-', '/')}"
    return {
        "path": path,
        "unit": name,
        "source": "a:/b",
        "fstype": "nfs",
        "mount_unit": text(path),
        **changes,
    }


class Systemd:
    """Plays systemctl for any units: which there are is told by their files, which are active by ``active``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.active: set[str] = set()
        self.enabled: set[str] = set()
        self.mounts: dict[str, str] = {}
        self.dependents: dict[str, str] = {}
        self.stale: set[str] = set()
        self.fails: dict[str, str] = {}
        self.missing: set[str] = set()
        self.calls: list[str] = []

    def run(self, command: list[str], **_: Any) -> tuple[int, str, str]:
        if "--property=RequiredBy,BoundBy" in command:
            return 0, f"RequiredBy={self.dependents.get(command[-1], '')}\nBoundBy=\n", ""
        if "show" in command:
            return 0, "\n".join(map(self._state, command[command.index("--") + 1 :])), ""
        if command[0] != "systemctl":
            return 0, "", ""
        verb, units = command[2], command[3:]
        self.calls.append(" ".join([verb, *units]))
        if self.calls[-1] in self.fails:
            return 1, "", self.fails[self.calls[-1]]
        if verb == "start":
            self.active |= set(units)
            self.mounts.update({self._path(name): self._source(name) for name in units if name.endswith(".mount")})
        if verb == "stop" or "--now" in units:
            self.active -= set(units)
            for name in units:
                self.mounts.pop(self._path(name), None)
        if verb in ("enable", "disable"):
            change = self.enabled.update if verb == "enable" else self.enabled.difference_update
            change(units)
        return 0, "", ""

    def _state(self, name: str) -> str:
        active = "active" if name in self.active else "inactive"
        enabled = "enabled" if name in self.enabled else "disabled"
        stale = "yes" if name in self.stale else "no"
        return f"Id={name}\nActiveState={active}\nUnitFileState={enabled}\nNeedDaemonReload={stale}\n"

    @staticmethod
    def _path(name: str) -> str:
        return f"/{name.rpartition('.')[0].replace('-', '/')}"

    def _source(self, name: str) -> str:
        file = self.directory / name
        return file.read_text().split("What=")[1].splitlines()[0] if file.exists() else "?"

    def has(self, name: str, source: str = "a:/b", kind: str = "mount") -> None:
        """A unit that is enabled and active, and its mount."""
        (self.directory / f"{name}.{kind}").write_text(text(self._path(f"{name}.x"), source))
        self.active.add(f"{name}.{kind}")
        self.enabled.add(f"{name}.{kind}")
        if kind == "mount":
            self.mounts[self._path(f"{name}.x")] = source


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    directory = tmp_path / "system"
    directory.mkdir()
    played = Systemd(directory)

    def read(path: Path, **options: Any) -> str:
        if str(path) == "/proc/self/mountinfo":
            rows = (f"30 22 0:50 / {place} rw - {FSTYPE} {source} rw\n" for place, source in played.mounts.items())
            return "".join(rows)
        with path.open(encoding="utf-8") as file:
            return file.read()

    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(AnsibleModule, "run_command", lambda _module, command, **more: played.run(command, **more))
    monkeypatch.setattr(
        AnsibleModule, "get_bin_path", lambda _module, name, **_more: None if name in played.missing else name
    )
    monkeypatch.setattr(mount_units, "DIRECTORY", directory)
    monkeypatch.setattr(unit_files, "DIRECTORY", directory)
    return played


@pytest.fixture
def run(systemd: Systemd, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def call(*entries: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        systemd.calls.clear()
        arguments = {"mounts": list(entries), "_ansible_remote_tmp": str(tmp_path), **arguments}
        return ended(mount_units.main, arguments, capsys)[0]

    return call


def test_what_lies_deeper_goes_first_and_all_goes_before_anything_comes(
    systemd: Systemd, run: Callable[..., dict[str, Any]]
) -> None:
    for name in ("a", "a-b"):
        systemd.has(name)
    found = run(entry("new"), entry("a", state="absent"), entry("a-b", state="absent"))
    assert found["repaired"] == ["/new", "/a", "/a/b"]
    assert systemd.calls == [
        *("stop a-b.automount a-b.mount", "disable a-b.mount", "daemon-reload"),
        *("stop a.automount a.mount", "disable a.mount", "daemon-reload"),
        *("daemon-reload", "enable new.mount", "start new.mount"),
    ]
    assert [path.name for path in systemd.directory.iterdir()] == ["new.mount"]


def test_what_stopped_with_a_mount_runs_again_once_unless_it_is_gone(
    systemd: Systemd, run: Callable[..., dict[str, Any]]
) -> None:
    for name in ("fsx", "fsx-deep", "other"):
        systemd.has(name, "a:/old")
    systemd.active.add("app.service")
    systemd.dependents["fsx.mount"] = "fsx-deep.mount app.service idle.service"
    systemd.dependents["other.mount"] = "app.service"
    found = run(entry("fsx"), entry("other"), entry("fsx-deep", state="absent"))
    assert found["changed"]
    started = [call for call in systemd.calls if call.startswith("start ")]
    # The mount below is to go, so that only the service comes back, and once.
    assert started == ["start fsx.mount", "start other.mount", "start app.service"]
    assert {"fsx-deep.mount", "idle.service"}.isdisjoint(systemd.active)


def test_what_stopped_runs_again_where_the_change_failed(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    systemd.has("fsx", "a:/old")
    systemd.has("fsx-deep")
    systemd.dependents["fsx.mount"] = "fsx-deep.mount"
    systemd.fails["enable fsx.mount"] = "No space left"
    said = run(entry("fsx"))["msg"]
    assert said == "a:/b cannot be mounted at /fsx (No space left); everything is as it was."
    assert systemd.calls[-1] == "start fsx-deep.mount"
    assert "fsx-deep.mount" in systemd.active


def test_an_automount_takes_the_place_of_a_mount_at_boot(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    systemd.has("fsx")
    wanted = entry("fsx", automount_unit="[Automount]\nWhere=/fsx\n")
    assert run(wanted)["changed"]
    assert systemd.calls == [
        *("stop fsx.automount fsx.mount", "daemon-reload", "disable fsx.mount"),
        *("enable fsx.automount", "start fsx.automount"),
    ]
    assert systemd.enabled == {"fsx.automount"}
    # It is right before anybody has used it.
    assert not run(wanted)["changed"]


def test_a_mount_takes_the_place_of_an_automount(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    systemd.has("fsx", kind="automount")
    (systemd.directory / "fsx.mount").write_text(text("/fsx"))
    assert run(entry("fsx"))["changed"]
    assert "disable --now fsx.automount" in systemd.calls
    assert (systemd.enabled, systemd.active) == ({"fsx.mount"}, {"fsx.mount"})
    assert not (systemd.directory / "fsx.automount").exists()


@pytest.mark.parametrize("state", ["text", "active", "enabled", "stale", "source"])
def test_what_is_not_right_is_repaired(systemd: Systemd, run: Callable[..., dict[str, Any]], state: str) -> None:
    systemd.has("fsx")
    assert not run(entry("fsx"))["changed"]
    if state == "text":
        (systemd.directory / "fsx.mount").write_text(text("/fsx", "a:/old"))
    elif state == "stale":
        systemd.stale.add("fsx.mount")
    elif state == "source":
        systemd.mounts["/fsx"] = "a:/other"
    else:
        getattr(systemd, state).discard("fsx.mount")
    found = run(entry("fsx"))
    assert (found["changed"], found["repaired"]) == (True, ["/fsx"])
    systemd.stale.clear()
    assert not run(entry("fsx"))["changed"]


def test_what_somebody_mounted_by_hand_as_it_should_be_is_taken_over(
    systemd: Systemd, run: Callable[..., dict[str, Any]]
) -> None:
    systemd.mounts["/fsx"] = "a:/b"
    assert run(entry("fsx"))["changed"]
    # It is not unmounted for it.
    assert systemd.calls == ["daemon-reload", "enable fsx.mount", "start fsx.mount"]


def test_a_source_that_is_not_there_is_said_and_what_ran_runs_on(
    systemd: Systemd, run: Callable[..., dict[str, Any]]
) -> None:
    systemd.has("data", "/nowhere/old")
    found = run(entry("data", fstype="none", source="/nowhere/new", mount_unit=text("/data", "/nowhere/new")))
    assert found["msg"] == "/nowhere/new, which /data is to show, is no directory; make or mount it first."
    assert systemd.calls[-1] == "start data.mount"
    assert "/nowhere/old" in (systemd.directory / "data.mount").read_text()


def test_clients_that_are_missing_are_named_before_anything_changes(
    systemd: Systemd, run: Callable[..., dict[str, Any]]
) -> None:
    systemd.missing = {"mount.lustre", "mount.nfs"}
    wanted = [entry("a", fstype="lustre"), entry("b"), entry("c", state="absent", fstype="nfs4")]
    assert run(*wanted, _ansible_check_mode=True)["missing_helpers"] == ["mount.lustre", "mount.nfs"]
    said = run(*wanted)["msg"]
    assert said == "The host lacks mount.lustre, mount.nfs; install the client of the file system first."
    assert systemd.calls == []


def test_what_cannot_be_put_back_is_said_too(systemd: Systemd, run: Callable[..., dict[str, Any]]) -> None:
    systemd.has("fsx", "a:/old")
    systemd.fails = {"start fsx.mount": "Job failed."}
    said = run(entry("fsx"))["msg"]
    assert said == (
        "a:/b cannot be mounted at /fsx (Job failed.); what was there cannot be put back either (Job failed.)."
    )
    assert systemd.calls[-4:-2] == ["daemon-reload", "reset-failed fsx.mount fsx.automount"]
    assert "a:/old" in (systemd.directory / "fsx.mount").read_text()


def test_the_mounted_root_gets_its_owner_and_mode(
    systemd: Systemd, run: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    place = tmp_path / "root"
    place.mkdir(mode=0o755)
    systemd.has("fsx")
    systemd.mounts[str(place)] = "a:/b"
    mine = {**entry("fsx"), "path": str(place)}
    assert not run(mine)["changed"]
    assert run({**mine, "mode": "0700"}, _ansible_check_mode=True)["repaired"] == [str(place)]
    assert run({**mine, "mode": "0700"})["repaired"] == [str(place)]
    assert place.stat().st_mode & 0o7777 == 0o700
    assert not run({**mine, "mode": "0700"})["changed"]
