# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Follow a training on Kubernetes as a job of Slurm is followed. Private to this collection."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.arguments import CONNECTION
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import failure_text
from ansible_collections.trainium.cluster.plugins.plugin_utils._slurm_wait import SlurmAction


class KubernetesAction(SlurmAction):
    """Base of the action plugins that follow a training."""

    lost = "{host} cannot be reached ({reason}); the training goes on without it."
    info = "kubernetes_job_info"

    def followed(self, options: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """kubernetes_job_info until the end; a failure where the training did not end well."""
        names = ("name", "steps", "success", *CONNECTION)
        arguments = {name: options[name] for name in names if options[name] is not None}
        job = self.follow(arguments, options["wait_timeout"], task_vars)
        if job.get("failed") or job["succeeded"] or not (job["ended"] or job["stuck"]):
            return job
        if job["stuck"]:
            text = f"job {job['job_id']} cannot go on ({job['reason']}); it was left, since pods of it run or ran"
            return {**job, "failed": True, "msg": f"{self.plugin_name()}: {text}. {job['remedy']}"}
        for line in job["last_lines"]:
            self.show(f"  {line}")
        text = failure_text(job, "of rank 0").replace("; see the end of its log of rank 0.", "")
        remedy = job["remedy"] or "See the end of its log, and those of the other ranks."
        return {**job, "failed": True, "msg": f"{self.plugin_name()}: {text}. {remedy}"}
