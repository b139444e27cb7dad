# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs the module node_check between two looks at the controller's clock and judges the node's clock by them."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import (
    certain_offset,
    gate_record,
    with_clock,
)


class ActionModule(ActionBase):
    """The module of the same name, with the clock compared to the controller's."""

    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        before = time.time()
        result.update(self._execute_module(task_vars=task_vars))
        after = time.time()
        if "checks" not in result:
            return result
        arguments = self._task.args
        wanted = {
            "clock_offset": float(arguments.get("clock_offset", 2.0)),
            "clock_synchronised": str(arguments.get("clock_synchronised", True)).lower() in ("true", "yes", "1", "on"),
        }
        clock = result["clock"]
        offset = certain_offset(before, float(clock["time"]), after)
        result["checks"] = with_clock(result["checks"], clock["synchronised"], offset, wanted)
        result["gate"] = gate_record(result["name"], result["checks"], result["gate"])
        return result
