# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The trainings of a host, from what their folders hold and what Slurm says. Pure.

A training has a folder ``<name>-<12 digits of its digest>`` with ``train.log``, and after its end with ``report.json``.
slurm_job remembers the job in ``train.json``; without Slurm the first node notes its end in ``node.0.json``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import job_text

_FOLDER = re.compile(r"(.+)-[0-9a-f]{12}")
NO_JOB: dict[str, Any] = {
    "state": "UNKNOWN",
    "ended": False,
    "reason": "",
    "nodes": "",
    "batch_host": "",
    "restarts": 0,
    "started_at": None,
    "ended_at": None,
    "progress": {},
    "requeue_reason": "",
}


def name_of(folder: str) -> str | None:
    """The training's name by its folder's; None for another folder."""
    found = _FOLDER.fullmatch(folder)
    return found.group(1) if found else None


def chosen(folders: Mapping[str, float], name: str, limit: int) -> list[str]:
    """The newest folders of trainings. ``folders``: when each was last changed; ``name``: only of this, '' for all."""
    known = [folder for folder in folders if name_of(folder) and name in ("", name_of(folder))]
    return sorted(known, key=lambda folder: (-folders[folder], folder))[:limit]


def steps_wanted(record: Mapping[str, Any], report: Mapping[str, Any]) -> int | None:
    """How many steps the training is to do; None where nobody has noted it."""
    job = record.get("job")
    progress = job.get("progress") if isinstance(job, Mapping) else None
    noted = progress.get("steps") if isinstance(progress, Mapping) else None
    for value in (report.get("steps_wanted"), record.get("steps"), noted):
        if isinstance(value, int) and value > 0:
            return value
    return None


def unit_job(end: Mapping[str, Any]) -> dict[str, Any]:
    """The job as Slurm would tell of it, by what the first node has noted; it goes on where that is {}."""
    if not end:
        return NO_JOB
    known = {name: end.get(name) for name in ("started_at", "ended_at")}
    state = "COMPLETED" if end.get("exit_code") == 0 else "FAILED"
    return {**NO_JOB, **known, "state": state, "ended": True, "restarts": end.get("restarts") or 0}


def described(
    folder: str, record: Mapping[str, Any], report: Mapping[str, Any], job: Mapping[str, Any], log_here: bool
) -> dict[str, Any]:
    """One training: its ``report`` as far as one is possible, whether it is ``running``, and a ``line`` for the screen.

    ``record`` and ``report`` are {} where there is none; ``job`` is what slurm_job_info says, or NO_JOB.
    """
    name = name_of(folder) or folder
    # With a report it has ended, however long Slurm has forgotten it.
    running = not report and not job["ended"]
    state = "COMPLETED" if report else job["state"]
    job_id = report.get("job_id") or record.get("job_id") or 0
    made = {
        "name": name,
        "job_id": job_id,
        "state": "" if running else state,
        "hosts": job["nodes"],
        "steps_wanted": steps_wanted(record, report) or 0,
        "restarts": job["restarts"],
        "started_at": job["started_at"],
        "ended_at": None if running else job["ended_at"],
        "log_host": job["batch_host"],
    }
    return {
        "name": name,
        "folder": folder,
        "job_id": job_id,
        "running": running,
        "state": state,
        "batch_host": job["batch_host"],
        "log_here": log_here,
        "progress": dict(job["progress"]),
        "report": dict(report) or made,
        "line": f"{name}: {_line(job_id, job, report)}",
    }


def _line(job_id: int, job: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    if report:
        losses = (report.get("initial_loss"), report.get("final_loss"))
        first, last = (f"{value:.4g}" if isinstance(value, float) else value for value in losses)
        return f"has succeeded after {report.get('steps')} steps, loss {first} to {last}"
    text = job_text({**job, "job_id": job_id})
    if job_id:
        return text
    return text.replace("job 0 UNKNOWN", "without Slurm", 1).replace("job 0", "without Slurm", 1)
