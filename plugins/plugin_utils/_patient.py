# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting on the controller: how a wait is shown, and asking a host of which the connection may be lost. Private."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import every, looks
from ansible_collections.trainium.cluster.plugins.plugin_utils._phases import printable

BETWEEN_LOOKS = every(2.0)
# What runs for days outlives a service that is busy or restarted, and a connection that is lost.
SECONDS_WITHOUT_ANSWER = 300.0
# The same line is shown again after this time, so that nobody takes a long wait for a dead one.
SECONDS_UNTIL_REPEATED = 60.0


def tell(text: str) -> None:
    """To stderr, so that output meant for a program stays whole; what a job says does nothing to the terminal."""
    Display().display("\n".join(map(printable, text.split("\n"))), stderr=True)


class PatientAction(ActionBase):
    """Base of action plugins that ask again and show how far it is; a lost connection is a failure that may pass."""

    _requires_connection = True
    _supports_check_mode = True

    # What is said of a lost connection, with {host} and {reason}.
    lost = ""

    shown = ""
    _shown_at = 0.0

    def plugin_name(self) -> str:
        return str(self._task.action.rpartition(".")[2])

    def show(self, text: str) -> None:
        """A line that says something new, or that was not repeated for a while."""
        now = time.monotonic()
        if text != self.shown or now - self._shown_at > SECONDS_UNTIL_REPEATED:
            tell(text)
            self.shown, self._shown_at = text, now

    def call(self, module: str, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What a module says; where the host cannot be reached, a failure that is ``transient``."""
        try:
            name = f"trainium.cluster.{module}"
            result: dict[str, Any] = self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            result = {"unreachable": True, "msg": str(error)}
        if not result.get("unreachable"):
            return result
        self.reset_connection()
        reason = (str(result.get("msg", "")).strip().splitlines() or ["no reason given"])[0]
        sentence = self.lost.format(host=(task_vars or {}).get("inventory_hostname", "the host"), reason=reason)
        return {"failed": True, "transient": True, "msg": f"{self.plugin_name()}: {sentence}"}

    def reset_connection(self) -> None:
        """Forget a connection that is kept open: it may lead nowhere."""
        reset = getattr(self._connection, "reset", None)
        if reset:
            reset()

    def patiently(self, ask: Callable[[], dict[str, Any]], patience: float = SECONDS_WITHOUT_ANSWER) -> dict[str, Any]:
        """The first answer that is not a failure that may pass, or the failure where it does not pass in minutes."""
        result: dict[str, Any] = {}
        for _passed in looks(patience, BETWEEN_LOOKS):
            result = ask()
            if not result.get("transient"):
                break
            self.show(f"{result['msg']} It is asked again.")
        return result
