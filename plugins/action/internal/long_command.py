# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs a command and says now and then that it goes on.

The controller alone knows that time goes by: a node that is asked how far it is would be kept from its work.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

# The time from one word to the next doubles, so that a long command on many nodes does not fill the screen.
SECONDS_UNTIL_FIRST_WORD = 10.0


class ActionModule(ActionBase):
    """``ansible.builtin.command`` with a limit of time that the node itself keeps."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, arguments = self.validate_argument_spec(
            {
                "argv": {"type": "list", "elements": "str", "required": True},
                "chdir": {"type": "path"},
                "creates": {"type": "path"},
                "timeout": {"type": "int", "default": 3600},
            }
        )
        seconds = arguments["timeout"]
        options = {"argv": ["timeout", "--kill-after=10", str(seconds), *arguments["argv"]]}
        options.update({name: arguments[name] for name in ("chdir", "creates") if arguments[name]})
        host = str(self._task.delegate_to or (task_vars or {}).get("inventory_hostname", "the node"))
        with _Words(f"{self._task.get_name().rpartition(' : ')[2]}: {host}"):
            result.update(self._execute_module("ansible.legacy.command", options, task_vars=task_vars))
        # What timeout(1) ends with, by itself or by SIGKILL.
        if result.get("failed") and result.get("rc") in (124, 137):
            result["msg"] = f"{arguments['argv'][0]} did not end within {seconds} s"
        return result


class _Words(threading.Thread):
    """Says from time to time how long it is running."""

    def __init__(self, what: str) -> None:
        super().__init__(daemon=True)
        self._what = what
        self._since = time.monotonic()
        self._over = threading.Event()

    def run(self) -> None:
        wait = SECONDS_UNTIL_FIRST_WORD
        while not self._over.wait(wait):
            seconds = time.monotonic() - self._since
            Display().display(f"{self._what} goes on, {seconds:.0f} s", stderr=True)
            wait = seconds

    def __enter__(self) -> _Words:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
