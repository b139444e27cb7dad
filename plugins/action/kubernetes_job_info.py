# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Looks at a training once, or again and again until it has ended, and shows how far it is."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.arguments import KUBERNETES_JOB_INFO
from ansible_collections.trainium.cluster.plugins.plugin_utils._kubernetes_wait import KubernetesAction


class ActionModule(KubernetesAction):
    """The module of the same name, once or until the training has ended."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, options = self.validate_argument_spec(KUBERNETES_JOB_INFO)
        if options["wait"] and not self._task.check_mode:
            job = self.follow(
                {name: value for name, value in self._task.args.items() if name != "logs"},
                options["wait_timeout"],
                task_vars,
            )
            if job.get("failed") or not options["logs"]:
                result.update(job)
                return result
        result.update(self._execute_module(task_vars=task_vars))
        return result
