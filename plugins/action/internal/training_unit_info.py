# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ask for a training's unit again and again until it has ended, and show how far it is.

The waiting is done here and not in the module: the connection may be lost in the middle, and what is shown must reach
the screen at once. Every node is followed by a process of its own; a file on the controller tells the others that the
training has failed on one, since those may wait for that node for ever.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import looks
from ansible_collections.trainium.cluster.plugins.module_utils._training.unit import text_of
from ansible_collections.trainium.cluster.plugins.plugin_utils._patient import (
    BETWEEN_LOOKS,
    SECONDS_WITHOUT_ANSWER,
    PatientAction,
)

FAILED = "failed"


class ActionModule(PatientAction):
    """The module of the same name, once or until the training has ended."""

    # A node that is gone for longer than that has taken its part of the training along.
    lost = "the node cannot be reached ({reason}); it is asked again."

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        wait = boolean(arguments.get("wait", False), strict=False) and not self._task.check_mode
        together = str(arguments.get("together") or "")
        answered = 0.0
        for passed in looks(float(arguments.get("wait_timeout") or 604800), BETWEEN_LOOKS):
            state = self.call("internal.training_unit_info", arguments, task_vars)
            if not state.get("transient"):
                answered = passed
            lost = bool(state.get("transient")) and passed - answered < SECONDS_WITHOUT_ANSWER
            if not wait:
                break
            if not lost and (state.get("failed") or state["ended"] or not state["active"]):
                if together and not state.get("succeeded"):
                    Path(together, FAILED).touch()
                break
            if together and Path(together, FAILED).exists():
                state.update(given_up=True, failed=False)
                break
            steps = int(arguments.get("steps") or 0) or None
            text = str(state["msg"]) if lost else f"training_unit_info: {text_of(arguments['name'], state, steps)}"
            # The first node has the log and the steps; a line from each of the others would say nothing more.
            if lost or state["progress"] or not self.shown:
                self.show(text)
        else:
            state.update(failed=True, msg=f"{text}, still after the wait_timeout; it goes on.")
        result.update(state)
        return result
