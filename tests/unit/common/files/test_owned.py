"""Folders that are made for a user: who that is, what is said where it cannot be, and as whom root works."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import owned
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

from tests.unit.common.files.test_folders import NOBODY, nothing_stays_open, root

__all__ = ["nothing_stays_open"]  # a fixture
UNKNOWN = 3_000_000_001


def test_a_user_is_named_by_name_or_number_or_is_who_runs() -> None:
    assert owned.user_id("") == os.geteuid()
    assert owned.user_id("12345") == 12345
    assert owned.user_id("nobody") == pwd.getpwnam("nobody").pw_uid != os.geteuid()
    with pytest.raises(TrainiumError, match="there is no user nobody-here on this host; name one that it has"):
        owned.user_id("nobody-here")


def test_one_that_the_host_does_not_know_is_called_by_number() -> None:
    assert owned.called(0) == "the user root"
    assert owned.called(UNKNOWN) == f"the user with the id {UNKNOWN}"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.EACCES, "root_squash"),
        (errno.EPERM, "root_squash"),
        (errno.EROFS, "root_squash"),
        (errno.ENOTDIR, "remove or mend what is in its way"),
        (errno.ENOSPC, "remove or mend what is in its way"),
    ],
)
def test_only_what_is_forbidden_is_told_of_nfs(code: int, advice: str) -> None:
    said = owned.why_not("/shared/a", OSError(code, os.strerror(code)))
    assert said.startswith(f"/shared/a cannot be made a folder ({os.strerror(code)}); ")
    assert advice in said


@root
@pytest.mark.parametrize("new", [True, False])
def test_a_folder_has_its_owner_and_mode_once_it_is_made(tmp_path: Path, new: bool) -> None:
    path = tmp_path / "a"
    if not new:
        path.mkdir()
    before = sorted(tmp_path.iterdir())
    assert owned.make(str(path), NOBODY, 0o750, closed=False, check=True)
    assert sorted(tmp_path.iterdir()) == before
    assert owned.make(str(path), NOBODY, 0o750, closed=False, check=False)
    assert (path.stat().st_uid, path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (NOBODY, 0, 0o750)
    assert not owned.make(str(path), NOBODY, 0o750, closed=False, check=False)


@root
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(("user", "mode"), [(NOBODY, 0o755), (0, 0o700)])
def test_one_thing_that_differs_is_a_change(tmp_path: Path, check: bool, user: int, mode: int) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    assert owned.make(str(tmp_path / "a"), user, mode, closed=False, check=check)
    found = (tmp_path / "a").stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == ((0, 0o755) if check else (user, mode))


@root
def test_what_is_made_at_once_as_it_is_to_be_is_a_change_as_well(tmp_path: Path) -> None:
    assert owned.make(str(tmp_path / "a"), 0, 0o755, closed=False, check=False)
    assert not owned.make(str(tmp_path / "a"), 0, 0o755, closed=False, check=False)


@root
def test_a_user_s_own_open_folder_stays_theirs_with_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a/full").mkdir(parents=True)
    os.chown(tmp_path / "a", NOBODY, NOBODY)
    (tmp_path / "a").chmod(0o777)
    assert owned.make(str(tmp_path / "a"), NOBODY, 0o755, closed=False, check=False)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


@root
def test_root_works_as_a_user_meanwhile_and_has_all_its_rights_again(tmp_path: Path) -> None:
    """A file that it makes is the user's, one that the user may not read is not read; and its groups come back."""
    tmp_path.chmod(0o777)
    (tmp_path / "secret").touch(mode=0o640)
    # By its descriptor, as pytest's own folders on the way are closed to others.
    at, mine = os.open(tmp_path, os.O_RDONLY), (os.geteuid(), os.getegid(), os.getgroups())
    entry = pwd.getpwuid(NOBODY)
    os.setgroups([0, 4, 27])
    try:
        with pytest.raises(PermissionError), owned.as_user(NOBODY):
            assert (os.geteuid(), os.getegid()) == (NOBODY, entry.pw_gid)
            assert os.getgroups() == os.getgrouplist(entry.pw_name, entry.pw_gid)
            os.close(os.open("made", os.O_WRONLY | os.O_CREAT, dir_fd=at))
            os.open("secret", os.O_RDONLY, dir_fd=at)
        assert (os.geteuid(), os.getegid(), os.getgroups()) == (*mine[:2], [0, 4, 27])
    finally:
        os.setgroups(mine[2])
        os.close(at)
    made = (tmp_path / "made").stat()
    assert (made.st_uid, made.st_gid) == (NOBODY, entry.pw_gid)


@root
def test_nobody_works_as_one_whom_the_host_does_not_know() -> None:
    with pytest.raises(TrainiumError, match=f"no user with the id {UNKNOWN} on this host"), owned.as_user(UNKNOWN):
        pytest.fail("it went on")
    assert os.geteuid() == 0


@root
def test_whoever_is_not_root_and_root_for_itself_work_as_they_are() -> None:
    with owned.as_user(0):
        assert os.geteuid() == 0
    os.seteuid(NOBODY)
    try:
        with owned.as_user(UNKNOWN):
            assert os.geteuid() == NOBODY
    finally:
        os.seteuid(0)
