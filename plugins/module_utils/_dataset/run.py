# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The way of a dataset: claim, fetch, check, unpack, put in place, mark. Each step is finished by a later run.

All but the last step works in ``DESTINATION/.trainium-dataset/NAME``: ``claims``, ``parts`` and ``logs`` (see
dataset_fetch), ``stage`` (what will be put in place), ``state.json`` (which steps are done), and ``complete.json``, the
marker.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import (
    OURS,
    Folder,
    Owner,
    open_folder,
    open_path,
)
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import fetch as dataset_fetch
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import Budget, Guard
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.background import StatusFile
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.extract import Unpack
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.fetch import Fetch, Store, disk_error
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import Claims, myself, this_host
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import File
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.progress import RATE_SECONDS, line, rate
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.stage import Stage

SECONDS_BETWEEN_STATES = 0.5
SECONDS_BETWEEN_CLAIMS = 1.0
# Hashing and unpacking: more threads than this wait for the disk only.
WORKERS = 4
MARKED_ENTRIES = 1000
# Inodes that are left to others.
SPARE_PATHS = 1000
STATE, MARKER = "state.json", "complete.json"
Record = dict[str, Any]


class Place:
    """The folders and files of a dataset on the host: the destination, and the folder ``work`` of the transfer."""

    def __init__(self, destination: str, name: str) -> None:
        self.destination, self._name = destination, name
        self.top, self.work = Folder(), Folder()

    @contextmanager
    def opened(self, owner: Owner | None = None) -> Iterator[None]:
        """Keep the folders open; they are made where there is an ``owner``. Raises TrainiumError, OSError."""
        if self.work.descriptor >= 0:
            yield
            return
        try:
            self.open(owner)
            yield
        finally:
            self.work.close()
            self.top.close()

    def open(self, owner: Owner | None) -> None:
        """Open the folders, anew where they are open."""
        self.work.close()
        self.top.close()
        ours = OURS if owner is not None else None
        self.top.descriptor = open_path(self.destination, owner)
        with closing(Folder(open_folder(planner.HIDDEN, self.top.descriptor, ours))) as hidden:
            self.work.descriptor = open_folder(self._name, hidden.descriptor, ours)
            # Somebody else's folder would have root write where it should not.
            for folder, path in ((hidden, planner.HIDDEN), (self.work, f"{planner.HIDDEN}/{self._name}")):
                if not folder.is_private():
                    raise TrainiumError(
                        f"{self.destination}/{path} belongs to others, or others may write in it; delete it, or take "
                        "another destination"
                    )

    def complete(self, digest: str) -> Record | None:
        """The marker, where it is of this dataset and what it names is still there."""
        with suppress(OSError), self.opened():
            marker = self.work.read(MARKER)
            if marker and marker.get("digest") == digest:
                for name in marker.get("entries", ()):
                    os.stat(name, dir_fd=self.top.descriptor, follow_symlinks=False)
                return marker
        return None

    def make(self, owner: Owner) -> bool:
        """Make the folders; says whether the destination itself is new."""
        new = not os.path.isdir(self.destination)
        try:
            with self.opened(owner):
                return new
        except OSError as error:
            raise TrainiumError(
                f"{error.filename or self.destination} can not be made in {self.destination}: {error.strerror}; check "
                "dataset_destination"
            ) from error

    def tidy(self, new: bool) -> None:
        """Delete what is of no use to a later run; the destination only where it is ``new``."""
        store = Store(self.work)
        if self.state().get("step") == "fetch" and store.is_empty():
            store.clear()
            self.forget()
        above = f"../{os.path.basename(self.destination.rstrip('/'))}"
        for folder, name in (
            *((self.work, "stage"), (self.work, "claims"), (self.work, f"../{self._name}"), (self.top, planner.HIDDEN)),
            *([(self.top, above)] if new else []),
        ):
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder.descriptor)

    def state(self) -> Record:
        return self.work.read(STATE) or {}

    def forget(self) -> None:
        """Delete the state and what was staged."""
        for path in ("stage", "unpacking", STATE):
            self.work.delete(path)

    def free(self) -> int:
        """Bytes that may be written."""
        found = os.statvfs(self.top.descriptor)
        return found.f_bavail * found.f_frsize

    def free_paths(self) -> int:
        """Files and folders that may be made; 0 where the file system does not say how many it takes."""
        found = os.statvfs(self.top.descriptor)
        return max(found.f_favail - SPARE_PATHS, 1) if found.f_files else 0

    def open_stage(self, owner: Owner) -> Stage:
        return Stage(self.top, self.work, owner, self.destination)


class Telling:
    """Writes now and then how far the work is."""

    def __init__(self, status: StatusFile) -> None:
        self._status, self._lock = status, threading.Lock()
        self._samples: deque[tuple[float, int]] = deque()
        self._phase, self._last = "", 0.0
        self._state: Record = {**myself(), "progress": {"phase": "starting"}}
        self.claims: Claims | None = None

    def __call__(self, phase: str, done: int, total: int, note: str = "") -> None:
        """Raises TrainiumError where the claim is lost, so that the work ends."""
        now = time.monotonic()
        if phase == self._phase and now - self._last < SECONDS_BETWEEN_STATES and done < total:
            return
        if self.claims and self.claims.lost:
            raise TrainiumError(
                "Another host took this host for dead and goes on with the dataset; run again to follow it"
            )
        with self._lock:
            if phase != self._phase:
                self._samples.clear()
                self._phase = phase
            self._samples.append((now, done))
            while now - self._samples[0][0] > 2 * RATE_SECONDS:
                self._samples.popleft()
            self._last = now
            speed = rate(list(self._samples))
            self._state["progress"] = {"phase": phase, "done": done, "total": total, "rate": speed, "note": note}
            # A full disk that is not that of the dataset must not end its transfer.
            with suppress(OSError):
                self._status.write(self._state)

    def claim_process(self) -> None:
        """From now on it is this process that must live."""
        with self._lock:
            self._state.update(myself())
            self._status.write(self._state)

    def line(self) -> str:
        return line(self._state["progress"])

    def end(self, **result: Any) -> None:
        with self._lock:
            self._state.update(ended=True, **result)
            self._status.write(self._state)


class Job:
    """One attempt at a dataset, in the process that does the work."""

    def __init__(self, request: Mapping[str, Any], files: Sequence[File], place: Place, tell: Telling) -> None:
        """``request``: the module's options, with ``owner_ids`` (uid, gid) and sizes in bytes."""
        self._request, self._files, self._place, self._tell = request, list(files), place, tell
        self._digest = planner.digest(request)
        self._store = Store(place.work)
        self._fetched = 0

    def run(self, new: bool) -> None:
        """All that is missing; its result is told. ``new``: the destination did not exist before."""
        try:
            with self._place.opened(self._request["owner_ids"]):
                self._run(new)
            self._tell.end(fetched=self._fetched)
        except TrainiumError as error:
            self._tell.end(error=str(error), fetched=self._fetched)
        except OSError as error:
            self._tell.end(error=str(disk_error(error, "the dataset")), fetched=self._fetched)
        except Exception as error:
            # Nobody would hear of it.
            self._tell.end(error=f"The transfer failed: {type(error).__name__}: {error}", fetched=self._fetched)

    def _run(self, new: bool) -> None:
        claims = Claims(self._place.work)
        try:
            self._claim(claims)
            claims.keep(self._tell.line)
            self._tell.claims = claims
            if self._place.complete(self._digest) is None:
                self._steps()
        finally:
            claims.release()
            if self._place.complete(self._digest) is None:
                self._place.tidy(new)

    def _claim(self, claims: Claims) -> None:
        while True:
            living = claims.take()
            if not living:
                return
            holder = living[0]
            self._tell(f"waiting for {holder.get('name') or 'another host'}", 0, 0, str(holder.get("progress") or ""))
            # Two that came at the same time both stepped back; they do not come back at the same time.
            time.sleep(SECONDS_BETWEEN_CLAIMS * (1 + os.getpid() % 10 / 10))
            # A holder that ends may have deleted them.
            self._place.open(self._request["owner_ids"])

    def _steps(self) -> None:
        state = self._place.state()
        if state.get("digest") != self._digest:
            self._store.clear()
            self._place.forget()
            self._place.work.delete(MARKER)
            state = {"digest": self._digest, "step": "fetch", "host": this_host()}
        if state["step"] == "unpack" and state.get("host") != this_host():
            # What was not on the disk when a host went down may be there in name only. The pieces were on the disk.
            self._place.work.delete("stage")
            state["step"] = "fetch"
        if state["step"] == "fetch":
            self._place.work.delete(MARKER)
            state = self._fetch(state)
        if state["step"] == "unpack":
            self._unpack(state)
        self._put_in_place(state)

    def _fetch(self, state: Record) -> Record:
        connections, timeout = int(self._request["connections"]), float(self._request["timeout"])
        self._files, single = dataset_fetch.probe(self._files, connections, timeout)
        archives = planner.to_extract(self._files, self._request["extract"])
        # An archive on the host is read where it lies.
        fetched = [file for file in self._files if file not in archives or not file.url.startswith("/")]
        left = sum(file.size - self._store.done(file) for file in fetched)
        # At least their own size, which is right for tar.
        extracted = int(self._request["extracted_size"]) or sum(max(file.size, 0) for file in archives)
        what = f"The dataset ({planner.human(left)} to fetch, {planner.human(extracted)} unpacked)"
        problem = planner.space_problem(left + extracted, self._place.free(), self._place.destination, what)
        if problem:
            raise TrainiumError(problem)
        self._place.work.write(STATE, state)
        fetch = Fetch(self._store, int(self._request["chunk_size"]), connections, timeout, self._tell)
        try:
            fetch.run(fetched, single)
        finally:
            self._fetched = fetch.fetched
        checked = self._check(fetch.plain)
        state = {
            **state,
            "step": "unpack",
            "host": this_host(),
            "files": [
                {
                    **file._asdict(),
                    "url": file.url if file.url.startswith("/") else "",
                    "sha256": checked.get(file.path, file.sha256),
                }
                for file in self._files
            ],
        }
        self._place.work.write(STATE, state)
        return state

    def _check(self, plain: set[str]) -> dict[str, str]:
        """SHA-256 by path. A local archive is checked where it lies."""
        md5 = plain if planner.source_kind(self._request["source"]) == "s3" and self._request["md5_tags"] else set()
        return dataset_fetch.verify(self._store, self._files, md5, WORKERS, self._tell)

    def _unpack(self, state: Record) -> None:
        files = [File(**item) for item in state["files"]]
        archives = planner.to_extract(files, self._request["extract"])
        total, done, lock = sum(file.size for file in archives), [0], threading.Lock()

        def count(size: int) -> None:
            with lock:
                done[0] += size
            self._tell("unpacking", done[0], max(total, done[0]), "")

        with closing(self._place.open_stage(self._request["owner_ids"])) as stage:
            self._stage(stage, files, archives, count)
        # The step below must not be on the disk before what it relies on.
        os.sync()
        state["step"] = "place"
        self._place.work.write(STATE, state)

    def _stage(self, stage: Stage, files: list[File], archives: list[File], count: Callable[[int], None]) -> None:
        staged, paths = stage.size()
        free_paths = self._place.free_paths()
        guard = Guard(free_paths + paths if free_paths else 0)
        unpack = Unpack(stage, guard, Budget(self._place.free() + staged, self._place.destination), count)
        try:
            for file in files:
                guard.plain(file.path, file.size, file in archives)

            def one(file: File) -> None:
                with self._store.path(file) as path:
                    unpack.run(path, file.path)

            with ThreadPoolExecutor(WORKERS) as pool:
                for _nothing in pool.map(one, archives):
                    continue
            unpack.finish()
        except TrainiumError as error:
            if "make room" not in str(error):
                # The same bytes would be refused again.
                self._store.clear()
                self._place.forget()
            raise
        for file in files:
            there = file in archives or stage.adopt(self._store.part(file), file.path)
            if not there and not stage.has(file.path, file.size):
                raise TrainiumError(f"{file.name} was deleted while it was put in place; run again")

    def _put_in_place(self, state: Record) -> None:
        self._tell("putting in place", 0, 0, "")
        entries = state.get("entries")
        with closing(self._place.open_stage(self._request["owner_ids"])) as stage:
            if entries is None:
                entries = stage.entries()[:MARKED_ENTRIES]
                state["entries"] = entries
                self._place.work.write(STATE, state)
            stage.put_in_place()
        files = [{key: item[key] for key in ("path", "size", "tag", "sha256")} for item in state["files"]]
        marker = {
            "digest": self._digest,
            "source": planner.shown(self._request["source"]),
            "files": files,
            "entries": entries,
            "completed_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        self._place.work.write(MARKER, marker)
        self._store.clear()
        self._place.forget()
