# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Submits or cancels a job and follows it until it has ended."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._planners.slurm_report import failure_text
from ansible_collections.trainium.cluster.plugins.module_utils._slurm_arguments import SLURM_JOB
from ansible_collections.trainium.cluster.plugins.plugin_utils._slurm_wait import SlurmAction


class ActionModule(SlurmAction):
    """The module of the same name, then slurm_job_info until the end."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, options = self.validate_argument_spec(SLURM_JOB)
        arguments = dict(self._task.args)

        def submit() -> dict[str, Any]:
            return self.call("slurm_job", arguments, task_vars)

        # An identical job is known again, so asking twice does not submit twice, unless just that is wanted.
        again = options["resubmit"] != "always" or options["state"] == "absent"
        first = self.patiently(submit) if options["wait"] and again else submit()
        result.update(first)
        if first.get("failed") or not options["wait"] or self._task.check_mode or not first.get("job_id"):
            return result
        if not first.get("ended"):
            result.update(self._followed(first, options, arguments, task_vars))
            result.update({name: first[name] for name in ("changed", "diff") if name in first})
        if options["state"] == "absent":
            return result
        if result.get("ended") and not result.get("succeeded") and not result.get("failed"):
            text = failure_text(result, str(first.get("log") or ""))
            for line in result["last_lines"]:
                self.show(f"  {line}")
            result.update(failed=True, msg=f"slurm_job: {text}")
        return result

    def _followed(
        self,
        first: dict[str, Any],
        options: dict[str, Any],
        arguments: dict[str, Any],
        task_vars: dict[str, Any] | None,
    ) -> dict[str, Any]:
        """The job at its end, which the record on the host then knows as well."""
        asked = {"job_id": first["job_id"], "log": first.get("log") or None, "steps": options["steps"]}
        asked = {name: value for name, value in asked.items() if value is not None}
        job = self.follow(asked, options["wait_timeout"], task_vars)
        if job.get("failed") or options["state"] == "absent":
            return job
        noting = {**arguments, "resubmit": "never"}
        noted = self.patiently(lambda: self.call("slurm_job", noting, task_vars))
        return noted if noted.get("failed") else {**job, **noted, "submitted": first["submitted"]}
