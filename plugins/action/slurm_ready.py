# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Looks at the nodes of a Slurm cluster again and again until all take jobs, and shows how far they are."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import looks
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.arguments import SLURM_READY
from ansible_collections.trainium.cluster.plugins.plugin_utils._patient import BETWEEN_LOOKS
from ansible_collections.trainium.cluster.plugins.plugin_utils._slurm_wait import SlurmAction


class ActionModule(SlurmAction):
    """The module of the same name, until there is nothing left to wait for."""

    lost = "the head node cannot be reached ({reason}); it is asked again."

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, options = self.validate_argument_spec(SLURM_READY)
        arguments = dict(self._task.args)
        for _passed in looks(options["timeout"], BETWEEN_LOOKS):
            found = self.call("slurm_ready", arguments, task_vars)
            known = not found.get("failed")
            done = known and bool(found["ready"] or found["drained"]) and not found["awaited"]
            if done or self._task.check_mode or not (known or found.get("transient")):
                break
            text = f"slurm_ready: {found['text']}" if known else found["msg"].rstrip(".")
            self.show(text)
        else:
            if known and not (options["require"] == "any" and found["ready"]):
                advice = "look into the logs of slurmctld there and of slurmd on the node"
                found.update(failed=True, msg=f"{text}, still after {options['timeout']} s; {advice}.")
        result.update(found)
        return result
