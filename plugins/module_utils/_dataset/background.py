# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A process that goes on when its module has ended, and the file in which it says how far it is."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record, replace
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import start_time, this_host

KEPT_SECONDS = 7 * 86400
Status = dict[str, Any]


class StatusFile:
    """The state of one attempt, in a folder of the user on this host that outlives a reboot."""

    def __init__(self, attempt: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", attempt):
            raise TrainiumError(f"The attempt {attempt!r} is not valid: use letters, digits and hyphens, at most 64")
        self._folder = _folder()
        self.path = os.path.join(self._folder, f"{attempt}.json")

    def read(self) -> Status | None:
        """The state; None where there is none."""
        return read_record(self.path)

    def write(self, state: Status) -> None:
        replace(self.path, json.dumps(state).encode())

    def remove(self) -> None:
        """Delete this state, and those that nobody asked for in a week."""
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            try:
                if path == self.path or os.lstat(path).st_mtime < time.time() - KEPT_SECONDS:
                    os.unlink(path)
            except FileNotFoundError:
                continue


def alive(state: Status) -> bool:
    """Whether the process of a state still runs here."""
    return state.get("host") == this_host() and state.get("started") == start_time(int(state.get("pid") or 0))


def _folder() -> str:
    path = os.path.join("/var/tmp", f"trainium-dataset-{os.geteuid()}")  # noqa: S108 - who owns it is checked
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise TrainiumError(f"{path} is not a private folder of this user; delete it") from None
    except OSError as error:
        raise TrainiumError(f"{path} can not be made: {error.strerror}") from error
    return path


def detach(work: Callable[[], None]) -> None:
    """Run ``work`` in a process without terminal, parent and open files; returns at once in this one.

    The work must not load modules of the collection any more: Ansible deletes them when its module ends.
    """
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.closerange(3, 1024)
        os.chdir("/")
        os.umask(0o022)
        # Ansible's own folder for the module is deleted under it.
        tempfile.tempdir = None
        work()
    finally:
        os._exit(0)
