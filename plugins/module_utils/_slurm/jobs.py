# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What Slurm says of a job. Pure.

A job is a dictionary: ``job_id`` and ``restarts`` (int), ``started_at`` and ``ended_at`` (seconds since 1970, or None),
``requeue`` (bool) and the texts ``name``, ``task``, ``state``, ``reason``, ``exit_code``, ``batch_host``, ``nodes`` and
``comment``, '' for what is missing. Slurm is to be asked with SLURM_TIME_FORMAT=%s.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import expand

# States after which a job does not run again by itself. UNKNOWN: Slurm forgets jobs minutes after their end
# (MinJobAge).
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
        "UNKNOWN",
    }
)
# States in which a job that has not ended is on no node.
_QUEUED = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
NEVER = "DependencyNeverSatisfied"
# After so many launches that failed, such as by a prolog that refused the nodes (MaxBatchRequeue in slurm.conf(5)).
HELD = ("JobHoldMaxRequeue", "launch_failure_limit_exceeded_requeued_held")
# Of a job that may be requeued, these show for a moment before it is back in the queue.
PASSING = frozenset({"NODE_FAIL", "PREEMPTED", "BOOT_FAIL"})
SECONDS_UNTIL_REQUEUED = 60
# Which state stands for an array as long as a task goes on, and which when all have ended.
_GOING_ON = ["RUNNING", "COMPLETING", "STAGE_OUT", "SUSPENDED", "STOPPED", "CONFIGURING"]
_ENDINGS = ["FAILED", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "TIMEOUT", "DEADLINE", "PREEMPTED", "CANCELLED"]
# What sacct is asked for, in the order that ``accounted`` reads. Free text comes last.
SACCT_FIELDS = "JobID,State,ExitCode,NodeList,Start,End,Reason,JobName,Comment,SubmitLine"

_FIELD = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9/:_]*)=(\S*)")
_ALLOCATION = re.compile(r"(\d+)(?:_(\d+|\[.*\]))?")


def _seconds(text: str) -> int | None:
    """'1700000000' as it is; None for Unknown, None and an empty text."""
    return int(text) if text.isdecimal() else None


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def present(text: str, names: Iterable[str]) -> dict[str, list[str]]:
    """The jobs that are on each of the nodes, of what ``squeue --states=all --format=%i|%T|%N`` says."""
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    for line in text.splitlines():
        job, _sign, rest = line.strip().partition("|")
        state, sign, hosts = rest.partition("|")
        if sign and state not in ENDED | _QUEUED:
            for name in expand(hosts):
                found.get(name, {})[job] = None
    return {name: list(jobs) for name, jobs in found.items()}


def job_of(line: str) -> dict[str, Any]:
    """A line of ``scontrol show job --oneliner`` as a job."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(line):
        fields.setdefault(name, value)
    shown = {name: "" if value == "(null)" else value for name, value in fields.items()}
    return {
        "job_id": _number(shown.get("JobId", "")),
        "name": shown.get("JobName", ""),
        "task": shown.get("ArrayTaskId", ""),
        "state": shown.get("JobState", "UNKNOWN"),
        "reason": shown.get("Reason", ""),
        "exit_code": shown.get("ExitCode", ""),
        "batch_host": shown.get("BatchHost", ""),
        "nodes": shown.get("NodeList", ""),
        "restarts": _number(shown.get("Restarts", "")),
        "requeue": shown.get("Requeue") == "1",
        "started_at": _seconds(shown.get("StartTime", "")),
        "ended_at": _seconds(shown.get("EndTime", "")),
        "comment": shown.get("Comment", ""),
    }


def jobs_of(text: str) -> list[dict[str, Any]]:
    """``scontrol show job --oneliner``: one job, or the tasks of an array."""
    return [job_of(line) for line in text.splitlines() if line.startswith("JobId=")]


def accounted(text: str) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """``sacct --parsable2 --noheader --duplicates`` with SACCT_FIELDS: the jobs (tasks of an array), and their steps.

    A job that was requeued has a line for each time; the last one counts and the others are its restarts. A step is
    ``{"step": "12.0", "state": "FAILED", "exit_code": "3:0", "nodes": "n[1-2]"}``.
    """
    jobs: dict[str, dict[str, Any]] = {}
    steps: list[dict[str, str]] = []
    for line in text.splitlines():
        parts = line.split("|", SACCT_FIELDS.count(","))
        if len(parts) <= SACCT_FIELDS.count(","):
            continue
        number, state, exit_code, nodes, start, end, reason, name, comment, submitted = parts
        state = (state.split() or ["UNKNOWN"])[0]
        nodes = "" if nodes == "None assigned" else nodes
        match = _ALLOCATION.fullmatch(number)
        if not match:
            steps.append({"step": number, "state": state, "exit_code": exit_code, "nodes": nodes})
            continue
        before = jobs.get(number)
        jobs[number] = {
            "job_id": int(match[1]),
            "name": name,
            "task": match[2] or "",
            "state": state,
            "reason": reason,
            "exit_code": exit_code,
            "batch_host": "",
            "nodes": nodes,
            "restarts": before["restarts"] + 1 if before else 0,
            "requeue": False,
            "started_at": _seconds(start),
            "ended_at": _seconds(end),
            "comment": comment or submitted,
        }
    return list(jobs.values()), steps


def completed(lines: Iterable[str]) -> dict[int, list[dict[str, Any]]]:
    """The lines of jobcomp/filetxt by the number that sbatch printed; [] for a job that is not among them.

    A job that was requeued has a line for each time.
    """
    found: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for line in lines:
        fields = dict(_FIELD.findall(line))
        array = fields.get("ArrayJobId", "")
        number, task = (array, fields.get("ArrayTaskId", "")) if array.isdecimal() else (fields["JobId"], "")
        before = found[_number(number)].get(task)
        nodes = fields.get("NodeList", "")
        found[_number(number)][task] = {
            **job_of(line),
            "name": fields.get("Name", ""),
            "task": task,
            "nodes": "" if nodes == "(null)" else nodes,
            "restarts": before["restarts"] + 1 if before else 0,
            "started_at": _local_seconds(fields.get("StartTime", "")),
            "ended_at": _local_seconds(fields.get("EndTime", "")),
        }
    return defaultdict(list, {number: list(tasks.values()) for number, tasks in found.items()})


def _local_seconds(text: str) -> int | None:
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None


def cannot_start(job: Mapping[str, Any]) -> bool:
    """Whether a job waits for what will not come by itself."""
    return job["state"] == "PENDING" and (job["reason"] == NEVER or job["reason"].startswith(HELD))


def has_ended(job: Mapping[str, Any], now: float) -> bool:
    """Whether the job will do no more by itself. One that waits for what can never come counts as ended."""
    state, ended_at = job["state"], job.get("ended_at")
    if state == "PENDING":
        return cannot_start(job)
    if state in PASSING and job.get("requeue") and (ended_at is None or now - ended_at < SECONDS_UNTIL_REQUEUED):
        return False
    return state in ENDED


def summed(jobs: Sequence[Mapping[str, Any]], now: float) -> dict[str, Any]:
    """One job for all tasks of an array, with ``tasks`` as the number of tasks in each state; a job alone stays itself.

    The array goes on as long as one of its tasks does, and has failed when one has. No job at all is UNKNOWN.
    """
    if len(jobs) == 1 and not jobs[0]["task"]:
        ended = has_ended(jobs[0], now)
        return {**jobs[0], **_times(jobs, ended), "tasks": {}, "ended": ended}
    if not jobs:
        return {**job_of(""), "tasks": {}, "ended": True}
    tasks: Counter[str] = Counter()
    for job in jobs:
        tasks[job["state"]] += task_count(job["task"])
    open_jobs = [job for job in jobs if not has_ended(job, now)]
    order = _GOING_ON if open_jobs else _ENDINGS
    chosen = min(open_jobs or jobs, key=lambda job: _place(order, job["state"]))
    return {
        **chosen,
        "nodes": ",".join(dict.fromkeys(job["nodes"] for job in jobs if job["nodes"])),
        "restarts": max(job["restarts"] for job in jobs),
        **_times(jobs, not open_jobs),
        "tasks": dict(sorted(tasks.items())),
        "ended": not open_jobs,
    }


def with_forgotten(tasks: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The controller's tasks of an array, and those that it has forgotten while others go on."""
    known = {job["task"] for job in tasks}
    ended = {job["task"]: job for job in others if job["task"].isdecimal() and job["state"] in ENDED}
    return [*tasks, *(job for task, job in ended.items() if task not in known)]


def _times(jobs: Sequence[Mapping[str, Any]], ended: bool) -> dict[str, int | None]:
    """From the first start to the last end. Slurm shows those that it expects as well, which are left out."""
    starts = [job["started_at"] for job in jobs if job["started_at"] and job["state"] != "PENDING"]
    ends = [job["ended_at"] for job in jobs if job["ended_at"] and ended]
    return {"started_at": min(starts, default=None), "ended_at": max(ends, default=None)}


def _place(order: Sequence[str], state: str) -> int:
    return order.index(state) if state in order else len(order)


def task_count(tasks: str) -> int:
    """How many tasks '3', '4-9:2', '[1,7-9%2]' are; 1 for what cannot be read, as Slurm shortens a long list."""
    count = 0
    for part in tasks.strip("[]").partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if not match:
            return max(count, 1)
        low, high, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        count += len(range(low, high + 1, step or 1))
    return count
