# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How far a module's waiting is, for whoever watches: JSON lines in the file that an action plugin names.

A line is ``{"what": "running", "done": 3, "total": 4, "missing": ["i-..."]}``, perhaps with a ``note``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence

PROGRESS_FILE = "TRAINIUM_PROGRESS_FILE"
# The same state is told again after this many seconds, so that nobody takes a long wait for a dead one.
REPEAT_SECONDS = 10.0


class Progress:
    """Writes a line when something changed or REPEAT_SECONDS went by; does nothing without a file to write to."""

    def __init__(self, path: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = os.environ.get(PROGRESS_FILE) if path is None else path
        self._clock = clock
        self._last = ""
        self._told = 0.0

    def report(self, what: str, done: int, total: int, missing: Sequence[str] = (), note: str = "") -> None:
        """``done`` of ``total`` are ``what``; ``missing`` names the others. A ``note`` alone makes no line new."""
        if not self._path:
            return
        state = {"what": what, "done": done, "total": total, "missing": list(missing)}
        told = json.dumps(state)
        now = self._clock()
        if told == self._last and now - self._told < REPEAT_SECONDS:
            return
        self._last, self._told = told, now
        line = json.dumps({**state, "note": note}) if note else told
        try:
            with open(self._path, "a", encoding="utf-8") as stream:
                stream.write(line + "\n")
        except OSError:
            # Nobody can watch, as after become; the work itself goes on.
            self._path = None
