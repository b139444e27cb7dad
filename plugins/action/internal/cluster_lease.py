# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tells the module cluster_lease which process the run of Ansible is: the one that has started that of this plugin."""

from __future__ import annotations

import os
from multiprocessing import parent_process
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """What Ansible loads."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        started_by = parent_process()
        run = started_by.pid if started_by else os.getppid()
        # Where that was killed meanwhile, the parent is another, which may live for ever, and so would the lease.
        if os.getppid() != run:
            result.update(failed=True, msg="cluster_lease: the run of Ansible that takes the lease has ended.")
            return result
        result.update(self._execute_module(module_args={**self._task.args, "pid": run}, task_vars=task_vars))
        return result
