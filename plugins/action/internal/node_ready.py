# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gathers facts from a node as soon as it answers, and says that it waits."""

from __future__ import annotations

import itertools
import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

SECONDS_BETWEEN_TRIES = 1.0
SECONDS_BETWEEN_WORDS = 10.0
# A call to a node that is not there yet is repeated after 1, 3, 7, 15 s by the kernel. A new one after five seconds
# finds the node sooner; each has five seconds more, for one that is there and slow, up to what is configured.
SECONDS_OF_FIRST_TRY = 5


class ActionModule(ActionBase):
    """``ansible.builtin.setup``, tried until the node can be reached."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, arguments = self.validate_argument_spec(
            {
                "gather_subset": {"type": "list", "elements": "str", "default": ["all"]},
                "timeout": {"type": "int", "default": 600},
            }
        )
        host = (task_vars or {}).get("inventory_hostname", "the node")
        started = told = time.monotonic()
        patience = self._patience()
        for tries in itertools.count(1):
            if patience:
                self._connection.set_option("timeout", min(patience, tries * SECONDS_OF_FIRST_TRY))
            try:
                answer = self._execute_module(
                    "ansible.legacy.setup", {"gather_subset": arguments["gather_subset"]}, task_vars=task_vars
                )
                break
            except AnsibleConnectionFailure as error:
                now = time.monotonic()
                if now - started > arguments["timeout"]:
                    raise AnsibleConnectionFailure(
                        f"{host} did not answer over ssh for {arguments['timeout']} s: look at its console, and check "
                        f"that the security group lets this machine in ({str(error).splitlines()[0]})"
                    ) from error
                if now - told > SECONDS_BETWEEN_WORDS:
                    told = now
                    Display().display(
                        f"node_ready: waiting for {host} to answer over ssh ({now - started:.0f} s)", stderr=True
                    )
                self._start_anew()
                time.sleep(SECONDS_BETWEEN_TRIES)
        result.update(answer, waited=round(time.monotonic() - started, 1))
        return result

    def _patience(self) -> int:
        """How long a connection may take by its configuration, in seconds; 0 for one that has no such limit."""
        try:
            return int(self._connection.get_option("timeout"))
        except KeyError:
            return 0

    def _start_anew(self) -> None:
        """Forget a connection that is kept open: it may lead nowhere."""
        reset = getattr(self._connection, "reset", None)
        if reset:
            reset()
        self._discovered_interpreter = None
