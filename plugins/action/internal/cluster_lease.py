# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tells the module cluster_lease which process the run of Ansible is: the parent of the one that this plugin is in."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """What Ansible loads."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        result.update(self._execute_module(module_args={**self._task.args, "pid": os.getppid()}, task_vars=task_vars))
        return result
