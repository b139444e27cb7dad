# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How far a job is, and why it failed, from what Slurm says and from the end of its log. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.step_log import StepReader, step_text, time_of
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import HostlistError, expand

LINES = 25
WIDTH = 500
# A failure of hundreds of nodes is told by the first of them.
NODES_SHOWN = 4

# srun: error: n1: task 1: Exited with exit code 3 / srun: error: n[1-2]: tasks 0-1: Killed
_SRUN = re.compile(
    r"srun: error: (?P<nodes>[A-Za-z0-9][^\s:]*): tasks? (?P<tasks>[0-9,\-\[\]]+): "
    r"(?:Exited with exit code (?P<code>\d+)|(?P<signal>[A-Z][A-Za-z ]+?)(?: \(core dumped\))?\s*$)",
    re.MULTILINE,
)
# What a shell would show for a task that a signal ended.
_SIGNALS = {
    "Hangup": 129,
    "Interrupt": 130,
    "Quit": 131,
    "Aborted": 134,
    "Killed": 137,
    "Out Of Memory": 137,
    "Segmentation fault": 139,
    "Terminated": 143,
}
_REQUEUED = re.compile(
    r"(?:CANCELLED AT \S+ DUE TO (?P<slurm>[A-Z ]+?)(?:,.*)? \*\*\*|^training: (?P<script>stopped before .*))",
    re.MULTILINE,
)
# Lines of torchrun, which every node adds after those of the script that failed.
_TORCHRUN_TRACE = re.compile(r'\s+File "[^"]*(?:/bin/torchrun|torch/distributed/)')
_TORCHRUN_LINE = re.compile(
    r"[WEI]\d{4} \d\d:\d\d:\d\d\S* .*torch/distributed/|\[[WEI]\d{3}\s?.*torch/distributed|"
    r".*(?:Setting OMP_NUM_THREADS environment variable for each process|/torchrun:\d+: )|"
    r"torch\.distributed\.elastic\.multiprocessing\.errors\.|W\d{4} .*\] \*{10,}$|\*{20,}$"
)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# How lines begin that are not torchrun's.
_OF_THE_JOB = ("srun:", "slurmstepd", "LOG ", "JOB ", "training:")
_RULE = re.compile(r"[=-]{40,}$")


def progress(text: str, steps: int | None) -> dict[str, Any]:
    """``step``, ``steps``, ``loss``, ``throughput`` (examples/s) and ``seconds_left`` (or None); {} without steps.

    The pace is that of the lines in ``text`` since the job began or went on the last time, by their dates; where they
    have none, what the last says.
    """
    since: tuple[int, int] | None = None
    last = None
    pace = 0.0
    reader = StepReader()
    for line in text.splitlines():
        step, moment = reader.step(line), time_of(line)
        if step is None:
            continue
        if last is not None and step.step <= last.step:
            since, pace = None, 0.0
        last = step
        if moment is None:
            continue
        if since is None:
            since = (step.step, moment)
        else:
            pace = (moment - since[1]) / (step.step - since[0])
    if last is None:
        return {}
    left = max(0, steps - last.step) if steps else None
    pace = pace or last.pace
    seconds = 0 if left == 0 else round(left * pace) if left is not None and pace > 0 else None
    return {**last.shown(), "steps": steps, "seconds_left": seconds}


def duration(seconds: float) -> str:
    """'45 s', '12 min', '3 h 20 min', '2 d 4 h'."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def _expanded(text: str) -> list[str]:
    try:
        return expand(text)
    except HostlistError:
        return [text]


def node_exit_codes(
    text: str, steps: Sequence[Mapping[str, str]] = (), job: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Where a job's tasks failed: ``{"node": "n1", "task": 1, "exit_code": 3}``.

    From srun's lines in the log. Where it has none, from the steps of accounting, whose exit code is the highest of all
    their nodes: ``node`` is a hostlist then, and ``task`` None. Else the batch script's own, on the job's batch host.
    """
    found: dict[tuple[str, int | None], dict[str, Any]] = {}
    for match in _SRUN.finditer(text):
        code = int(match["code"]) if match["code"] else _SIGNALS.get((match["signal"] or "").strip())
        if code is None:
            continue
        nodes = _expanded(match["nodes"])
        tasks = [int(task) if task.isdigit() else None for task in _expanded(f"[{match['tasks'].strip('[]')}]")]
        # Slurm sums up nodes that ended alike; which task ran where it does not say, but where they are as many.
        pairs = list(zip(nodes, tasks)) if len(nodes) == len(tasks) else None
        if pairs is None:
            pairs = [(nodes[0], task) for task in tasks] if len(nodes) == 1 else [(node, None) for node in nodes]
        for node, task in pairs:
            found[(node, task)] = {"node": node, "task": task, "exit_code": code}
    if found:
        return list(found.values())
    codes = [
        {"node": step["nodes"], "task": None, "exit_code": _code(step["exit_code"])}
        for step in steps
        if _code(step["exit_code"]) and step["nodes"] and not step["step"].endswith((".batch", ".extern"))
    ]
    if not codes and job and job["batch_host"] and _code(job["exit_code"]) and not job.get("tasks"):
        codes = [{"node": job["batch_host"], "task": None, "exit_code": _code(job["exit_code"])}]
    return codes


def _code(text: str) -> int:
    """Slurm's '3:0' as 3; '0:9', ended by a signal, as 137."""
    code, _colon, signal = text.partition(":")
    if code.isdigit() and int(code):
        return int(code)
    return 128 + int(signal) if signal.isdigit() and int(signal) else 0


def last_lines(text: str, count: int = LINES) -> list[str]:
    """The end of a log without what torchrun says of the end of its processes."""
    kept: list[str] = []
    trace: list[str] | None = None
    inside = 0
    for line in map(_readable, text[:-1].split("\n") if text.endswith("\n") else text.split("\n") if text else []):
        if line.startswith("Traceback (most recent call last):"):
            kept += trace or []
            trace = [line]
            continue
        if trace is not None and line.startswith(_OF_THE_JOB):
            # Another process's line amid the traceback.
            kept.append(line)
            continue
        if trace is not None:
            trace.append(line)
            if line.startswith((" ", "\t")) or not line:
                continue
            # The line that names the error ends a traceback.
            if not any(_TORCHRUN_TRACE.match(part) for part in trace):
                kept += trace
            elif _TORCHRUN_LINE.match(line):
                inside = 2
            else:
                kept += trace if "torchrun" not in "".join(trace) else []
            trace = None
            continue
        if inside and (inside := _inside(line, inside)):
            continue
        if _TORCHRUN_LINE.match(line) or (_RULE.match(line) and not line.startswith("-")):
            continue
        kept.append(line)
    kept += trace or []
    return kept[-count:]


def _readable(line: str) -> str:
    """A line as a screen may show it: the last state of a progress bar, nothing that moves the cursor, not endless."""
    line = _ESCAPE.sub("", line.rstrip("\r").rpartition("\r")[2])
    return line if len(line) <= WIDTH else f"{line[:WIDTH]} ..."


def _inside(line: str, rules: int) -> int:
    """How many rules of '=' torchrun's table of failures still has after a line; one more to swallow the last."""
    if re.match(r"={40,}$", line):
        return rules - 1 if rules > 1 else 0
    if line.startswith(_OF_THE_JOB):
        # Another node's line amid the table.
        return 0
    return rules


def requeue_reason(text: str) -> str:
    """Why a job was put back into the queue, by the last line in its log that tells; '' where none does."""
    found, by_script = "", False
    for match in _REQUEUED.finditer(text):
        if match["script"]:
            found, by_script = f"it {match['script'].strip()}", True
        elif not (by_script and match["slurm"] == "JOB REQUEUE"):
            found, by_script = match["slurm"].lower(), False
        else:
            # The script asked for it, and has said why.
            by_script = False
    return found


def job_text(job: Mapping[str, Any]) -> str:
    """One line for the screen.

    ``job 12 RUNNING on n[1-2]: step 14 of 100, loss 10.70, 6449.4 examples/s, about 3 min left``
    """
    text = f"job {job['job_id']} {job['state']}"
    if job.get("tasks"):
        text += f" ({', '.join(f'{count} {state}' for state, count in job['tasks'].items())})"
    if job["nodes"]:
        text += f" on {job['nodes']}"
    elif job["reason"] and job["reason"] != "None":
        text += f" ({job['reason']})"
    if job.get("restarts"):
        why = job.get("requeue_reason") or ""
        text += f", requeued for the {ordinal(job['restarts'])} time"
        text += f" because {'' if why.startswith('it ') else 'of '}{why}" if why else ""
    step = job.get("progress") or {}
    if not step:
        return f"{text}: {job['note']}" if job.get("note") else text
    text = f"{text}: {step_text(step, step.get('steps'))}"
    if step.get("seconds_left") and job["state"] == "RUNNING":
        text += f", about {duration(step['seconds_left'])} left"
    return text


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def failure_text(job: Mapping[str, Any], log: str = "") -> str:
    """Why a job that has ended did not succeed, in one sentence."""
    text = f"job {job['job_id']}{' (' + job['name'] + ')' if job.get('name') else ''} "
    text += "can never start" if job["state"] == "PENDING" else f"ended as {job['state']}"
    if job["reason"] and job["reason"] not in ("None", "NonZeroExitCode"):
        text += f" ({job['reason']})"
    if job["exit_code"] and job["exit_code"] != "0:0":
        text += f" with exit code {job['exit_code']}"
    if job.get("tasks"):
        text += f", of its tasks {', '.join(f'{count} {state}' for state, count in job['tasks'].items())}"
    codes = job.get("node_exit_codes") or []
    if codes:
        where = ", ".join(
            f"{code['exit_code']} on {code['node']}{'' if code['task'] is None else ' task ' + str(code['task'])}"
            for code in codes[:NODES_SHOWN]
        )
        more = f" and {len(codes) - NODES_SHOWN} more" if len(codes) > NODES_SHOWN else ""
        text += f": {where}{more}"
    step = job.get("progress") or {}
    if step:
        text += f", after step {step['step']}"
    if job["state"] == "UNKNOWN":
        text += ", since Slurm has forgotten it and nothing tells how it ended"
    return f"{text}; {'see the end of its log ' + log if log else 'give it a log to see more'}."
