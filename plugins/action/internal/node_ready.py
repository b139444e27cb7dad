# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gathers facts from a node as soon as it answers, and says that it waits."""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import every, looks
from ansible_collections.trainium.cluster.plugins.plugin_utils._patient import PatientAction, tell

SECONDS_BETWEEN_TRIES = 1.0
SECONDS_BETWEEN_WORDS = 10.0
# A call to a node that is not there yet is repeated after 1, 3, 7, 15 s by the kernel. A new one after five seconds
# finds the node sooner; each has five seconds more, for one that is there and slow, up to what is configured.
SECONDS_OF_FIRST_TRY = 5


class ActionModule(PatientAction):
    """``ansible.builtin.setup``, tried until the node can be reached."""

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
        since, told = time.monotonic(), 0.0
        patience = self._patience()
        for tries, passed in enumerate(looks(arguments["timeout"], every(SECONDS_BETWEEN_TRIES)), 1):
            if patience:
                self._connection.set_option("timeout", min(patience, tries * SECONDS_OF_FIRST_TRY))
            try:
                answer = self._execute_module(
                    "ansible.legacy.setup", {"gather_subset": arguments["gather_subset"]}, task_vars=task_vars
                )
                return {**result, **answer, "waited": round(time.monotonic() - since, 1)}
            except AnsibleConnectionFailure as error:
                reason = str(error).splitlines()[0]
            if passed - told > SECONDS_BETWEEN_WORDS:
                told = passed
                tell(f"node_ready: waiting for {host} to answer over ssh ({passed:.0f} s)")
            self.reset_connection()
            self._discovered_interpreter = None
        raise AnsibleConnectionFailure(
            f"{host} did not answer over ssh for {arguments['timeout']} s: look at its console, and check that the "
            f"security group lets this machine in ({reason})"
        )

    def _patience(self) -> int:
        """How long a connection may take by its configuration, in seconds; 0 for one that has no such limit."""
        try:
            return int(self._connection.get_option("timeout"))
        except KeyError:
            return 0
