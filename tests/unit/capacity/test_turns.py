"""One after the other on a machine, by a lock that nobody else can lay a trap for."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import run_turn
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

from tests.open_files import open_paths


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def is_free(path: Path) -> bool:
    """Whether another who opens the file would get the lock."""
    with path.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_the_same_words_are_the_same_lock_and_others_another(folder: Path) -> None:
    lock = run_turn.lock_file("block", "us-west-2", "c1", "a")
    assert lock == run_turn.lock_file("block", "us-west-2", "c1", "a")
    assert (lock.parent, str(os.getuid()) in lock.name) == (folder, True)
    others = [("block", "us-west-2", "c1", "b"), ("block", "us-east-1", "c1", "a"), ("block", "us-west-2", "c1")]
    assert len({lock, *(run_turn.lock_file(*other) for other in others)}) == 4


def test_nobody_else_is_in_it_meanwhile_and_it_ends_with_a_failure_too() -> None:
    lock = run_turn.lock_file("a")
    for failure in (None, ValueError("no")):
        try:
            with run_turn.alone("a"), run_turn.alone("b"):
                assert not is_free(lock)
                if failure:
                    raise failure
        except ValueError as error:
            assert error is failure
        assert is_free(lock)
    # Of a user's own, since whoever opens it could hold it for ever.
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600


def test_no_descriptor_is_left() -> None:
    before = open_paths()
    with run_turn.alone("a"):
        assert open_paths() == sorted([*before, str(run_turn.lock_file("a"))])
    assert open_paths() == before


def test_a_link_in_its_place_is_not_followed(folder: Path) -> None:
    lock = run_turn.lock_file("a")
    lock.symlink_to("victim")
    with (
        pytest.raises(TrainiumError, match=r"\.lock cannot be locked: .*; remove it, or set TMPDIR"),
        run_turn.alone("a"),
    ):
        pytest.fail("it went on")
    assert not (folder / "victim").exists()
