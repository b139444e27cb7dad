# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run a module and show how far its waiting is while it runs. Private to this collection.

The module appends JSON lines to a file (module_utils/_common/progress.py) and a thread shows them. Where module and
controller share no file system the module just runs.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import PROGRESS_FILE
from ansible_collections.trainium.cluster.plugins.plugin_utils._patient import tell

SECONDS_BETWEEN_LOOKS = 0.2
# More names than this say nothing to a reader.
NAMES_SHOWN = 4


def progress_text(module: str, line: str) -> str:
    """``efa_instance: 3 of 4 running, waiting for i-0abc``; '' for a line that is none of ours."""
    try:
        step = json.loads(line)
        missing = [str(name) for name in step["missing"]]
        text = f"{module}: {int(step['done'])} of {int(step['total'])} {step['what']}"
        note = f" ({step['note']})" if step.get("note") else ""
    except (KeyError, TypeError, ValueError):
        return ""
    if not missing:
        return f"{text}{note}"
    more = f" and {len(missing) - NAMES_SHOWN} more" if len(missing) > NAMES_SHOWN else ""
    return f"{text}, waiting for {', '.join(missing[:NAMES_SHOWN])}{more}{note}"


class Follower(threading.Thread):
    """Shows each complete line of a file as it is written, while the block runs; there may be no file at first."""

    def __init__(self, path: str | Path, show: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        self._path, self._show = path, show
        self._stopped = threading.Event()
        self._read = 0

    def run(self) -> None:
        while not self._stopped.wait(SECONDS_BETWEEN_LOOKS):
            self.catch_up()

    def catch_up(self) -> None:
        """Show what was written since the last look; half a line waits for its other half."""
        complete = b""
        with suppress(OSError), open(self._path, "rb") as stream:
            stream.seek(self._read)
            new = stream.read()
            complete = new[: new.rfind(b"\n") + 1]
        self._read += len(complete)
        for line in complete.decode("utf-8", "replace").splitlines():
            self._show(line)

    def __enter__(self) -> Follower:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self.join()
        self.catch_up()


@contextmanager
def followed(module: str, show: Callable[[str], None]) -> Iterator[str]:
    """The path of a file of which what a module tells there is shown while the block runs."""

    def show_step(line: str) -> None:
        text = progress_text(module, line)
        if text:
            show(text)

    folder = tempfile.mkdtemp(prefix="progress-", dir=constants.DEFAULT_LOCAL_TMP)
    path = os.path.join(folder, "progress")
    try:
        with Follower(path, show_step):
            yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class ProgressAction(ActionBase):
    """Base of an action plugin that only runs the module of the same name and shows its progress."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._connection.transport == "local" and not self._task.async_val:
            with followed(self._task.action.rpartition(".")[2], tell) as path:
                result.update(self._run_module(task_vars, path))
        else:
            result.update(self._run_module(task_vars, None))
        return result

    def _run_module(self, task_vars: dict[str, Any] | None, path: str | None) -> dict[str, Any]:
        before = self._task.environment
        if path:
            self._task.environment = [*(before or []), {PROGRESS_FILE: path}]
        try:
            result: dict[str, Any] = self._execute_module(task_vars=task_vars, wrap_async=self._task.async_val)
        finally:
            self._task.environment = before
        return result
