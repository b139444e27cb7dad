"""What lies below a folder that was opened: written, read, deleted, and whose it is."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import folders
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import Folder

from tests.unit.common.files.test_folders import NOBODY, nothing_stays_open, root

__all__ = ["nothing_stays_open"]  # a fixture


@pytest.fixture
def folder(tmp_path: Path, nothing_stays_open: None) -> Iterator[Folder]:
    made = Folder(os.open(tmp_path, os.O_RDONLY))
    yield made
    made.close()


def test_a_record_is_written_in_one_step_and_read_again(tmp_path: Path, folder: Folder) -> None:
    folder.write("a/b/state.json", {"done": 1})
    folder.write("a/b/state.json", {"done": 2})
    assert folder.read("a/b/state.json") == {"done": 2}
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["state.json"]
    assert stat.S_IMODE((tmp_path / "a/b/state.json").stat().st_mode) == 0o644 & ~_umask()


def _umask() -> int:
    kept = os.umask(0)
    os.umask(kept)
    return kept


@pytest.mark.parametrize("text", [None, "", "[1]", '{"a": ', "\udcff"])
def test_what_is_no_record_is_none(tmp_path: Path, folder: Folder, text: str | None) -> None:
    if text is not None:
        (tmp_path / "state.json").write_bytes(text.encode(errors="surrogateescape"))
    assert folder.read("state.json") is None


def test_a_new_file_is_its_user_s_and_takes_the_place_of_a_link(tmp_path: Path, folder: Folder) -> None:
    (tmp_path / "victim").write_text("kept", encoding="utf-8")
    (tmp_path / "part").symlink_to("victim")
    os.close(folder.open("part", os.O_WRONLY | os.O_CREAT))
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "kept"
    assert stat.S_IMODE((tmp_path / "part").lstat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["another name", "link", "pipe"])
def test_what_is_not_one_plain_file_is_not_written_on(tmp_path: Path, folder: Folder, kind: str) -> None:
    (tmp_path / "victim").write_text("kept", encoding="utf-8")
    if kind == "another name":
        os.link(tmp_path / "victim", tmp_path / "part")
    elif kind == "link":
        (tmp_path / "part").symlink_to("victim")
    else:
        os.mkfifo(tmp_path / "part")
    with pytest.raises(OSError, match=r"no plain file|symbolic links") as found:
        folder.open("part", os.O_RDWR)
    assert found.value.errno == errno.ELOOP


def test_a_file_or_a_folder_is_deleted_and_what_is_not_there_is_no_failure(tmp_path: Path, folder: Folder) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/file").touch()
    for path in ("a/file", "a/b", "a/none", "none/more"):
        folder.delete(path)
    assert list((tmp_path / "a").iterdir()) == []


def test_a_link_is_deleted_and_not_what_it_leads_to(tmp_path: Path, folder: Folder) -> None:
    (tmp_path / "kept/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("kept")
    folder.delete("link")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept/below").is_dir()


@root
@pytest.mark.parametrize(
    ("owner", "mode", "private"),
    [(0, 0o755, True), (0, 0o700, True), (0, 0o775, False), (0, 0o757, False), (NOBODY, 0o700, False)],
)
def test_private_is_what_nobody_else_may_change(
    tmp_path: Path, folder: Folder, owner: int, mode: int, private: bool
) -> None:
    tmp_path.chmod(mode)
    os.chown(tmp_path, owner, owner)
    assert folder.is_private() == private


def test_a_folder_that_is_closed_is_closed_once(tmp_path: Path) -> None:
    made = Folder(os.open(tmp_path, os.O_RDONLY))
    made.close()
    assert made.descriptor == -1
    made.close()
    Folder().close()


@root
@pytest.mark.parametrize(
    ("owner", "group", "mode", "shared"),
    [
        (0, 0, 0o755, False),
        # A group of root's has root in it.
        (0, 0, 0o775, False),
        (0, NOBODY, 0o775, True),
        (0, NOBODY, 0o755, False),
        (0, NOBODY, 0o1775, False),
        (0, 0, 0o757, True),
        (0, 0, 0o1777, False),
        (NOBODY, 0, 0o755, True),
        (NOBODY, 0, 0o1777, True),
    ],
)
def test_shared_is_where_another_could_put_something_else(
    tmp_path: Path, folder: Folder, owner: int, group: int, mode: int, shared: bool
) -> None:
    os.chown(tmp_path, owner, group)
    tmp_path.chmod(mode)
    said = ""
    try:
        folders.refuse_shared(folder.descriptor)
    except TrainiumError as error:
        said = str(error)
    assert said.startswith(f"in {tmp_path} another user could put something else") == shared == bool(said)
