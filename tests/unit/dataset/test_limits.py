"""The least that is too much, and how far a transfer is."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import archive_members, plan, progress
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import (
    Budget,
    Guard,
    Member,
    UnsafeMemberError,
    below,
    disk_size,
    inside,
    safe_mode,
)

LONG = "has a longer name than file systems take"


def path_of(length: int) -> str:
    """A path of so many bytes, of names that are short enough."""
    return "/".join(["n" * 199] * (length // 200) + ["n" * (length % 200)] if length % 200 else []).rstrip("/")


@pytest.mark.parametrize("name", ["n" * 255, "ü" * 127, "/".join("n" * 100), path_of(4095), "a\udcff"])
def test_names_that_a_file_system_takes(name: str) -> None:
    """limits.h of Linux: 255 bytes in a name, and 4096 in a path with the zero at its end."""
    assert inside(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("n" * 256, LONG),
        ("ü" * 128, LONG),
        ("/".join("n" * 101), LONG),
        (path_of(4096), LONG),
        ("a\ud800", "has a name that no file can have"),
    ],
)
def test_names_that_no_file_system_takes(name: str, why: str) -> None:
    with pytest.raises(UnsafeMemberError, match=why):
        inside(name)


def test_a_name_in_a_sentence_is_short() -> None:
    with pytest.raises(UnsafeMemberError) as error:
        inside("/" + "n" * 200)
    assert str(error.value) == f"the member '/{'n' * 199}...' has an absolute path"
    with pytest.raises(UnsafeMemberError) as error:
        inside("/" + "n" * 199)
    assert str(error.value) == f"the member '/{'n' * 199}' has an absolute path"


@pytest.mark.parametrize(("target", "good"), [("a" * 4095, True), ("a" * 4096, False), ("a\0", False)])
def test_targets_of_links(target: str, good: bool) -> None:
    member = Member("link", "symlink", 0, 0o777, target)
    if good:
        assert Guard().admit(member) == "link"
    else:
        with pytest.raises(UnsafeMemberError, match="which is no relative path"):
            Guard().admit(member)


def file(name: str, size: int = 0) -> Member:
    return Member(name, "file", size, 0o644)


def test_folders_count_as_files_do(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(3)
    guard.plain("a/b", 1, archive=False)
    guard.admit(file("c"))
    guard.admit(file("c"))
    with pytest.raises(UnsafeMemberError, match="its file system takes no more than 3 further files and folders, make"):
        guard.admit(file("d"))
    monkeypatch.setattr(archive_members, "MOST_PATHS", 1)
    guard = Guard()
    guard.admit(file("a"))
    with pytest.raises(UnsafeMemberError, match="the dataset has more than 1 files and folders"):
        guard.admit(file("b"))


def test_archives_may_hold_the_same_and_nothing_else() -> None:
    guard = Guard()
    guard.plain("sub/plain", 7, archive=False)
    guard.plain("sub/a.tar", 9, archive=True)
    # The archive itself is not put in place, and its name is free.
    assert guard.admit(file("a.tar", 1), "sub/a.tar") == "sub/a.tar"
    assert guard.admit(file("plain", 7), "sub/a.tar") == "sub/plain"
    with pytest.raises(UnsafeMemberError, match="'sub/plain' is there twice in the source, and not the same"):
        guard.admit(file("plain", 8), "sub/b.tar")
    # An archive of its own may have a name twice.
    guard.admit(file("x", 1), "sub/b.tar")
    assert guard.admit(file("x", 2), "sub/b.tar") == "sub/x"
    hard = Member("hard", "hardlink", 0, 0o644, "x")
    assert guard.admit(hard, "sub/b.tar") == "sub/hard"
    assert below("sub/b.tar", "") == "sub"


def test_links_to_other_places_are_not_the_same() -> None:
    guard = Guard()
    guard.admit(Member("link", "symlink", 0, 0o777, "a"), "a.tar")
    assert guard.admit(Member("link", "symlink", 0, 0o777, "a"), "b.tar") == "link"
    with pytest.raises(UnsafeMemberError, match="and not the same"):
        guard.admit(Member("link", "symlink", 0, 0o777, "b"), "c.tar")


@pytest.mark.parametrize("climb", ["..", "../..", "../../x"])
def test_a_link_climbs_to_the_folder_itself_and_no_higher(climb: str) -> None:
    depth = climb.count("..")
    folders = "/".join("f" * depth)
    assert Guard().admit(Member(f"{folders}/link", "symlink", 0, 0, climb)) == f"{folders}/link"
    shallow = "/".join("f" * (depth - 1))
    with pytest.raises(UnsafeMemberError, match="leads out of the folder, to"):
        Guard().admit(Member(f"{shallow}/link".lstrip("/"), "symlink", 0, 0, climb))


def test_room_is_set_aside_for_files_and_inodes() -> None:
    budget = Budget(plan.SPARE + 2 * disk_size(1), "/data")
    assert budget.take([file("a", 1)], "a.tar") == ""
    link = Member("link", "symlink", 10**12, 0, "a")
    problem = budget.take([file("a", 1), link], "b.tar")
    assert problem.startswith("The content of b.tar (5.0 KiB or more) needs 64.0 MiB in /data, and only 64.0 MiB are")
    # What was refused takes nothing.
    assert budget.take([file("a", 4096)], "c.tar") == ""
    assert budget.take([file("a", 0)], "d.tar")


@pytest.mark.parametrize(
    ("mode", "safe"), [(0, 0o600), (0o777, 0o755), (0o4755, 0o755), (0o444, 0o644), (0o070, 0o650), (0o111, 0o711)]
)
def test_a_mode_is_made_safe(mode: int, safe: int) -> None:
    assert safe_mode(mode) == safe


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ({}, "starting"),
        ({"phase": "checking", "done": 2048}, "checking 2.0 KiB"),
        ({"phase": "fetching", "done": 3, "total": 2}, "fetching 3 B of 2 B (100%)"),
        ({"phase": "fetching", "done": 0, "total": 1}, "fetching 0 B of 1 B (0%)"),
        ({"phase": "fetching", "done": 4, "total": 4, "rate": 2.0}, "fetching 4 B of 4 B (100%), 2 B/s"),
        ({"phase": "fetching", "done": 1, "total": 9, "rate": 0.5}, "fetching 1 B of 9 B (11%), 0 B/s, 16 s left"),
        ({"phase": "fetching", "note": "trying again"}, "fetching, trying again"),
    ],
)
def test_how_far_a_transfer_is(told: dict[str, Any], line: str) -> None:
    assert progress.line(told) == line


@pytest.mark.parametrize(
    ("samples", "rate"),
    [
        ([], 0),
        ([(0.0, 5)], 0),
        ([(0.0, 0), (0.0, 5)], 0),
        ([(0.0, 0), (20.0, 100)], 5),
        # The one before the last counts however old it is.
        ([(0.0, 0), (1.0, 10), (101.0, 210)], 2),
        ([(0.0, 9), (1.0, 3)], 0),
        ([(0.0, 0), (79.0, 10), (80.0, 20), (99.5, 215)], 10),
    ],
)
def test_the_rate_of_the_last_seconds(samples: list[tuple[float, int]], rate: float) -> None:
    assert progress.rate(samples) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("size", "text"),
    [(1023, "1023 B"), (1024, "1.0 KiB"), (1024**2, "1.0 MiB"), (1024**4, "1.0 TiB"), (5000 * 1024**4, "5000.0 TiB")],
)
def test_sizes_for_readers(size: int, text: str) -> None:
    assert plan.human(size) == text


@pytest.mark.parametrize(
    ("text", "size"), [("", 0), ("60G", 60 * 1024**3), ("1.5 TiB", 3 * 2**39), ("2KB", 2048), (" 7 M ", 7 * 1024**2)]
)
def test_sizes_of_options(text: str, size: int) -> None:
    assert plan.parse_size(text) == size


@pytest.mark.parametrize("name", ["a" * 100, "0._-"])
def test_names_of_datasets(name: str) -> None:
    assert plan.checked_name(name) == name


@pytest.mark.parametrize("name", ["a" * 101, "", ".a", "a b", "a/b"])
def test_what_is_no_name_of_a_dataset(name: str) -> None:
    with pytest.raises(ValueError, match="is not valid: use at most 100 letters"):
        plan.checked_name(name)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("s3://bucket/a/", "a"),
        ("https://host/a%20b?c=d", "a_b"),
        ("/", "dataset"),
        ("/._x", "x"),
        ("/" + "a" * 101, "a" * 100),
    ],
)
def test_the_name_after_a_source(source: str, name: str) -> None:
    assert plan.default_name(source) == name
