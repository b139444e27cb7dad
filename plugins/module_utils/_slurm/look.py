# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of a job: the controller, accounting, our own record and the end of its log, in this order."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import tail
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls as slurm
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import job_log as report
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import submit as plan
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.jobs import summed, with_forgotten

TAIL = 65536  # bytes of the log that are read: a long training's log is large
CLOCKS_APART = 60.0  # seconds by which a job may seem to end before it was submitted


def read_tail(path: str) -> str:
    """The end of a file as text; '' where there is none."""
    try:
        return tail(path, TAIL)
    except (FileNotFoundError, IsADirectoryError):
        return ""
    except (OSError, ValueError) as error:
        raise TrainiumError(f"log {path} cannot be read ({error}); give a file that the user may read.") from error


def look(
    job_id: int, log: str = "", steps: int | None = None, record: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """State, progress and, after a failure, its reasons; from the controller, else accounting, else our own record.

    ``record``: what is remembered of this very job; a job of the same number with another comment is not it.
    """
    record = record or {}
    now = time.time()
    tasks = slurm.jobs(job_id)
    job_steps: list[dict[str, str]] = []
    digest = record.get("digest", "")
    if digest and tasks and plan.digest_in(tasks[0]["comment"]) not in ("", digest):
        # The cluster was made anew and counts from 1 again.
        tasks = []
    if not tasks:
        tasks, job_steps = slurm.accounted_job(job_id)
        if digest and tasks and plan.digest_in(tasks[0]["comment"]) not in ("", digest):
            tasks, job_steps = [], []
    if not tasks or tasks[0]["task"]:
        listed = [item for item in slurm.completion(job_id) if not record or _is_recorded(item, record)]
        tasks = with_forgotten(tasks, [*listed, *_accounted(job_id)[0]]) if tasks else listed
    job = summed(tasks, now)
    if not tasks and record.get("ended"):
        return dict(record["job"])
    text = read_tail(log) if log else ""
    job["job_id"] = job_id
    job["progress"] = report.progress(text, steps)
    job["succeeded"] = _succeeded(job, steps)
    failed = job["ended"] and not job["succeeded"]
    if failed and not job_steps:
        job_steps = _accounted(job_id)[1]
    job["node_exit_codes"] = report.node_exit_codes(text, job_steps, job) if failed else []
    job["requeue_reason"] = _requeue_reason(text) if job["restarts"] else ""
    job["last_lines"] = report.last_lines(text)
    return job


def _is_recorded(item: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a completed job is the one in the record; its number alone may be that of a job before."""
    ended_at = item["ended_at"]
    recent = ended_at is None or ended_at + CLOCKS_APART >= record.get("submitted_at", 0)
    return bool(item["name"] == record.get("name") and recent)


def _succeeded(job: Mapping[str, Any], steps: int | None) -> bool | None:
    """None where nobody knows."""
    if job["state"] == "UNKNOWN":
        step = job["progress"].get("step")
        return step >= steps if steps and step is not None else None
    return bool(job["state"] == "COMPLETED")


def _accounted(job_id: int) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """What accounting adds to what the controller knows; nothing where it does not answer now."""
    try:
        return slurm.accounted_job(job_id)
    except slurm.SlurmBusyError:
        return [], []


def _requeue_reason(text: str) -> str:
    """By the log; a node that died in silence is seen by Slurm alone."""
    reason = report.requeue_reason(text)
    if reason:
        return reason
    down = slurm.nodes_down()
    return f"node failure, {down} down" if down else ""


def shown(job: Mapping[str, Any]) -> dict[str, Any]:
    """What a module returns of a job."""
    names = ["job_id", "name", "state", "ended", "reason", "exit_code", "nodes", "batch_host", "restarts", "tasks"]
    names += ["started_at", "ended_at", "node_exit_codes", "progress", "last_lines", "requeue_reason"]
    return {**{name: job[name] for name in names}, "succeeded": bool(job["succeeded"])}
