# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Shows the acceptance report and keeps it in a file on the controller."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record, replace
from ansible_collections.trainium.cluster.plugins.module_utils._node.collective import result_of
from ansible_collections.trainium.cluster.plugins.module_utils._node.health_report import make_report, settle, table


class ActionModule(ActionBase):
    """What Ansible loads."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset({"path", "nodes", "gate", "outcome", "collective_minimum", "ranks"})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        gate = arguments["gate"]
        collective = result_of(
            gate["collective"],
            arguments.get("outcome") or {},
            float(arguments.get("collective_minimum") or 0),
            int(arguments.get("ranks") or 0),
            bool(self._task.check_mode),
        )
        report = make_report(arguments["nodes"], gate["nodes"], collective)
        # Plain values only, as they come back from the file.
        report = json.loads(json.dumps(report, default=str))
        path = Path(os.path.expanduser(str(arguments["path"])))
        before = read_record(path)
        report = settle(report, before)
        lines = table(report, gate["drained"], gate["resumed"], bool(self._task.check_mode))
        for line in lines:
            Display().display(line, color=constants.COLOR_ERROR if "FAILED" in line else None)
        changed = report != before
        try:
            if changed and not self._task.check_mode:
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                replace(path, (json.dumps(report, indent=2) + "\n").encode())
        except OSError as error:
            text = f"acceptance_report: {path} cannot be written ({error.strerror}); set acceptance_report_path."
            return {**result, "failed": True, "msg": text}
        return {**result, "changed": changed, "collective": report["collective"], "lines": lines}
