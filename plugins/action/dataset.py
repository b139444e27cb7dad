# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks the module dataset again until the transfer ends, and shows how far it is.

The transfer is a process of its own on the host: what is lost with a connection is only the sight of it.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

# The first look is soon, so that a small dataset needs no second one.
FIRST_WAIT = 5
WAIT = 20
LOST_SECONDS = 600.0
SECONDS_BETWEEN_TRIES = 5.0
# What an attempt is known by; the addresses need not be sent again.
KNOWN_BY = ("name", "source", "destination", "checksum", "checksums", "extract")


class ActionModule(ActionBase):
    """The module of the same name, with its progress on the screen."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        options = dict(self._task.args)
        if int(options.get("wait") or 0) or self._task.check_mode:
            result.update(self._execute_module(module_args=options, task_vars=task_vars))
            return result
        host = str((task_vars or {}).get("inventory_hostname", "the host"))
        attempt = str(options.get("attempt") or uuid.uuid4().hex)
        first = {**options, "attempt": attempt, "wait": FIRST_WAIT}
        found: dict[str, Any] = self._execute_module(module_args=first, task_vars=task_vars)
        again = {name: options[name] for name in KNOWN_BY if name in options}
        started = bool(found.get("running"))
        while found.get("running"):
            self._tell(f"dataset: {host}: {found.get('progress', '')}")
            found = self._ask(host, {**again, "attempt": attempt, "wait": WAIT}, task_vars)
        if started and not found.get("failed"):
            # The answer that said so may have been lost with its connection.
            found["changed"] = True
            if not found.get("complete"):
                found.update(
                    failed=True, msg=f"The transfer to {host} ended while it was not seen; run again to go on."
                )
        result.update(found)
        return result

    def _ask(self, host: str, options: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """The module's answer, also over a connection that was lost and comes back within LOST_SECONDS."""
        deadline = time.monotonic() + LOST_SECONDS
        while True:
            try:
                answer: dict[str, Any] = self._execute_module(module_args=options, task_vars=task_vars)
                return answer
            except AnsibleConnectionFailure:
                if time.monotonic() > deadline:
                    raise
            self._tell(f"dataset: {host}: the connection was lost, the transfer goes on there")
            self._connection.reset()
            time.sleep(SECONDS_BETWEEN_TRIES)

    @staticmethod
    def _tell(text: str) -> None:
        Display().display(text, stderr=True)
