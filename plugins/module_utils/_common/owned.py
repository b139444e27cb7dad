# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Folders that are made for a user, and given to them, where that user may lay links."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import open_path, refuse_shared


def user_id(owner: str) -> int:
    """Raises TrainiumError."""
    if not owner:
        return os.geteuid()
    try:
        return int(owner) if owner.isdecimal() else pwd.getpwnam(owner).pw_uid
    except KeyError:
        raise TrainiumError(f"there is no user {owner} on this host; name one that it has") from None


def called(user: int) -> str:
    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"the user with the id {user}"


def why_not(path: str, error: OSError) -> str:
    said = f"{path} cannot be made a folder ({error.strerror})"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{said}; where an NFS lets root write nothing (root_squash), make it there for its user, who may"
    return f"{said}; remove or mend what is in its way"


def refuse_another(path: str, folder: int, found: os.stat_result, user: int) -> None:
    """What somebody else has put into a folder stays theirs when the folder is given away. Raises TrainiumError."""
    if found.st_uid not in (0, os.geteuid(), user):
        raise TrainiumError(
            f"{path} belongs to {called(found.st_uid)}, who may have put anything into it; look at it, then give it to "
            f"{called(user)} (chown), or give a path of theirs"
        )
    if found.st_uid != user and found.st_mode & stat.S_IWOTH and os.listdir(folder):
        raise TrainiumError(
            f"{path} is open to all, and there is something in it; look at it, and close it (chmod o-w)"
        )


def make(path: str, user: int, mode: int, closed: bool, check: bool) -> bool:
    """Whether something was to be changed. Raises TrainiumError, OSError."""
    look = refuse_shared if closed else None
    changed = False
    try:
        folder = open_path(path, look=look, local=True)
    except FileNotFoundError:
        if check:
            return True
        changed = True
        folder = open_path(path, (user, -1), look, local=True)
    try:
        found = os.fstat(folder)
        refuse_another(path, folder, found, user)
        differs = found.st_uid != user or stat.S_IMODE(found.st_mode) != mode
        if differs and not check:
            os.fchown(folder, user, -1)
            os.fchmod(folder, mode)
    finally:
        os.close(folder)
    return changed or differs


@contextmanager
def as_user(user: int) -> Iterator[None]:
    """Root works as that user meanwhile, for whom links lead nowhere where they could not go themselves.

    Only what this process does with files; a program that it starts has to be given away for good. Raises
    TrainiumError.
    """
    if os.geteuid() or not user:
        yield
        return
    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        raise TrainiumError(f"there is no user with the id {user} on this host; name one that it has") from None
    groups, group = os.getgroups(), os.getegid()
    os.setgroups(os.getgrouplist(entry.pw_name, entry.pw_gid))
    os.setegid(entry.pw_gid)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)
