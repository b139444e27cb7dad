# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fetches the files of a dataset in pieces over several connections; what is whole on the disk is not fetched again."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import Folder, open_file
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import byte_ranges
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.byte_ranges import Version
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.http_range import Client, CutError, HttpError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import File

# A piece is given up after so many tries in a row that brought no byte.
FRUITLESS_TRIES = 8
LONGEST_PAUSE = 20.0
HASH_BYTES = 4 * 1024 * 1024
Tell = Callable[[str, int, int, str], None]


class Store:
    """Where the parts of the files lie and the logs of what of them is whole: two folders of the transfer."""

    def __init__(self, work: Folder) -> None:
        self._work = work

    @staticmethod
    def part(file: File) -> str:
        """Where the part of a file lies in the folder of the transfer."""
        return f"parts/{file.path}"

    def open(self, file: File, flags: int) -> int:
        """The descriptor of the part of a file. Raises OSError."""
        return self._work.open(self.part(file), flags)

    @contextmanager
    def path(self, file: File) -> Iterator[str]:
        """A path that leads to the part of a file, or to one of this host, whatever bears its name by then."""
        found = open_file(file.url) if file.url.startswith("/") else self.open(file, os.O_RDONLY)
        try:
            yield f"/proc/self/fd/{found}"
        finally:
            os.close(found)

    def known(self, file: File) -> byte_ranges.Log:
        """What is whole of a file."""
        try:
            with os.fdopen(self._work.open(f"logs/{file.path}", os.O_RDONLY), encoding="ascii") as stream:
                return byte_ranges.read_log(stream.read())
        except (FileNotFoundError, UnicodeDecodeError):
            return byte_ranges.Log(None, frozenset())

    def note(self, file: File, text: str, flags: int = os.O_APPEND) -> None:
        """Write on the log of a file."""
        log = self._work.open(f"logs/{file.path}", os.O_WRONLY | flags)
        with os.fdopen(log, "a", encoding="ascii") as stream:
            stream.write(text)

    def prepare(self, file: File, piece: int) -> tuple[Version, frozenset[int]]:
        """Make part and log of a file, or go on with those that are of the same content."""
        now = Version(file.size, file.tag, piece)
        with suppress(OSError):
            log = self.known(file)
            if log.version and byte_ranges.same_content(log.version, now):
                os.close(self.open(file, os.O_WRONLY))
                return log.version, log.done
        with os.fdopen(self.open(file, os.O_WRONLY | os.O_CREAT), "wb") as stream:
            stream.truncate(file.size)
        self.note(file, byte_ranges.head_line(now), os.O_CREAT)
        return now, frozenset()

    def done(self, file: File) -> int:
        """Bytes of a file that need not be fetched."""
        with suppress(OSError):
            log = self.known(file)
            if log.version and byte_ranges.same_content(log.version, Version(file.size, file.tag, 1)):
                return byte_ranges.bytes_done(log.version, log.done)
        return 0

    def drop(self, file: File) -> None:
        """Forget what was fetched of a file."""
        for path in (f"logs/{file.path}", self.part(file)):
            self._work.delete(path)

    def is_empty(self) -> bool:
        """Whether there is no part of any file."""
        with suppress(OSError):
            return not any(names for _top, _folders, names, _at in os.fwalk("parts", dir_fd=self._work.descriptor))
        return True

    def clear(self) -> None:
        """Forget all."""
        for folder in ("logs", "parts"):
            self._work.delete(folder)


class Fetch:
    """One transfer of files to a store."""

    def __init__(self, store: Store, chunk: int, connections: int, timeout: float, tell: Tell) -> None:
        """``chunk`` in bytes, ``timeout`` in seconds of silence, ``tell(phase, done, total, note)`` hears of it."""
        self._store, self._connections, self._timeout, self._tell = store, connections, timeout, tell
        self._piece = byte_ranges.piece_size(chunk, connections)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._done = self._total = self.fetched = 0
        self._note = ""
        # Paths of files whose ETag may be an MD5, as far as their server said.
        self.plain: set[str] = set()
        self._single: frozenset[str] = frozenset()

    def run(self, files: Sequence[File], single: frozenset[str] = frozenset()) -> None:
        """Fetch all that is missing. ``single`` are paths of files that their server gives only as a whole.

        Raises:
            TrainiumError: the first reason for which a piece was given up; what was fetched stays.
        """
        work: list[tuple[File, int, int]] = []
        self._single = single
        self._total = sum(file.size for file in files)
        for file in files:
            version, done = self._store.prepare(file, max(file.size, 1) if file.path in single else self._piece)
            self._done += byte_ranges.bytes_done(version, done)
            work += [(file, start, end) for start, end in byte_ranges.missing(version, done)]
        self._report()
        queue = iter(work)
        threads = min(self._connections, len(work))
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            jobs = [pool.submit(self._connection, queue) for _number in range(threads)]
        problems = [error for error in (job.exception() for job in jobs) if error is not None]
        if problems:
            raise problems[0]

    def _connection(self, queue: Iterator[tuple[File, int, int]]) -> None:
        """Fetch piece by piece until there is none, or another connection failed."""
        client = Client(self._timeout)
        try:
            while not self._stop.is_set():
                with self._lock:
                    task: tuple[File, int, int] | None = next(queue, None)
                if task is None:
                    return
                self._fetch_piece(client, *task)
        except OSError as error:
            self._stop.set()
            raise disk_error(error, "what was fetched") from error
        except BaseException:
            self._stop.set()
            raise
        finally:
            client.close()

    def _fetch_piece(self, client: Client, file: File, start: int, end: int) -> None:
        at, fruitless = start, 0
        client.name = file.name
        output = self._store.open(file, os.O_WRONLY)
        try:
            while at < end and not self._stop.is_set():
                before = at
                try:
                    for block in self._source(client, file, at, end):
                        write_all(output, block, at)
                        at += len(block)
                        self._count(len(block))
                        if self._stop.is_set():
                            return
                except CutError as error:
                    fruitless = 0 if at > before else fruitless + 1
                    if fruitless >= FRUITLESS_TRIES:
                        raise HttpError(
                            f"{file.name} was not fetched: {error}; check the network, and run again to go on"
                        ) from error
                    self._note = f"trying again after: {error}"
                    self._report()
                    self._stop.wait(min(0.25 * 2**fruitless, LONGEST_PAUSE) if fruitless else 0.05)
                    if file.path in self._single and at > start:
                        # The server gives no parts: it begins again.
                        self._count(start - at, fetched=False)
                        at = start
            if at == end:
                if not client.own_key:
                    self.plain.add(file.path)
                os.fdatasync(output)
                self._store.note(file, f"{start}\n")
        finally:
            os.close(output)

    @staticmethod
    def _source(client: Client, file: File, start: int, end: int) -> Iterator[bytes]:
        if not file.url.startswith("/"):
            yield from client.read(file.url, start, end, file.size, file.tag)
            return
        with os.fdopen(open_file(file.url), "rb") as stream:
            stream.seek(start)
            left = end - start
            while left:
                block = stream.read(min(HASH_BYTES, left))
                if not block:
                    raise HttpError(f"{file.name} became shorter while it was copied; run again")
                left -= len(block)
                yield block

    def _count(self, size: int, fetched: bool = True) -> None:
        with self._lock:
            self._done += size
            if fetched:
                self.fetched += size
                self._note = "" if size else self._note
        self._report()

    def _report(self) -> None:
        self._tell("fetching", self._done, self._total, self._note)


def write_all(output: int, block: bytes, at: int) -> None:
    view = memoryview(block)
    while view:
        written = os.pwrite(output, view, at)
        view, at = view[written:], at + written


def disk_error(error: OSError, what: str) -> TrainiumError:
    """A failure of the disk as a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TrainiumError(f"The disk is full, {what} does not fit; make room or take a larger volume, and run again")
    return TrainiumError(
        f"{what[0].upper()}{what[1:]} can not be written: {error.strerror or error} ({error.filename or 'no name'})"
    )


def probe(files: Sequence[File], connections: int, timeout: float) -> tuple[list[File], frozenset[str]]:
    """The files with sizes and ETags as their servers tell, and the paths of those that come only as a whole."""
    unknown = [file for file in files if file.size < 0]

    def ask(file: File) -> tuple[File, bool]:
        with closing(Client(timeout)) as client:
            client.name = file.name
            for attempt in range(FRUITLESS_TRIES):
                try:
                    found = client.probe(file.url)
                    return file._replace(size=found.size, tag=found.tag), found.ranges
                except CutError as error:
                    reason = str(error)
                    time.sleep(min(0.25 * 2**attempt, LONGEST_PAUSE))
        raise TrainiumError(f"{file.name} can not be reached: {reason}; check the address and the network")

    with ThreadPoolExecutor(max(min(connections, len(unknown)), 1)) as pool:
        answers = {file.path: (file, ranges) for file, ranges in pool.map(ask, unknown)}
    known = [answers[file.path][0] if file.path in answers else file for file in files]
    return known, frozenset(path for path, (_file, ranges) in answers.items() if not ranges)


def verify(store: Store, files: Sequence[File], md5_tags: set[str], workers: int, tell: Tell) -> dict[str, str]:
    """SHA-256 of each file whose checksum is known; an MD5 that is known as an ETag is compared as well.

    Args:
        md5_tags: paths of files whose ETag, where it has 32 digits, is the MD5 of the content, as with S3.

    Raises:
        TrainiumError: a file is not what it should be. It is deleted.
    """

    def has_md5(file: File) -> bool:
        return file.path in md5_tags and re.fullmatch(r'"?[0-9a-f]{32}"?', file.tag) is not None

    todo = [file for file in files if file.sha256 or has_md5(file)]
    total, done, lock = sum(file.size for file in todo), [0], threading.Lock()

    def check(file: File) -> tuple[str, str]:
        wanted = file.sha256 or file.tag.strip('"')
        known = hashlib.sha256() if file.sha256 else hashlib.md5(usedforsecurity=False)
        fetched = True
        try:
            source = store.open(file, os.O_RDONLY)
        except FileNotFoundError:
            fetched, source = False, open_file(file.url)
        with open(source, "rb") as stream:
            block = stream.read(HASH_BYTES)
            while block:
                known.update(block)
                with lock:
                    done[0] += len(block)
                tell("checking", done[0], total, "")
                block = stream.read(HASH_BYTES)
        if known.hexdigest() != wanted:
            store.drop(file)
            action = "it was deleted, check" if fetched else "check"
            kind = "SHA-256" if file.sha256 else "MD5"
            raise TrainiumError(
                f"{file.name} has the {kind} {known.hexdigest()} and not {wanted}; {action} the checksum and the source"
            )
        return file.path, known.hexdigest() if file.sha256 else ""

    with ThreadPoolExecutor(workers) as pool:
        return {path: found for path, found in pool.map(check, todo) if found}
