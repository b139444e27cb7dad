# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Unpacks the archives of a source to its stage, several members at a time; what is there whole is not written again.

Archives come from anywhere, and tarfile and zipfile believe what a header says: each is judged here before it
is read on.
"""

from __future__ import annotations

import os
import stat
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from tarfile import InvalidHeaderError, TruncatedHeaderError  # type: ignore[attr-defined]
from typing import IO, Any, NoReturn

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import (
    MOST_PATHS,
    Budget,
    Guard,
    Member,
    UnsafeMemberError,
    below,
    inside,
)
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.fetch import disk_error
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.stage import Stage

BLOCK = 1024 * 1024
# What one block of bzip2 or LZMA becomes is not limited by zipfile; the less is read at a time, the less that can be.
SMALL_BLOCK = 4096
# A member of a compressed tar that is larger is written by the reader itself instead of being kept in memory.
BUFFERED = 8 * 1024 * 1024
WRITERS = 8
# Members that wait for a writer, at most; times BUFFERED this is the memory that a compressed tar takes.
WAITING = 16
# Headers that tarfile keeps in memory whole, for long names and the like, in bytes.
LONGEST_HEADER = 1024 * 1024
LONGEST_TARGET = 4096
LONG_HEADERS = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)
# The last ones are what tarfile and zipfile raise for headers that nobody wrote by accident.
DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, LookupError, ArithmeticError),
)
Count = Callable[[int], None]


LONGEST_GLOBAL_HEADER = 4096
GLOBAL_HEADER = tarfile.XGLTYPE
# Of a zip with members, and of an empty one.
ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")


class Header(tarfile.TarInfo):
    """A header of a tar archive that is judged before tarfile acts on it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Header:
        """As tarfile has it. Raises UnsafeMemberError as well."""
        made = super().frombuf(buf, encoding, errors)
        # tarfile would go back in the file, and never end (CVE-2025-8194).
        if made.size < 0:
            raise UnsafeMemberError(f"the member {made.name[:100]!r} has a size below zero")
        if made.type in LONG_HEADERS and made.size > LONGEST_HEADER:
            raise UnsafeMemberError(f"it has a header of {made.size} bytes")
        # Its keys are copied into every member that follows; git archive writes one of some 50 bytes.
        if made.type == tarfile.XGLTYPE and made.size > LONGEST_GLOBAL_HEADER:
            raise UnsafeMemberError(f"it has a global header of {made.size} bytes")
        if made.type == tarfile.GNUTYPE_SPARSE:
            raise _sparse(made.name)
        return made

    @classmethod
    def fromtarfile(cls, tarfile: Any) -> Header:
        """As tarfile has it, for which a damaged header is the end, unless it is the first. Raises ReadError."""
        try:
            return super().fromtarfile(tarfile)
        except TruncatedHeaderError as error:
            _damaged(tarfile, "it ends within a header", error)
        except InvalidHeaderError as error:
            _damaged(tarfile, f"its header at byte {tarfile.offset} is damaged", error)

    def _proc_pax(self, tarfile: Any) -> Any:
        if self.type == GLOBAL_HEADER and tarfile.pax_headers:
            raise UnsafeMemberError("it has more than one global header")
        return super()._proc_pax(tarfile)  # type: ignore[misc]

    def _proc_gnusparse_10(self, next: tarfile.TarInfo, *_more: Any) -> None:
        """The map lies in the data, and may be as long as it likes."""
        raise _sparse(next.name)


def _damaged(archive: Any, why: str, error: Exception) -> NoReturn:
    """By the first header tarfile tells what kind of file it is."""
    if archive.offset == 0:
        raise error
    raise tarfile.ReadError(why) from error


def _sparse(name: str) -> UnsafeMemberError:
    return UnsafeMemberError(f"the member {name[:100]!r} is sparse; pack it without holes")


class Unpack:
    """Unpacks all archives of a source; several threads may do so at a time."""

    def __init__(self, stage: Stage, guard: Guard, budget: Budget, count: Count) -> None:
        """``count`` hears of bytes written or skipped."""
        self.stage, self.count = stage, count
        self.failed = threading.Event()
        self._guard, self._budget, self._lock = guard, budget, threading.Lock()
        self._links: list[tuple[str, str, Member]] = []

    def run(self, file: str, archive: str) -> None:
        """Unpack ``file``, which is ``archive`` below the destination. Raises TrainiumError."""
        if not self.failed.is_set():
            with self._explained(archive):
                _Archive(self, archive).run(file)

    def finish(self) -> None:
        """Make the links, when all files are there. Raises TrainiumError."""
        for archive, path, member in self._links:
            with self._explained(archive):
                if member.kind == "symlink":
                    self.stage.symlink(path, member.target)
                else:
                    self.stage.hardlink(path, below(archive, inside(member.target)))

    def admit(self, members: list[Member], archive: str) -> list[str]:
        """Their paths below the destination; links are kept for the end. Raises UnsafeMemberError, TrainiumError."""
        with self._lock:
            paths = [self._guard.admit(member, archive) for member in members]
            problem = self._budget.take(members, archive)
            if problem:
                raise TrainiumError(problem)
            self._links += [
                (archive, path, member)
                for path, member in zip(paths, members)
                if member.kind in ("symlink", "hardlink")
            ]
            return paths

    @contextmanager
    def _explained(self, archive: str) -> Iterator[None]:
        """Errors as sentences; the other archives need not go on."""
        try:
            try:
                yield
            except BaseException:
                self.failed.set()
                raise
        except UnsafeMemberError as error:
            raise TrainiumError(f"{archive} is refused: {error}; nothing of it was put in place") from error
        except DAMAGED as error:
            raise TrainiumError(
                f"{archive} is damaged or no archive: {error or type(error).__name__}; check the source"
            ) from error
        except OSError as error:
            if isinstance(error, (tarfile.ReadError, zlib.error)) or error.errno is None:
                raise TrainiumError(f"{archive} is damaged: {error}; check the source") from error
            raise disk_error(error, f"the content of {archive}") from error


class _Archive:
    """One archive, read by one thread."""

    def __init__(self, all_of_them: Unpack, name: str) -> None:
        self._all, self._stage, self._count, self._name = all_of_them, all_of_them.stage, all_of_them.count, name
        self._slots = threading.Semaphore(WAITING)
        self._failed = all_of_them.failed

    def run(self, path: str) -> None:
        with ThreadPoolExecutor(WRITERS) as pool:
            with open(path, "rb") as file:
                start = file.read(len(ZIP_STARTS[0]))
            # By its first bytes: a zip's directory may stand at the end of anything.
            if start in ZIP_STARTS and zipfile.is_zipfile(path):
                self._zip(path, pool)
            else:
                self._tar(path, pool)

    # --- tar ---

    def _tar(self, path: str, pool: ThreadPoolExecutor) -> None:
        pairs: list[tuple[Member, tarfile.TarInfo]] = []
        try:
            with tarfile.open(path, "r:", tarinfo=Header) as archive, open(path, "rb") as data:
                # One by one: the next header is looked for where this one says.
                for item in archive:
                    pairs.append((_of_tar(item), item))
                    item.pax_headers = {}
                    if len(pairs) > MOST_PATHS:
                        raise UnsafeMemberError(f"it has more than {MOST_PATHS} members")
                _wait(
                    [
                        self._submit(pool, self._copy_range, target, member, data.fileno(), item.offset_data)
                        for target, member, item in self._admit(pairs)
                    ]
                )
            return
        except tarfile.ReadError:
            if pairs:
                raise
        self._compressed_tar(path, pool)

    def _compressed_tar(self, path: str, pool: ThreadPoolExecutor) -> None:
        # Of millions of members what has been written is not kept, but their names are.
        met: set[str] = set()
        written: dict[str, Future[None]] = {}
        with tarfile.open(path, "r|*", tarinfo=Header) as archive:
            for item in archive:
                member = _of_tar(item)
                # tarfile keeps every header that it has seen.
                archive.members = []  # type: ignore[attr-defined]
                for target, _member, _item in self._admit([(member, item)]):
                    again = target in met
                    met.add(target)
                    if target in written:
                        # The last of a name wins here as well, and two writers never meet.
                        written.pop(target).result()
                    source = archive.extractfile(item)
                    if source is not None and member.size <= BUFFERED:
                        blocks = iter([source.read()])
                        written[target] = self._submit(pool, self._put, target, member, blocks, again)
                    else:
                        self._stream(target, member, source, BLOCK, again)
                if len(written) > 2 * WAITING:
                    for target in [name for name, job in written.items() if job.done()]:
                        written.pop(target).result()
                if self._failed.is_set():
                    break
        _wait([*written.values()])

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

            def unpack(target: str, member: Member, item: zipfile.ZipInfo) -> None:
                easy = item.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                with archive.open(item) as source:
                    self._stream(target, member, source, BLOCK if easy else SMALL_BLOCK)

            _wait([self._submit(pool, unpack, target, member, item) for target, member, item in self._admit(pairs)])

    # --- both ---

    def _admit(self, pairs: list[tuple[Member, Any]]) -> list[tuple[str, Member, Any]]:
        """All members at once, before anything is written: (path, member, the archive's own item) of the files."""
        plan = {}
        for path, (member, item) in zip(self._all.admit([member for member, _item in pairs], self._name), pairs):
            if member.kind == "directory":
                with self._stage.folder(path):
                    continue
            if member.kind == "file":
                # The last of a name wins, as with tar, and two writers never meet.
                plan[path] = (path, member, item)
        return list(plan.values())

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

    def _stream(self, target: str, member: Member, source: IO[bytes] | None, size: int, again: bool = False) -> None:
        self._put(target, member, iter(lambda: source.read(size) if source else b"", b""), again)

    def _put(self, target: str, member: Member, blocks: Iterator[bytes], again: bool = False) -> None:
        """What has its name and size needs no second writing, but where the archive has it ``again``."""
        if not again and self._stage.has(target, member.size):
            self._count(member.size)
            return
        told = 0

        def check(written: int) -> None:
            nonlocal told
            # A zip that lies about its sizes would fill the disk.
            if written > member.size:
                raise EOFError(f"{member.name!r} is larger than the archive says")
            self._count(written - told)
            told = written

        def whole() -> Iterator[bytes]:
            yield from blocks
            if told != member.size:
                raise EOFError(f"it ends within {member.name!r}")

        self._stage.write(target, member.mode, whole(), check)


def _wait(jobs: list[Future[None]]) -> None:
    for job in jobs:
        job.result()


def _of_tar(item: tarfile.TarInfo) -> Member:
    if item.issparse():
        raise _sparse(item.name)
    # An extended header may have said another one.
    if item.size < 0:
        raise UnsafeMemberError(f"the member {item.name[:100]!r} has a size below zero")
    kinds = {"file": item.isreg, "directory": item.isdir, "symlink": item.issym, "hardlink": item.islnk}
    kind = next((name for name, is_one in kinds.items() if is_one()), "other")
    return Member(item.name, kind, item.size if kind == "file" else 0, item.mode, item.linkname)


def _of_zip(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> Member:
    mode = item.external_attr >> 16
    kind = "directory" if item.is_dir() else "symlink" if stat.S_ISLNK(mode) else "file"
    if not item.is_dir() and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFLNK):
        kind = "other"
    target = ""
    if kind == "symlink":
        if item.file_size > LONGEST_TARGET:
            raise UnsafeMemberError(f"the link {item.filename!r} has a target of {item.file_size} characters")
        with archive.open(item) as source:
            target = source.read(LONGEST_TARGET).decode("utf-8", "surrogateescape")
    return Member(item.filename, kind, item.file_size if kind == "file" else 0, stat.S_IMODE(mode) or 0o644, target)
