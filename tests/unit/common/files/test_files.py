"""Files that are replaced in one step, records, and what is read of files."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import files
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import replace


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_the_mode_is_what_was_asked_for(tmp_path: Path, mode: int) -> None:
    replace(tmp_path / "record", b"new", mode)
    assert stat.S_IMODE((tmp_path / "record").stat().st_mode) == mode


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"old")
    (tmp_path / "record").symlink_to("other")
    replace(tmp_path / "record", b"new")
    assert (tmp_path / "other").read_bytes() == b"old"
    assert (tmp_path / "record").read_bytes() == b"new"


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    with pytest.raises(OSError, match="record"):
        replace(tmp_path / "record", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["record"]


def test_a_record_is_written_with_its_folder_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a/b/record"
    for number in (1, 2):
        files.write_record(path, {"b": number, "a": "é"})
    assert files.read_record(path) == {"b": 2, "a": "é"}
    # The same record is the same file.
    written = path.read_bytes()
    files.write_record(path, {"a": "é", "b": 2})
    assert path.read_bytes() == written
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("text", [None, b"", b"[1]", b"{", b"\xff"])
def test_what_is_no_record_is_none(tmp_path: Path, text: bytes | None) -> None:
    if text is not None:
        (tmp_path / "record").write_bytes(text)
    assert files.read_record(tmp_path / "record") is None


def test_a_record_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(TrainiumError, match=r"a/record cannot be written \(.*\); look at its disk"):
        files.write_record(tmp_path / "a/record", {})


@pytest.mark.parametrize(("size", "text"), [(0, ""), (3, "\ufffdnd"), (4, "énd"), (99, "begin énd")])
def test_the_end_of_a_file(tmp_path: Path, size: int, text: str) -> None:
    (tmp_path / "log").write_text("begin énd", encoding="utf-8")
    assert files.tail(str(tmp_path / "log"), size) == text


def test_a_text_that_is_not_there_is_empty(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\xff\n")
    assert files.read_text(tmp_path / "text") == "a\ufffd\n"
    assert files.read_text(tmp_path / "none") == files.read_text(tmp_path) == ""


def test_what_is_staged_is_ours_alone_until_it_is_moved(tmp_path: Path) -> None:
    staged = Path(files.staged(SimpleNamespace(tmpdir=str(tmp_path)), b"secret"))
    assert (staged.parent, staged.read_bytes(), stat.S_IMODE(staged.stat().st_mode)) == (tmp_path, b"secret", 0o600)


def test_a_difference_names_the_file_on_both_sides() -> None:
    shown = files.difference(Path("/etc/hosts"), "old", "new")
    assert (shown["before"], shown["after"]) == ("old", "new")
    assert shown["before_header"] == shown["after_header"] == "/etc/hosts"


def test_what_replaces_a_file_was_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """rename(2) is one step on one file system alone."""
    moved: list[tuple[Path, Path]] = []
    monkeypatch.setattr(files.os, "replace", lambda one, other: moved.append((Path(one), Path(other))))
    replace(tmp_path / "record", b"new")
    ((source, target),) = moved
    assert (source.parent, target) == (tmp_path, tmp_path / "record")
    # Nobody takes it for a file of theirs meanwhile.
    assert source.name.startswith(".")
