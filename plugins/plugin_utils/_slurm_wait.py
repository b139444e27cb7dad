# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ask for a job again and again until it has ended, and show how far it is. Private to this collection.

The waiting is done here and not in a module: the connection may be lost in the middle, and what is shown must reach the
screen at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansible.utils.display import Display
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import job_text
from ansible_collections.trainium.cluster.plugins.plugin_utils._patient import (
    SECONDS_BETWEEN_LOOKS,
    SECONDS_WITHOUT_ANSWER,
    PatientAction,
)

# The same line is shown again after this time, so that nobody takes a long wait for a dead one.
SECONDS_UNTIL_REPEATED = 60.0
# A job of days is looked at less often than one of minutes, and fills less of the screen.
LONGEST_BETWEEN_LOOKS = 30.0
LOOKS = 120.0


class SlurmAction(PatientAction):
    """Base of the action plugins that follow a job."""

    lost = "the head node cannot be reached ({reason}); the job goes on without it."

    _shown = ""
    _shown_at = 0.0

    def show(self, text: str) -> None:
        """To stderr, so that output meant for a program stays whole."""
        now = time.monotonic()
        if text != self._shown or now - self._shown_at > SECONDS_UNTIL_REPEATED:
            Display().display(text, stderr=True)
            self._shown, self._shown_at = text, now

    def patiently(self, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The first answer that is not a failure that may pass, or the failure where it does not pass in minutes."""
        since = time.monotonic()
        while True:
            result = ask()
            if not result.get("transient") or time.monotonic() - since > SECONDS_WITHOUT_ANSWER:
                return result
            self.show(f"{result['msg']} It is asked again.")
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def follow(self, arguments: dict[str, Any], timeout: float, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """slurm_job_info with ``arguments`` until the job has ended, or a failure."""
        since = time.monotonic()
        until = since + timeout
        before: dict[str, Any] = {}
        while True:
            job = self.patiently(lambda: self.call("slurm_job_info", arguments, task_vars))
            if job.get("restarts") and job["restarts"] == before.get("restarts"):
                # A node that has come back no longer tells why the job was put back.
                job["requeue_reason"] = job["requeue_reason"] or before["requeue_reason"]
            before = job
            if job.get("failed") or job.get("ended"):
                return job
            text = f"{self.plugin_name()}: {job_text(job)}"
            self.show(text)
            if time.monotonic() > until:
                return {**job, "failed": True, "msg": f"{text}, still after the wait_timeout; it goes on."}
            pause = min(max(SECONDS_BETWEEN_LOOKS, (time.monotonic() - since) / LOOKS), LONGEST_BETWEEN_LOOKS)
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
