"""A folder that is filled and put in place, over what is there already."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import OURS, Folder
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import disk_size
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.stage import Stage


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """The destination and the folder of the work."""
    for name in ("destination", "work"):
        (tmp_path / name).mkdir(mode=0o700)
    yield tmp_path / "destination", tmp_path / "work"


@pytest.fixture
def stage(place: tuple[Path, Path]) -> Iterator[Stage]:
    destination, work = (Folder(os.open(path, os.O_RDONLY)) for path in place)
    made = Stage(destination, work, OURS, str(place[0]))
    yield made
    made.close()
    destination.close()
    work.close()


def written(stage: Stage, path: str, content: bytes = b"x", mode: int = 0o644) -> None:
    stage.write(path, mode, iter([content]), lambda _size: None)


def test_a_file_appears_whole_with_its_mode(stage: Stage, place: tuple[Path, Path]) -> None:
    _destination, work = place
    sizes: list[int] = []

    def check(size: int) -> None:
        sizes.append(size)
        assert not (work / "stage" / "a" / "b").exists()

    stage.write("a/b", 0o4711, iter([b"12", b"345"]), check)
    assert sizes == [2, 5]
    assert (work / "stage" / "a" / "b").read_bytes() == b"12345"
    assert stat.S_IMODE((work / "stage" / "a" / "b").stat().st_mode) == 0o711
    assert stage.has("a/b", 5)
    assert not stage.has("a/b", 4)
    assert not stage.has("a/c", 0)
    # A folder is no file, whatever its size is.
    assert not stage.has("a", (work / "stage" / "a").stat().st_size)
    # Nor is a link to one.
    stage.symlink("a/link", "b")
    assert not stage.has("a/link", 5)


def test_a_file_that_fails_leaves_nothing(stage: Stage, place: tuple[Path, Path]) -> None:
    def check(_size: int) -> None:
        raise EOFError("too long")

    with pytest.raises(EOFError):
        stage.write("a", 0o644, iter([b"12"]), check)
    assert list((place[1] / "unpacking").iterdir()) == []
    assert stage.entries() == []


def test_links_replace_what_had_their_name(stage: Stage, place: tuple[Path, Path]) -> None:
    written(stage, "a/file", b"content")
    written(stage, "a/link", b"old")
    stage.symlink("a/link", "file")
    stage.hardlink("hard", "a/file")
    stage.hardlink("a/file", "a/file")
    root = place[1] / "stage"
    assert os.readlink(root / "a" / "link") == "file"
    assert (root / "hard").stat().st_ino == (root / "a" / "file").stat().st_ino
    assert stage.entries() == ["a", "hard"]


def test_what_is_staged_is_counted_as_the_disk_has_it(stage: Stage) -> None:
    assert stage.size() == (0, 0)
    written(stage, "a/b", b"x" * 5000)
    stage.symlink("c", "a/b")
    size, number = stage.size()
    assert number == 3
    assert size == disk_size(5000) + disk_size(0) + disk_size(3)


def test_a_fetched_file_is_taken_where_it_is_there(stage: Stage, place: tuple[Path, Path]) -> None:
    (place[1] / "parts").mkdir(mode=0o700)
    (place[1] / "parts" / "a").write_bytes(b"x")
    (place[1] / "parts" / "a").chmod(0o600)
    assert stage.adopt("parts/a", "below/b") is True
    assert stat.S_IMODE((place[1] / "stage" / "below" / "b").stat().st_mode) == 0o644
    assert stage.adopt("parts/a", "below/b") is False


def test_it_is_put_over_what_is_there(stage: Stage, place: tuple[Path, Path]) -> None:
    destination, work = place
    (destination / "a").mkdir()
    (destination / "a" / "kept").write_bytes(b"kept")
    (destination / "a" / "same").write_bytes(b"old")
    (destination / "link").symlink_to("elsewhere")
    for path in ("a/same", "a/new/deep", "link"):
        written(stage, path, b"new")
    stage.put_in_place()
    found = {str(path.relative_to(destination)): path.read_bytes() for path in destination.rglob("*") if path.is_file()}
    assert found == {"a/kept": b"kept", "a/same": b"new", "a/new/deep": b"new", "link": b"new"}
    assert list((work / "stage").iterdir()) == []
    stage.put_in_place()


@pytest.mark.parametrize(
    ("there", "staged", "said"),
    [
        ("a", "a/b", "a is in the way of a folder of the dataset; move it away and run again"),
        ("a/b", "a", "a is a folder in the way of a file of the dataset; move it away and run again"),
        ("a/b/c", "a/b", "a/b is a folder in the way of a file of the dataset"),
    ],
)
def test_what_is_in_the_way_is_named(
    stage: Stage, place: tuple[Path, Path], there: str, staged: str, said: str
) -> None:
    (place[0] / there).parent.mkdir(parents=True, exist_ok=True)
    (place[0] / there).write_bytes(b"theirs")
    written(stage, staged)
    with pytest.raises(TrainiumError) as error:
        stage.put_in_place()
    assert said in str(error.value)
    assert (place[0] / there).read_bytes() == b"theirs"


def test_what_was_not_whole_is_deleted_by_the_next(place: tuple[Path, Path]) -> None:
    there, work = place
    (work / "unpacking").mkdir(mode=0o700)
    (work / "unpacking" / "1-0").write_bytes(b"half")
    (work / "stage").mkdir(mode=0o700)
    (work / "stage" / "kept").write_bytes(b"x")
    destination, folder = (Folder(os.open(path, os.O_RDONLY)) for path in place)
    made = Stage(destination, folder, OURS, str(there))
    assert list((work / "unpacking").iterdir()) == []
    assert made.entries() == ["kept"]
    made.close()
    # What was put together stays for the next run.
    assert sorted(path.name for path in work.iterdir()) == ["stage"]
    (work / "stage").chmod(0o777)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TrainiumError, match=f"^A folder below {there}/.trainium-dataset belongs to others"):
        Stage(destination, folder, OURS, str(there))
    assert len(os.listdir("/proc/self/fd")) == before
    destination.close()
    folder.close()
