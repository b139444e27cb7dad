# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ask for a job again and again until it has ended, and show how far it is. Private to this collection.

The waiting is done here and not in a module: the connection may be lost in the middle, and what is shown must reach the
screen at once.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace, looks
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import job_text
from ansible_collections.trainium.cluster.plugins.plugin_utils._patient import PatientAction

# A job of days is looked at less often than one of minutes, and fills less of the screen: the pause grows with the time
# that has passed, by a second for every two minutes.
FOLLOWED = Pace(2.0, 1 + 1 / 120, 30.0)


class SlurmAction(PatientAction):
    """Base of the action plugins that follow a job."""

    lost = "the head node cannot be reached ({reason}); the job goes on without it."
    # The module that looks at a job once.
    info = "slurm_job_info"

    def follow(self, arguments: dict[str, Any], timeout: float, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """The module of ``info`` with ``arguments`` until the job has ended, or a failure."""
        job: dict[str, Any] = {}
        text = ""
        for _passed in looks(timeout, FOLLOWED):
            before = job
            job = self.patiently(lambda: self.call(self.info, arguments, task_vars))
            if job.get("restarts") and job["restarts"] == before.get("restarts"):
                # A node that has come back no longer tells why the job was put back.
                job["requeue_reason"] = job["requeue_reason"] or before["requeue_reason"]
            if job.get("failed") or job.get("ended") or job.get("stuck"):
                return job
            text = f"{self.plugin_name()}: {job_text(job)}"
            self.show(text)
        return {**job, "failed": True, "msg": f"{text}, still after the wait_timeout; it goes on."}
