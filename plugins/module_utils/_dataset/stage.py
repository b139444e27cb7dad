# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A folder that is filled without following a link, and put in place without following one.

The destination may belong to somebody who is not root, and root writes here. So each folder on the way is opened in the
one before it with O_NOFOLLOW (openat(2)), and what is made is made in the folder that was opened, whatever bears its
name by then. Python's own filters for archives do neither, and Debian 12 has none.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import (
    UnsafeMemberError,
    disk_size,
    safe_mode,
)

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _open_folder(name: str, parent: int | None = None, owner: tuple[int, int] | None = None) -> int:
    """The descriptor of a folder; made where it is missing, and then given to ``owner``. Raises OSError."""
    try:
        return os.open(name, FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if owner is None:
            raise
    made = True
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        made = False
    found = os.open(name, FOLDER, dir_fd=parent)
    if made:
        try:
            os.fchown(found, *owner)
        except BaseException:
            os.close(found)
            raise
    return found


def _is_link_error(error: OSError) -> bool:
    return error.errno in (errno.ELOOP, errno.ENOTDIR)


class Stage:
    """The folder ``stage`` of a transfer, and ``unpacking`` beside it for files that are not whole yet."""

    def __init__(self, destination: str, hidden: tuple[str, ...], owner: tuple[int, int]) -> None:
        """``hidden``: the folders from the destination to that of the transfer. Raises TrainiumError, OSError."""
        self._owner, self._numbers = owner, itertools.count()
        self._work = self._root = self._scratch = -1
        self._destination, self._shown = os.open(destination, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), destination
        try:
            self._work = os.dup(self._destination)
            for name in hidden:
                below = _open_folder(name, self._work)
                os.close(self._work)
                self._work = below
            self._root = _open_folder("stage", self._work, (-1, -1))
            self._scratch = _open_folder("unpacking", self._work, (-1, -1))
            for name in os.listdir(self._scratch):
                os.unlink(name, dir_fd=self._scratch)
            for found in (self._work, self._root, self._scratch):
                if os.fstat(found).st_uid not in (0, os.geteuid()):
                    raise TrainiumError(
                        f"A folder in {'/'.join((destination, *hidden))} belongs to somebody else; delete it"
                    )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave it as it is, but for what was not whole."""
        if self._scratch >= 0:
            with suppress(OSError):
                os.rmdir("unpacking", dir_fd=self._work)
        for found in (self._root, self._scratch, self._work, self._destination):
            if found >= 0:
                os.close(found)
        self._root = self._scratch = self._work = self._destination = -1

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """The descriptor of a folder below the stage; what is missing on the way is made."""
        found = os.dup(self._root)
        try:
            for part in path.split("/") if path else ():
                try:
                    below = _open_folder(part, found, self._owner)
                except OSError as error:
                    if _is_link_error(error):
                        raise UnsafeMemberError(f"{part!r} on the way to {path!r} is no folder any more") from error
                    raise
                os.close(found)
                found = below
            yield found
        finally:
            os.close(found)

    def has(self, path: str, size: int) -> bool:
        """Whether there is a file of this size."""
        parent, _slash, name = path.rpartition("/")
        with self.folder(parent) as at:
            try:
                found = os.stat(name, dir_fd=at, follow_symlinks=False)
            except FileNotFoundError:
                return False
            return stat.S_ISREG(found.st_mode) and found.st_size == size

    def write(self, path: str, mode: int, blocks: Iterable[bytes], check: Callable[[int], None]) -> None:
        """A file appears under its name when it is whole. ``check`` hears the bytes so far, and may raise."""
        new = f"{os.getpid()}-{next(self._numbers)}"
        output = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self._scratch)
        try:
            written = 0
            with os.fdopen(output, "wb", buffering=0) as stream:
                for block in blocks:
                    written += len(block)
                    check(written)
                    view = memoryview(block)
                    while view:
                        view = view[stream.write(view) :]
                os.fchown(stream.fileno(), *self._owner)
                os.fchmod(stream.fileno(), safe_mode(mode))
            self._adopt(self._scratch, new, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=self._scratch)
            raise

    def adopt(self, file: str, path: str) -> bool:
        """Take a file that was fetched; False where there is none any more."""
        try:
            found = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            os.fchown(found, *self._owner)
            os.fchmod(found, 0o644)
        finally:
            os.close(found)
        self._adopt(None, file, path)
        return True

    def _adopt(self, folder: int | None, name: str, path: str) -> None:
        parent, _slash, last = path.rpartition("/")
        with self.folder(parent) as at:
            os.replace(name, last, src_dir_fd=folder, dst_dir_fd=at)

    def symlink(self, path: str, target: str) -> None:
        parent, _slash, name = path.rpartition("/")
        with self.folder(parent) as at:
            _unlink(name, at)
            os.symlink(target, name, dir_fd=at)
            os.chown(name, *self._owner, dir_fd=at, follow_symlinks=False)

    def hardlink(self, path: str, target: str) -> None:
        """``target`` is the path of a file below the stage."""
        there, _slash, known = target.rpartition("/")
        parent, _slash, name = path.rpartition("/")
        if path == target:
            return
        with self.folder(there) as source, self.folder(parent) as at:
            _unlink(name, at)
            os.link(known, name, src_dir_fd=source, dst_dir_fd=at, follow_symlinks=False)

    def entries(self) -> list[str]:
        """What will be in the destination itself."""
        return sorted(os.listdir(self._root))

    def size(self) -> tuple[int, int]:
        """Bytes on the disk and number of what is staged."""
        sizes = [
            disk_size(os.stat(name, dir_fd=at, follow_symlinks=False).st_size if name in files else 0)
            for _path, folders, files, at in os.fwalk(".", dir_fd=self._root)
            for name in folders + files
        ]
        return sum(sizes), len(sizes)

    def put_in_place(self) -> None:
        """Everything to the destination, in its place where it is there; safe to repeat."""
        _move(self._root, self._destination, self._shown)


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _move(source: int, target: int, shown: str) -> None:
    for name in os.listdir(source):
        there = os.path.join(shown, name)
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode)
        try:
            found: int | None = os.stat(name, dir_fd=target, follow_symlinks=False).st_mode
        except FileNotFoundError:
            found = None
        if is_folder and found is not None:
            if not stat.S_ISDIR(found):
                raise TrainiumError(f"{there} is in the way of a folder of the dataset; move it away and run again")
            _merge(name, source, target, there)
        elif found is not None and stat.S_ISDIR(found):
            raise TrainiumError(f"{there} is a folder in the way of a file of the dataset; move it away and run again")
        else:
            os.replace(name, name, src_dir_fd=source, dst_dir_fd=target)


def _merge(name: str, source: int, target: int, there: str) -> None:
    try:
        here = _open_folder(name, source)
        try:
            below = _open_folder(name, target)
            try:
                _move(here, below, there)
            finally:
                os.close(below)
        finally:
            os.close(here)
    except OSError as error:
        if _is_link_error(error):
            raise TrainiumError(
                f"{there} is in the way of a folder of the dataset; move it away and run again"
            ) from error
        raise
    os.rmdir(name, dir_fd=source)
