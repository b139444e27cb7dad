# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Submits or ends a training on Kubernetes and follows it until it has ended."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.arguments import KUBERNETES_JOB
from ansible_collections.trainium.cluster.plugins.plugin_utils._kubernetes_wait import KubernetesAction


class ActionModule(KubernetesAction):
    """The module of the same name, then kubernetes_job_info until the end."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, options = self.validate_argument_spec(KUBERNETES_JOB)
        arguments = dict(self._task.args)
        if self._task.check_mode:
            result.update(self._execute_module(task_vars=task_vars))
            return result
        # Objects are known again by their names, so that asking twice does not submit twice.
        first = self.patiently(lambda: self.call("kubernetes_job", arguments, task_vars))
        result.update(first)
        if first.get("failed") or not options["wait"] or options["state"] != "present":
            return result
        kept = {name: first[name] for name in ("changed", "submitted", "made", "ended_others", "diff")}
        result.update({**self.followed(options, task_vars), **kept})
        return result
