"""The module text_files: what it writes, in which mode, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import text_files

from tests.in_process import ended


def run(capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    return ended(text_files.main, arguments, capsys)[0]


def test_files_are_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"new": str(tmp_path / "new"), "old": str(tmp_path / "old"), "script": str(tmp_path / "a" / "b" / "script")}
    Path(names["old"]).write_text("the same\n", encoding="utf-8")
    Path(names["old"]).chmod(0o600)
    wanted = {
        "contents": {names["new"]: "ä 'quoted' $(id)\n", names["old"]: "the same\n", names["script"]: "#!/bin/sh\n"},
        "modes": {names["script"]: "0755"},
        "mode": "0644",
        "parents": True,
    }
    first = run(capsys, **wanted)
    assert (first["changed"], first["written"]) == (True, [names["new"], names["script"]])
    assert Path(names["new"]).read_text(encoding="utf-8") == "ä 'quoted' $(id)\n"
    assert [oct(Path(name).stat().st_mode & 0o777) for name in names.values()] == ["0o644", "0o644", "0o755"]
    assert oct(Path(names["script"]).parent.stat().st_mode & 0o777) == "0o755"

    second = run(capsys, **wanted, _ansible_diff=True)
    assert (second["changed"], second["written"], second["diff"]) == (False, [], [])


def test_what_was_there_may_be_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(256)))
    assert "diff" not in run(capsys, contents={str(key): "new"}, _ansible_check_mode=True)
    shown = run(capsys, contents={str(key): "new"}, _ansible_diff=True)
    assert shown["changed"]
    json.dumps(shown, ensure_ascii=False).encode("utf-8")
    assert key.read_text(encoding="utf-8") == "new"


def test_check_mode_shows_and_leaves_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("before\n", encoding="utf-8")
    shown = run(capsys, contents={str(file): "after\n"}, _ansible_check_mode=True, _ansible_diff=True)
    assert shown["changed"]
    assert [(part["before"], part["after"]) for part in shown["diff"]] == [("before\n", "after\n")]
    assert file.read_text(encoding="utf-8") == "before\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"contents": {"etc/file": ""}}, "etc/file is no absolute path"),
        ({"contents": {"{tmp}/a/b": "text"}}, "the folder of {tmp}/a/b is not there"),
        ({"contents": {"{tmp}": "text"}}, "{tmp} cannot be read (Is a directory)"),
        ({"contents": {"/proc/none/file": "text"}, "parents": True}, "/proc/none/file cannot be written ("),
        ({"contents": {}, "modes": {"/etc/a": "0755"}}, "modes names /etc/a, which is not in contents"),
    ],
)
def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: dict[str, Any], sentence: str) -> None:
    placed = json.loads(json.dumps(arguments).replace("{tmp}", str(tmp_path)))
    refused = run(capsys, **placed)
    assert refused["failed"]
    assert sentence.replace("{tmp}", str(tmp_path)) in refused["msg"]
    assert list(tmp_path.iterdir()) == []
