# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Unpacks archives below a folder, several members at a time; what is there whole is not written again."""

from __future__ import annotations

import os
import stat
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import (
    Guard,
    Member,
    UnsafeMemberError,
    inside,
    safe_mode,
    total_size,
)
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.fetch import disk_error

BLOCK = 1024 * 1024
# A member of a compressed tar that is larger is written by the reader itself instead of being kept in memory.
BUFFERED = 8 * 1024 * 1024
WRITERS = 8
# Members that wait for a writer, at most; times BUFFERED this is the memory that a compressed tar takes.
WAITING = 16
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
Room = Callable[[int], None]
Count = Callable[[int], None]


class Unpack:
    """Unpacks one archive to ``folder``, which nobody else writes to."""

    def __init__(self, folder: str, owner: tuple[int, int], count: Count, room: Room) -> None:
        """``owner`` is (uid, gid), -1 to leave one; ``count`` hears bytes written or skipped; ``room`` refuses."""
        self._folder, self._owner, self._count, self._room = folder, owner, count, room
        self._links: list[tuple[str, Member]] = []
        self._slots = threading.Semaphore(WAITING)
        self._failed = threading.Event()
        self.files = 0

    def run(self, path: str, shown: str) -> None:
        """Unpack ``path``, named ``shown`` to the user. Raises TrainiumError."""
        try:
            os.makedirs(self._folder, exist_ok=True)
            with ThreadPoolExecutor(WRITERS) as pool:
                if zipfile.is_zipfile(path) and not tarfile.is_tarfile(path):
                    self._zip(path, pool)
                else:
                    self._tar(path, pool)
            self._make_links()
        except UnsafeMemberError as error:
            raise TrainiumError(f"{shown} is refused: {error}; nothing of it was put in place") from error
        except DAMAGED as error:
            raise TrainiumError(
                f"{shown} is damaged or no archive: {error or type(error).__name__}; check the source"
            ) from error
        except OSError as error:
            if isinstance(error, (tarfile.ReadError, zlib.error)) or error.errno is None:
                raise TrainiumError(f"{shown} is damaged: {error}; check the source") from error
            raise disk_error(error, f"the content of {shown}") from error

    # --- tar ---

    def _tar(self, path: str, pool: ThreadPoolExecutor) -> None:
        try:
            with tarfile.open(path, "r:") as archive:
                found = list(archive)
                plan = self._admit([(_of_tar(item), item) for item in found])
                with open(path, "rb") as data:
                    jobs = [
                        self._submit(pool, self._copy_range, target, member, data.fileno(), item.offset_data)
                        for target, member, item in plan
                        if not item.issparse()
                    ]
                    for target, member, item in plan:
                        if item.issparse():
                            self._stream(target, member, archive.extractfile(item))
                    _wait(jobs)
            return
        except tarfile.ReadError:
            if self._links or self.files:
                raise
        self._compressed_tar(path, pool)

    def _compressed_tar(self, path: str, pool: ThreadPoolExecutor) -> None:
        guard, jobs = Guard(), []
        with tarfile.open(path, "r|*") as archive:
            for item in archive:
                member = _of_tar(item)
                target = self._admit_one(guard, member)
                if not target:
                    continue
                source = archive.extractfile(item)
                if source is not None and member.size <= BUFFERED and not item.issparse():
                    jobs.append(self._submit(pool, self._write, target, member, source.read()))
                else:
                    self._stream(target, member, source)
                if self._failed.is_set():
                    break
        _wait(jobs)

    def _copy_range(self, target: str, member: Member, source: int, offset: int) -> None:
        def blocks() -> Iterator[bytes]:
            at, end = offset, offset + member.size
            while at < end:
                block = os.pread(source, min(BLOCK, end - at), at)
                if not block:
                    raise EOFError(f"it ends within {member.name!r}")
                at += len(block)
                yield block

        self._put(target, member, blocks())

    # --- zip ---

    def _zip(self, path: str, pool: ThreadPoolExecutor) -> None:
        with zipfile.ZipFile(path) as archive:
            pairs = []
            for item in archive.infolist():
                if item.flag_bits & 1:
                    raise UnsafeMemberError(f"the member {item.filename!r} is encrypted")
                pairs.append((_of_zip(archive, item), item))
            plan = self._admit(pairs)

            def unpack(target: str, member: Member, item: zipfile.ZipInfo) -> None:
                with archive.open(item) as source:
                    self._stream(target, member, source)

            _wait([self._submit(pool, unpack, target, member, item) for target, member, item in plan])

    # --- both ---

    def _admit(self, pairs: list[tuple[Member, Any]]) -> list[tuple[str, Member, Any]]:
        """All members at once, before anything is written: (path, member, the archive's own item) of the files."""
        guard = Guard()
        # A hostile member is found before a folder is made.
        for member, _item in pairs:
            guard.admit(member)
        self._room(total_size(member for member, _item in pairs))
        guard, plan = Guard(), {}
        for member, item in pairs:
            target = self._admit_one(guard, member)
            if target:
                # The last of a name wins, as with tar, and two writers never meet.
                plan[target] = (target, member, item)
        return list(plan.values())

    def _admit_one(self, guard: Guard, member: Member) -> str:
        """Where a file goes; folders are made, links kept for the end, and '' returned for both."""
        path = guard.admit(member)
        target = os.path.join(self._folder, path)
        if member.kind == "directory":
            self._make_folder(path)
            return ""
        self._make_folder(os.path.dirname(path))
        if member.kind != "file":
            self._links.append((path, member))
            return ""
        self.files += 1
        return target

    def _make_folder(self, path: str) -> None:
        at = self._folder
        for part in path.split("/") if path else ():
            at = os.path.join(at, part)
            try:
                os.mkdir(at, 0o755)
                os.chown(at, *self._owner)
            except FileExistsError:
                continue

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[..., None], *arguments: Any) -> Future[None]:
        self._slots.acquire()

        def run() -> None:
            try:
                if not self._failed.is_set():
                    work(*arguments)
            except BaseException:
                self._failed.set()
                raise
            finally:
                self._slots.release()

        return pool.submit(run)

    def _write(self, target: str, member: Member, content: bytes) -> None:
        if len(content) != member.size:
            raise EOFError(f"it ends within {member.name!r}")
        self._put(target, member, iter([content]))

    def _stream(self, target: str, member: Member, source: IO[bytes] | None) -> None:
        def blocks() -> Iterator[bytes]:
            block = source.read(BLOCK) if source else b""
            while block:
                yield block
                block = source.read(BLOCK) if source else b""

        self._put(target, member, blocks())

    def _put(self, target: str, member: Member, blocks: Iterator[bytes]) -> None:
        """A file appears under its name when it is whole: what has its name and size needs no second writing."""
        if (
            os.path.lexists(target)
            and stat.S_ISREG(os.lstat(target).st_mode)
            and os.lstat(target).st_size == member.size
        ):
            self._count(member.size)
            return
        new = f"{target}.trainium-new"
        if os.path.lexists(new):
            os.unlink(new)
        output = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        written = 0
        with os.fdopen(output, "wb", buffering=0) as stream:
            for block in blocks:
                view = memoryview(block)
                while view:
                    view = view[stream.write(view) :]
                written += len(block)
                self._count(len(block))
                # A zip that lies about its sizes would fill the disk.
                if written > member.size:
                    raise EOFError(f"{member.name!r} is larger than the archive says")
            if written != member.size:
                raise EOFError(f"it ends within {member.name!r}")
            os.fchown(stream.fileno(), *self._owner)
            os.fchmod(stream.fileno(), safe_mode(member.mode))
        os.replace(new, target)

    def _make_links(self) -> None:
        for path, member in self._links:
            target = os.path.join(self._folder, path)
            if os.path.lexists(target):
                os.unlink(target)
            if member.kind == "hardlink":
                os.link(os.path.join(self._folder, inside(member.target)), target)
            else:
                os.symlink(member.target, target)
                os.lchown(target, *self._owner)


def _wait(jobs: list[Future[None]]) -> None:
    for job in jobs:
        job.result()


def _of_tar(item: tarfile.TarInfo) -> Member:
    kind = (
        "file"
        if item.isreg()
        else "directory"
        if item.isdir()
        else "symlink"
        if item.issym()
        else "hardlink"
        if item.islnk()
        else "other"
    )
    return Member(item.name, kind, item.size if kind == "file" else 0, item.mode, item.linkname)


def _of_zip(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> Member:
    mode = item.external_attr >> 16
    kind = "directory" if item.is_dir() else "symlink" if stat.S_ISLNK(mode) else "file"
    if not item.is_dir() and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFLNK):
        kind = "other"
    target = ""
    if kind == "symlink":
        if item.file_size > 4096:
            raise UnsafeMemberError(f"the link {item.filename!r} has a target of {item.file_size} characters")
        target = archive.read(item).decode("utf-8", "surrogateescape")
    return Member(item.filename, kind, item.file_size if kind == "file" else 0, stat.S_IMODE(mode) or 0o644, target)
