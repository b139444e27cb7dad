# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks the module dataset again until the transfer ends, and shows how far it is.

The transfer is a process of its own on the host: what is lost with a connection is only the sight of it.
"""

from __future__ import annotations

import uuid
from typing import Any

from ansible_collections.trainium.cluster.plugins.plugin_utils._patient import PatientAction

# The first look is soon, so that a small dataset needs no second one.
FIRST_WAIT = 5
WAIT = 20
LOST_SECONDS = 600.0
# What an attempt is known by; the addresses need not be sent again.
KNOWN_BY = ("name", "source", "destination", "checksum", "checksums", "extract")


class ActionModule(PatientAction):
    """The module of the same name, with its progress on the screen."""

    _supports_async = False
    lost = "{host}: the connection was lost ({reason}); the transfer goes on there."

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
        again.update(attempt=attempt, wait=WAIT)
        started = bool(found.get("running"))
        while found.get("running"):
            self.show(f"dataset: {host}: {found.get('progress', '')}")
            found = self.patiently(lambda: self.call("dataset", again, task_vars), LOST_SECONDS)
        if started and not found.get("failed"):
            # The answer that said so may have been lost with its connection.
            found["changed"] = True
            if not found.get("complete"):
                found.update(
                    failed=True, msg=f"The transfer to {host} ended while it was not seen; run again to go on."
                )
        result.update(found)
        return result
