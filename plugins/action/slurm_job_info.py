# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Looks at a job once, or again and again until it has ended, and shows how far it is."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.arguments import SLURM_JOB_INFO
from ansible_collections.trainium.cluster.plugins.plugin_utils._slurm_wait import SlurmAction


class ActionModule(SlurmAction):
    """The module of the same name, once or until the job has ended."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, options = self.validate_argument_spec(SLURM_JOB_INFO)
        if options["wait"] and not self._task.check_mode:
            result.update(self.follow(dict(self._task.args), options["wait_timeout"], task_vars))
        else:
            result.update(self._execute_module(task_vars=task_vars))
        return result
