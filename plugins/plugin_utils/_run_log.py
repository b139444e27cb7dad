# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run leaves on the controller: a log with the details, and how many seconds each phase took. Private."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any, TextIO

from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record, replace

# Logs that are kept of one folder; the oldest go.
LOGS = 20
RECORD = "seconds.json"
_LOG = re.compile(r"\d{8}T\d{6}-\d+-[\w.-]+\.log")


class RunLog:
    """A file that only its owner reads; without a folder that can be written to, none."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path, self.problem = folder / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-{name}.log", ""
        self._stream: TextIO | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            # By the line, so that a run that is killed leaves what was done.
            self._stream = os.fdopen(handle, "w", encoding="utf-8", errors="replace", buffering=1)
            # Those of other programs stay, whatever they are called, and this one.
            logs = [path for path in sorted(folder.iterdir()) if _LOG.fullmatch(path.name) and path != self.path]
            for old in logs[: 1 - LOGS]:
                old.unlink(missing_ok=True)
        except OSError as error:
            self.problem = f"{folder} cannot be written to ({error.strerror})"

    def write(self, text: str, end: str = "\n") -> None:
        if self._stream:
            self._stream.write(f"{text}{end}")


class Details:
    """In place of Ansible's display: all goes to the log, and to the screen as well where ``shown`` is true."""

    def __init__(self, display: Any, log: RunLog | None = None) -> None:
        self.screen, self.log, self.shown = display, log, False

    def __getattr__(self, name: str) -> Any:
        # Warnings, verbosity and what else there is.
        return getattr(self.screen, name)

    def display(self, msg: str, color: str | None = None, *args: Any, **more: Any) -> None:
        if self.log and not more.get("screen_only"):
            self.log.write(msg, "\n" if more.get("newline", True) else "")
        if self.shown:
            self.screen.display(msg, color, *args, **more)
        elif not more.get("screen_only"):
            # What log_path of ansible.cfg names stays whole.
            self.screen.display(msg, log_only=True)

    def banner(self, msg: str, color: str | None = None, *args: Any, **more: Any) -> None:
        line = f"\n{msg} {'*' * max(3, 70 - len(msg))} {time.strftime('%H:%M:%S')}"
        if self.log:
            self.log.write(line)
        if self.shown:
            self.screen.banner(msg, color, *args, **more)
        else:
            self.screen.display(line, log_only=True)

    def _error(self, *args: Any, **more: Any) -> None:
        """ansible-core 2.19 and newer show the reason of a failure with it, an ignored one's too."""
        if self.shown:
            self.screen._error(*args, **more)


class Seconds:
    """How long the phases took the last time that the same was run; '' where nobody knows."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path, self._key = folder / RECORD, key
        known = (read_record(self._path) or {}).get(key)
        self._known = known if isinstance(known, dict) else {}

    def expected(self, phase: str) -> float | None:
        found = self._known.get(phase)
        return float(found) if isinstance(found, (int, float)) else None

    def keep(self, seconds: dict[str, float]) -> None:
        """Beside those of other runs, which may have ended in the meantime."""
        rounded = {name: round(value, 1) for name, value in seconds.items()}
        told = {**(read_record(self._path) or {}), self._key: rounded}
        try:
            replace(self._path, (json.dumps(told, indent=1, sort_keys=True) + "\n").encode(), 0o600)
        except OSError:
            # Expected times are a help, and a run does not need them.
            return
