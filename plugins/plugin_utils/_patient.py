# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asking a host of which the connection may be lost, for action plugins that ask again. Private to this collection."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

SECONDS_BETWEEN_LOOKS = 2.0
# What runs for days outlives a service that is busy or restarted, and a connection that is lost.
SECONDS_WITHOUT_ANSWER = 300.0


class PatientAction(ActionBase):
    """Base of action plugins for which a lost connection is a failure that may pass."""

    _requires_connection = True
    _supports_check_mode = True

    # What is said of a lost connection, with {reason}.
    lost = ""

    def plugin_name(self) -> str:
        return str(self._task.action.rpartition(".")[2])

    def call(self, module: str, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What a module says; where the host cannot be reached, a failure that is ``transient``."""
        try:
            name = f"trainium.cluster.{module}"
            result: dict[str, Any] = self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            result = {"unreachable": True, "msg": str(error)}
        if not result.get("unreachable"):
            return result
        reset = getattr(self._connection, "reset", None)
        if reset:
            reset()
        reason = (str(result.get("msg", "")).strip().splitlines() or ["no reason given"])[0]
        return {"failed": True, "transient": True, "msg": f"{self.plugin_name()}: {self.lost.format(reason=reason)}"}
