# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A folder that is filled without following a link, and put in place without following one.

Python's own filters for archives do neither, and Debian 12 has none.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import (
    OURS,
    Folder,
    Owner,
    is_link_error,
    open_folder,
    unlink,
)
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import (
    UnsafeMemberError,
    disk_size,
    safe_mode,
)
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.fetch import write_all
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import HIDDEN


class Stage:
    """The folder ``stage`` of a transfer, and ``unpacking`` beside it for files that are not whole yet."""

    def __init__(self, destination: Folder, work: Folder, owner: Owner, shown: str) -> None:
        """``shown``: the path of the destination for the user. Raises TrainiumError, OSError."""
        self._owner, self._numbers = owner, itertools.count()
        self._destination, self._work, self._shown = destination, work, shown
        self._root, self._scratch = Folder(), Folder()
        try:
            self._root.descriptor = open_folder("stage", work.descriptor, OURS)
            self._scratch.descriptor = open_folder("unpacking", work.descriptor, OURS)
            if not self._root.is_private() or not self._scratch.is_private():
                raise TrainiumError(f"A folder below {shown}/{HIDDEN} belongs to others; delete it")
            for name in os.listdir(self._scratch.descriptor):
                os.unlink(name, dir_fd=self._scratch.descriptor)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave it as it is, but for what was not whole."""
        if self._scratch.descriptor >= 0:
            with suppress(OSError):
                os.rmdir("unpacking", dir_fd=self._work.descriptor)
        self._root.close()
        self._scratch.close()

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """The descriptor of a folder below the stage; what is missing on the way is made."""
        with ExitStack() as stack:
            try:
                found = stack.enter_context(self._root.at(path, self._owner))
            except OSError as error:
                if is_link_error(error):
                    raise UnsafeMemberError(f"what is on the way to {path!r} is no folder any more") from error
                raise
            yield found

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
        output = os.open(
            new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self._scratch.descriptor
        )
        try:
            written = 0
            with os.fdopen(output, "wb", buffering=0) as stream:
                for block in blocks:
                    check(written + len(block))
                    write_all(stream.fileno(), block, written)
                    written += len(block)
                os.fchown(stream.fileno(), *self._owner)
                os.fchmod(stream.fileno(), safe_mode(mode))
            self._adopt(self._scratch.descriptor, new, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=self._scratch.descriptor)
            raise

    def adopt(self, file: str, path: str) -> bool:
        """Take a file of the transfer that was fetched; False where there is none any more."""
        try:
            found = self._work.open(file, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            os.fchown(found, *self._owner)
            os.fchmod(found, 0o644)
        finally:
            os.close(found)
        folder, _slash, name = file.rpartition("/")
        with self._work.at(folder) as at:
            self._adopt(at, name, path)
        return True

    def _adopt(self, folder: int, name: str, path: str) -> None:
        parent, _slash, last = path.rpartition("/")
        with self.folder(parent) as at:
            os.replace(name, last, src_dir_fd=folder, dst_dir_fd=at)

    def symlink(self, path: str, target: str) -> None:
        parent, _slash, name = path.rpartition("/")
        with self.folder(parent) as at:
            unlink(name, at)
            os.symlink(target, name, dir_fd=at)
            os.chown(name, *self._owner, dir_fd=at, follow_symlinks=False)

    def hardlink(self, path: str, target: str) -> None:
        """``target`` is the path of a file below the stage."""
        there, _slash, known = target.rpartition("/")
        parent, _slash, name = path.rpartition("/")
        if path == target:
            return
        with self.folder(there) as source, self.folder(parent) as at:
            unlink(name, at)
            os.link(known, name, src_dir_fd=source, dst_dir_fd=at, follow_symlinks=False)

    def entries(self) -> list[str]:
        """What will be in the destination itself."""
        return sorted(os.listdir(self._root.descriptor))

    def size(self) -> tuple[int, int]:
        """Bytes on the disk and number of what is staged."""
        sizes = [
            disk_size(os.stat(name, dir_fd=at, follow_symlinks=False).st_size if name in files else 0)
            for _path, folders, files, at in os.fwalk(".", dir_fd=self._root.descriptor)
            for name in folders + files
        ]
        return sum(sizes), len(sizes)

    def put_in_place(self) -> None:
        """Everything to the destination, in its place where it is there; safe to repeat."""
        _move(self._root.descriptor, self._destination.descriptor, self._shown)


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
        with closing(Folder(open_folder(name, source))) as here, closing(Folder(open_folder(name, target))) as below:
            _move(here.descriptor, below.descriptor, there)
    except OSError as error:
        if is_link_error(error):
            raise TrainiumError(
                f"{there} is in the way of a folder of the dataset; move it away and run again"
            ) from error
        raise
    os.rmdir(name, dir_fd=source)
