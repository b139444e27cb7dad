# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Folders and files that are reached without following a link that somebody else laid.

The destination of a dataset and the folder of jobs may belong to somebody who is not root, and root writes there. So
each folder on the way is opened in the one before it with O_NOFOLLOW (openat(2)), and what is made is made in the
folder that was opened, whatever bears its name by then. A file that is made is new (O_EXCL), and one that is written on
is a plain file with one name only: a hard link would show no link.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_LINKS = 40
# How the names of their types begin (mountinfo(5)).
REMOTE = ("nfs", "lustre", "fuse", "cifs", "smb", "ceph", "9p", "virtiofs")
# User and group id, -1 for those of this process.
Owner = tuple[int, int]
OURS: Owner = (-1, -1)


def open_folder(name: str, parent: int, owner: Owner | None = None, flags: int = FOLDER) -> int:
    """The descriptor of a folder; made where it is missing, and then given to ``owner``. Raises OSError."""
    try:
        return os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        if owner is None:
            raise
    made = True
    # Others have to pass through it, whatever umask root has. To change its mode afterwards could change another's.
    kept = os.umask(0o022)
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        made = False
    finally:
        os.umask(kept)
    found = os.open(name, flags, dir_fd=parent)
    try:
        if made and owner != OURS:
            os.fchown(found, *owner)
    except BaseException:
        os.close(found)
        raise
    return found


def is_link_error(error: OSError) -> bool:
    return error.errno in (errno.ELOOP, errno.ENOTDIR)


def refuse_shared(folder: int) -> None:
    """Raise TrainiumError for a folder in which another user could put something else in the place of what is there."""
    found = os.fstat(folder)
    # A group of root's has root in it.
    others = stat.S_IWOTH | (stat.S_IWGRP if found.st_gid else 0)
    if found.st_uid not in (0, os.geteuid()) or (found.st_mode & others and not found.st_mode & stat.S_ISVTX):
        name = os.readlink(f"/proc/self/fd/{folder}")
        raise TrainiumError(
            f"in {name} another user could put something else in the place of what is there; close it (chown root, "
            "chmod go-w), or give a path of root's"
        )


def _target(name: str, folder: int, error: OSError, local: bool = False) -> str | None:
    """Where a link leads that may be followed; '' for another's, None for what is no link.

    The link itself is opened, and asked whose it is and where it leads: whoever may rename in the folder could put
    another in its place between two looks at its name.
    """
    link = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        there = os.fstat(link)
        if not stat.S_ISLNK(there.st_mode):
            return None
        trusted = there.st_uid in (0, os.geteuid()) and not (local and is_remote(link))
        return os.readlink("", dir_fd=link) if trusted else ""
    except FileNotFoundError:
        raise error from None
    finally:
        os.close(link)


def is_remote(descriptor: int) -> bool:
    """Whether something lies on a file system whose owners another machine, or a user's program, tells."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as stream:
        mount = dict(line.split(":", 1) for line in stream)["mnt_id"].strip()
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            fields = line.split()
            if fields[0] == mount:
                return fields[fields.index("-") + 1].startswith(REMOTE)
    # Of another namespace.
    return True


def open_path(
    path: str, owner: Owner | None = None, look: Callable[[int], None] | None = None, local: bool = False
) -> int:
    """The descriptor of a folder by its absolute path; the last one goes to ``owner`` where it has to be made.

    Links on the way are followed where they are root's or this user's own, with ``local`` only on this host's disks;
    ``look`` gets each folder on the way and the last one. Raises TrainiumError, OSError.
    """
    parts, links = path.rstrip("/").split("/")[::-1], 0
    # Folders on the way need not be readable.
    passing = FOLDER | os.O_PATH
    found = os.open("/", passing)
    try:
        while parts:
            part = parts.pop()
            if part in ("", "."):
                continue
            try:
                made = (OURS if parts else owner) if owner is not None else None
                below = open_folder(part, found, made, passing if parts else FOLDER)
            except OSError as error:
                target = _target(part, found, error, local) if is_link_error(error) and links < MOST_LINKS else None
                if target is None:
                    raise
                if not target:
                    whose = (
                        "on a file system of the network, where not even root's are followed, who may be another "
                        "machine's"
                        if local and is_remote(found)
                        else "of somebody else, who could have it lead anywhere"
                    )
                    raise TrainiumError(
                        f"{part!r} on the way to {path} is a link {whose}; give a path without it, or mount in its "
                        "place what it leads to"
                    ) from error
                parts, links = parts + target.rstrip("/").split("/")[::-1], links + 1
                below = os.open("/" if target.startswith("/") else ".", passing, dir_fd=found)
            os.close(found)
            found = below
            if look:
                look(found)
    except BaseException:
        os.close(found)
        raise
    return found


def open_file(path: str) -> int:
    """The descriptor of a plain file to read, by its absolute path; links are followed as by ``open_path``.

    Whoever may write in a folder from which root reads could otherwise have root read, and hand out, any file.
    Raises TrainiumError, OSError.
    """
    for _link in range(MOST_LINKS):
        folder, name = os.path.split(path)
        at = open_path(folder)
        try:
            found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
            if not stat.S_ISREG(os.fstat(found).st_mode):
                os.close(found)
                raise TrainiumError(f"{path} is no plain file; leave it out of the source")
            return found
        except OSError as error:
            target = _target(name, at, error) if error.errno == errno.ELOOP else None
            if target is None:
                raise
            if not target:
                raise TrainiumError(
                    f"{path} is a link of somebody else, who could have it lead anywhere; put the file itself there"
                ) from error
            path = os.path.join(folder, target)
        finally:
            os.close(at)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


class Folder:
    """A folder that was opened, and what lies below it; -1 where it is not open."""

    def __init__(self, descriptor: int = -1) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1

    def is_private(self) -> bool:
        """Whether nobody but root and this user may change what lies in it."""
        found = os.fstat(self.descriptor)
        return found.st_uid in (0, os.geteuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

    @contextmanager
    def at(self, path: str, owner: Owner | None = None) -> Iterator[int]:
        """The descriptor of a folder below this one; what is missing on the way is made for ``owner``."""
        found = os.dup(self.descriptor)
        try:
            for part in path.split("/") if path else ():
                below = open_folder(part, found, owner)
                os.close(found)
                found = below
            yield found
        finally:
            os.close(found)

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """The descriptor of a file; with O_CREAT a new one in the place of what was there. Raises OSError."""
        parent, _slash, name = path.rpartition("/")
        new = flags & os.O_CREAT
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_EXCL if new else os.O_NONBLOCK)
        with self.at(parent, OURS if new else None) as at:
            if new:
                unlink(name, at)
            found = os.open(name, flags, mode, dir_fd=at)
        look = os.fstat(found)
        if not stat.S_ISREG(look.st_mode) or look.st_nlink > 1:
            os.close(found)
            raise OSError(errno.ELOOP, "it is no plain file, or has another name as well", path)
        return found

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it, where there is one."""
        parent, _slash, name = path.rpartition("/")
        with suppress(FileNotFoundError), self.at(parent) as at:
            try:
                os.unlink(name, dir_fd=at)
            except (IsADirectoryError, PermissionError):
                # Its own way down follows no link either.
                shutil.rmtree(f"/proc/self/fd/{at}/{name}", ignore_errors=True)

    def read(self, path: str) -> dict[str, Any] | None:
        """The dictionary in a JSON file; None where there is none that can be read."""
        try:
            with os.fdopen(self.open(path, os.O_RDONLY), encoding="utf-8") as stream:
                found = json.load(stream)
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def write(self, path: str, content: Mapping[str, Any]) -> None:
        """A JSON file, in one step. Raises OSError."""
        with os.fdopen(self.open(f"{path}.new", os.O_WRONLY | os.O_CREAT, 0o644), "w", encoding="utf-8") as stream:
            json.dump(content, stream)
            stream.flush()
            os.fsync(stream.fileno())
        parent, _slash, name = path.rpartition("/")
        with self.at(parent) as at:
            os.replace(f"{name}.new", name, src_dir_fd=at, dst_dir_fd=at)


def unlink(name: str, folder: int) -> None:
    """Delete a file, where there is one."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
