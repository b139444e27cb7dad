# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ask for a job again and again until it has ended, and show how far it is.

The waiting is done here and not in the module: the connection may be lost in the middle, and what is shown must reach
the screen at once.
"""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.trainium.cluster.plugins.module_utils._planners.slurm_jobs import progress_text

SECONDS_BETWEEN_LOOKS = 2.0
# A job of days outlives a controller that is busy or restarted, and a connection that is lost.
SECONDS_WITHOUT_ANSWER = 300.0


class ActionModule(ActionBase):
    """The module of the same name, once or until the job has ended."""

    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        wait = str(arguments.get("wait", False)).lower() in ("true", "yes", "1", "on")
        until = time.monotonic() + float(arguments.get("wait_timeout") or 604800)
        shown = ""
        answered = time.monotonic()
        while True:
            job = self._look(arguments, task_vars)
            if not job.get("transient"):
                answered = time.monotonic()
            elif wait and time.monotonic() - answered < SECONDS_WITHOUT_ANSWER:
                if job["msg"] != shown:
                    shown = job["msg"]
                    Display().display(f"{shown} It is asked again.", stderr=True)
                time.sleep(SECONDS_BETWEEN_LOOKS)
                continue
            if job.get("failed") or not wait or job.get("ended") or self._task.check_mode:
                result.update(job)
                return result
            text = progress_text(job, int(arguments["job_id"]), int(arguments.get("steps") or 0) or None)
            if text != shown:
                # To stderr, so that output meant for a program stays whole.
                Display().display(f"slurm_job_info: {text}", stderr=True)
                shown = text
            if time.monotonic() > until:
                result.update(
                    job, failed=True, msg=f"slurm_job_info: {text}, still after the wait_timeout; it goes on."
                )
                return result
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _look(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What the module says; a lost connection as a failure that may pass."""
        try:
            job: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            reset = getattr(self._connection, "reset", None)
            if reset:
                reset()
            reason = (str(error).strip().splitlines() or ["no reason given"])[0]
            job = {
                "failed": True,
                "transient": True,
                "msg": f"slurm_job_info: the head node cannot be reached ({reason}); the job goes on without it.",
            }
        return job
