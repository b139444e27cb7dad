"""Unit files and what systemd makes of them: which programs are called, and what is read of their answers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.unit_files import UnitError, UnitFiles

SHOW = ["systemctl", "--no-pager", "show"]


class Module:
    """Plays a module: programs answer what a test has laid down, by a part of their call."""

    def __init__(self, folder: Path) -> None:
        self.tmpdir = str(folder)
        self.calls: list[list[str]] = []
        self.options: list[dict[str, Any]] = []
        self.answers: dict[str, tuple[int, str, str]] = {}
        self.seen: dict[str, str] = {}

    def run_command(self, command: list[str], **options: Any) -> tuple[int, str, str]:
        self.calls.append(command)
        self.options.append(options)
        if command[0] == "systemd-analyze":
            self.seen = {Path(name).name: Path(name).read_text(encoding="utf-8") for name in command[2:]}
            folder = str(Path(command[2]).parent)
            code, out, error = self.answers.get("systemd-analyze", (0, "", ""))
            return code, out.format(folder=folder), error.format(folder=folder)
        return next((answer for words, answer in self.answers.items() if words in " ".join(command)), (0, "", ""))

    def atomic_move(self, source: str, target: str) -> None:
        shutil.move(source, target)


@pytest.fixture
def module(tmp_path: Path) -> Module:
    return Module(tmp_path)


@pytest.fixture
def files(module: Module) -> UnitFiles:
    return UnitFiles(module)


def test_a_file_is_written_for_everybody_to_read_and_put_back_as_it_was(tmp_path: Path, files: UnitFiles) -> None:
    old, new = tmp_path / "old.mount", tmp_path / "new.mount"
    old.write_text("before\n")
    old.chmod(0o600)
    before = {path: files.read(path) for path in (old, new)}
    assert before == {old: "before\n", new: None}
    files.write(old, "after\n", 0o600)
    files.write(new, "[Mount]\nWhere=/\udcff\n")
    assert new.stat().st_mode & 0o7777 == 0o644
    assert new.read_bytes().endswith(b"/\xff\n") and files.read(new) == "[Mount]\nWhere=/\udcff\n"
    files.restore({**before, tmp_path / "none": None})
    assert (old.read_text(), old.stat().st_mode & 0o7777, new.exists()) == ("before\n", 0o600, False)
    old.unlink()
    files.restore(before)
    assert (old.read_text(), old.stat().st_mode & 0o7777) == ("before\n", 0o644)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((0, "", "{folder}/a.mount:3: Unknown key.\n"), "a.mount:3: Unknown key"),
        ((0, "{folder}/a.mount:3: Unknown key\n", "more\n"), "a.mount:3: Unknown key"),
        ((1, "", "first\n  a.mount is bad  \n"), "a.mount is bad"),
        ((1, "", "out of memory\n"), "out of memory"),
        ((4, "", ""), "exit code 4"),
    ],
)
def test_any_word_of_systemd_about_a_unit_is_a_refusal(
    module: Module, files: UnitFiles, answer: tuple[int, str, str], reason: str
) -> None:
    module.answers["systemd-analyze"] = answer
    said = f"^systemd refuses a unit, and nothing was changed: {reason}; correct the variables.$"
    with pytest.raises(UnitError, match=said):
        files.verify({"a.mount": "[Mount]\n", "b.mount": "[Mount]\n"})


def test_systemd_reads_units_beside_each_other_and_without_colours(module: Module, files: UnitFiles) -> None:
    module.answers["systemd-analyze"] = (0, "", "/lib/systemd/system/other.service:3: Unknown key\n")
    units = {"a.mount": "[Mount]\nWhat=a\n", "a.automount": "[Automount]\n"}
    files.verify(units)
    assert module.seen == units
    assert module.calls[0][:2] == ["systemd-analyze", "verify"]
    assert module.options == [{"environ_update": {"SYSTEMD_COLORS": "0"}}]
    # Nothing of it is left, and nothing is asked about nothing.
    assert not Path(module.calls[0][2]).parent.exists()
    files.verify({})
    assert len(module.calls) == 1


def test_states_are_asked_for_with_one_call(module: Module, files: UnitFiles) -> None:
    shown = "Id=a.mount\nActiveState=active\nUnitFileState=enabled\n\n\nId=b.mount\nActiveState=inactive\nodd\n"
    module.answers["show"] = (0, shown, "")
    assert files.show(iter(["a.mount", "b.mount"])) == {
        "a.mount": {"Id": "a.mount", "ActiveState": "active", "UnitFileState": "enabled"},
        "b.mount": {"Id": "b.mount", "ActiveState": "inactive"},
    }
    wanted = "--property=Id,ActiveState,UnitFileState,NeedDaemonReload"
    assert module.calls == [[*SHOW, wanted, "--", "a.mount", "b.mount"]]
    assert module.options == [{"check_rc": True}]
    assert files.show([]) == {}
    assert len(module.calls) == 1


def test_what_stops_with_a_mount_is_found_however_deep_and_only_what_runs(module: Module, files: UnitFiles) -> None:
    module.answers = {
        "RequiredBy,BoundBy -- fsx.mount": (0, 'RequiredBy="fsx-a\\\\x2db.mount" x.service\nBoundBy=x.service\n', ""),
        "RequiredBy,BoundBy -- x.service": (0, "RequiredBy=fsx.mount y.service\nBoundBy=\n", ""),
        "RequiredBy,BoundBy -- y.service": (0, "RequiredBy=x.service\nBoundBy=\n", ""),
        "RequiredBy,BoundBy -- fsx-a": (0, "RequiredBy=\nBoundBy=\n", ""),
        "Id,ActiveState": (
            0,
            "\n\n".join(
                f"Id={name}\nActiveState={state}" for name, state in zip("abc", ("active", "failed", "active"))
            ),
            "",
        ),
    }
    assert files.dependents("fsx.mount") == ["fsx-a\\x2db.mount", "y.service"]
    asked = [call[-1] for call in module.calls if "--property=RequiredBy,BoundBy" in call]
    assert sorted(asked) == sorted(["fsx.mount", "fsx-a\\x2db.mount", "x.service", "y.service"])
    assert all(options == {"check_rc": True} for options in module.options)
    module.answers = {}
    assert files.dependents("none.mount") == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((0, "warned\n", "warned\n"), ""),
        ((1, "out\n", "\n Job failed. \nSee\n"), "Job failed."),
        ((1, "said\n", ""), "said"),
        ((5, "", ""), "exit code 5"),
    ],
)
def test_why_systemctl_failed(module: Module, files: UnitFiles, answer: tuple[int, str, str], reason: str) -> None:
    module.answers["restart"] = answer
    assert files.systemctl("restart", "a.service") == reason
    assert module.calls == [["systemctl", "--no-ask-password", "restart", "a.service"]]


def test_the_journal_s_last_word_about_a_unit_that_is_none_of_systemd_s(module: Module, files: UnitFiles) -> None:
    lines = "Mounting /x...\nmount.nfs: access denied.\n  \nFailed to mount /x.\na.mount: Failed\nSee dmesg\ndmesg(1)\n"
    module.answers["journalctl"] = (0, lines.replace("See dmesg\n", ""), "")
    assert files.reason("a.mount") == "mount.nfs: access denied"
    assert module.calls[0][0] == "journalctl"
    assert {"--unit=a.mount", "--output=cat", "--quiet", "--no-pager"} < set(module.calls[0])
    for word in ("Starting x", "Unmounting x", "Failed to start x", "(END)", "a.mount: x"):
        module.answers["journalctl"] = (0, f"why\n{word}\n", "")
        assert files.reason("a.mount") == "why"
    module.answers["journalctl"] = (0, "Mounting /x...\n", "")
    assert files.reason("a.mount") == ""
