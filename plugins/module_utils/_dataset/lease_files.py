# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Claims on a folder that hosts may share: files that tell who works in it, and whether it still does.

A claim is a file with a name that is never used again. It says who made it, and its maker touches it now and then. It
holds while it is the only claim of a living holder.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import Folder

# A holder touches its claim this often, and one that did not for LEASE_SECONDS is dead. The clients of shared file
# systems may show an old time for up to a minute.
TOUCH_SECONDS = 5.0
LEASE_SECONDS = 90.0


def this_host() -> str:
    """This boot of this kernel and the process namespace, in which a process number means something."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return f"{stream.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"


def start_time(pid: int) -> str:
    """When a process started, in ticks since boot; '' where there is none, or only what a dead one leaves."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            fields = stream.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def myself() -> dict[str, Any]:
    """Which process this is."""
    return {"host": this_host(), "pid": os.getpid(), "started": start_time(os.getpid())}


def is_dead(holder: Mapping[str, Any], unchanged: float, my_host: str, started: str) -> bool:
    """Whether the holder of a claim can not come back.

    Args:
        holder: what the claim says of it: ``host`` and ``started``, the start time of its process.
        unchanged: how many seconds, by the watcher's own clock, the claim was not touched.
        my_host: the host of the watcher, as in ``holder``.
        started: start time of the process that has the holder's pid here now, '' for none. It only counts on my host.
    """
    if holder.get("host") == my_host:
        return not started or started != str(holder.get("started"))
    return unchanged >= LEASE_SECONDS


class Claims:
    """The claims in ``claims`` below a folder, and mine. Anybody may delete a dead one."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._host = this_host()
        self._mine = ""
        self._since: dict[str, tuple[int, float]] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.lost = False

    def others(self) -> list[dict[str, Any]]:
        """What living others say in their claims; deletes those of the dead."""
        living: list[dict[str, Any]] = []
        try:
            with self._folder.at("claims") as at:
                names = os.listdir(at)
        except FileNotFoundError:
            return living
        for name in sorted(names):
            path = f"claims/{name}"
            if path == self._mine or not name.endswith(".claim"):
                continue
            try:
                # Opening a file asks the server of a shared file system for its times.
                with os.fdopen(self._folder.open(path, os.O_RDONLY), encoding="utf-8") as stream:
                    touched = os.fstat(stream.fileno()).st_mtime_ns
                    said = json.load(stream)
            except FileNotFoundError:
                continue
            except ValueError:
                said = {}
            if self._since.get(name, (None, 0.0))[0] != touched:
                self._since[name] = (touched, time.monotonic())
            unchanged = time.monotonic() - self._since[name][1]
            if is_dead(said, unchanged, self._host, start_time(int(said.get("pid") or 0))):
                self._folder.delete(path)
            else:
                living.append(said)
        return living

    def take(self) -> list[dict[str, Any]]:
        """Claim the folder; [] means that it is mine now, else the living others who have it or want it too."""
        living = self.others()
        if living:
            return living
        self._mine = f"claims/{uuid.uuid4().hex}.claim"
        self._write("")
        living = self.others()
        if living:
            self.release()
        return living

    def keep(self, progress: Callable[[], str]) -> None:
        """Touch my claim from now on, with a line that tells others how far the work is."""

        def touch() -> None:
            while not self._over.wait(TOUCH_SECONDS):
                if not self._there():
                    self.lost = True
                    return
                self._write(progress())

        self._thread = threading.Thread(target=touch, daemon=True)
        self._thread.start()

    def release(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()
        if self._mine:
            self._folder.delete(self._mine)
        self._mine = ""

    def _there(self) -> bool:
        try:
            os.close(self._folder.open(self._mine, os.O_RDONLY))
        except OSError:
            return False
        return True

    def _write(self, progress: str) -> None:
        try:
            self._folder.write(self._mine, {**myself(), "name": socket.gethostname(), "progress": progress})
        except OSError as error:
            # A full disk must not take the claim away; one that cannot even be made is an error.
            if not self._there():
                raise TrainiumError(f"The claim on the dataset can not be written: {error.strerror}") from error
