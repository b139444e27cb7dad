# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Submits or cancels a job and follows it until it has ended."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.arguments import SLURM_JOB
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import failure_text
from ansible_collections.trainium.cluster.plugins.plugin_utils._slurm_wait import SlurmAction


class ActionModule(SlurmAction):
    """The module of the same name, then slurm_job_info until the end."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, options = self.validate_argument_spec(SLURM_JOB)
        present = options["state"] == "present"
        arguments = dict(self._task.args)
        if not options["wait"] or self._task.check_mode:
            result.update(self._execute_module(task_vars=task_vars))
            return result
        # An identical job is known again, so asking twice does not submit twice, unless just that is wanted.
        if present and options["resubmit"] == "always":
            first = self.call("slurm_job", arguments, task_vars)
        else:
            first = self.patiently(lambda: self.call("slurm_job", arguments, task_vars))
        result.update(first)
        if first.get("failed"):
            return result
        if present:
            result.update(self._followed(first, options, arguments, task_vars))
            if result["ended"] and not result["succeeded"] and not result.get("failed"):
                for line in result["last_lines"]:
                    self.show(f"  {line}")
                result.update(failed=True, msg=f"slurm_job: {failure_text(result, str(first['log']))}")
            return result
        for job_id in first["cancelled"]:
            job = self.follow({"job_id": job_id}, options["wait_timeout"], task_vars)
            if job.get("failed"):
                result.update(failed=True, msg=job["msg"])
        return result

    def _followed(
        self,
        first: dict[str, Any],
        options: dict[str, Any],
        arguments: dict[str, Any],
        task_vars: dict[str, Any] | None,
    ) -> dict[str, Any]:
        """What to update ``first`` with: the job at its end, which the record on the host then knows as well."""
        if first["ended"]:
            return {}
        asked: dict[str, Any] = {"job_id": first["job_id"]}
        if first["log"]:
            asked["log"] = first["log"]
        if options["steps"] is not None:
            asked["steps"] = options["steps"]
        job = self.follow(asked, options["wait_timeout"], task_vars)
        kept: dict[str, Any] = {name: first[name] for name in ("changed", "submitted", "diff") if name in first}
        if job.get("failed"):
            return {**job, **kept}
        noting = {**arguments, "resubmit": "never"}
        noted = self.patiently(lambda: self.call("slurm_job", noting, task_vars))
        if noted.get("failed"):
            return {**noted, **kept}
        return {**noted, **kept, "requeue_reason": noted["requeue_reason"] or job["requeue_reason"]}
