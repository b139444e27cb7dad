# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What Slurm says of a job. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
        "TIMEOUT",
        "UNKNOWN",
    }
)

_FIELD = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9/:_]*)=(\S*)")


def job_of(line: str) -> dict[str, str]:
    """``scontrol show job --oneliner`` as state, reason, exit_code, batch_host and nodes; '' for what is missing."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(line):
        fields.setdefault(name, value)
    shown = {name: "" if value == "(null)" else value for name, value in fields.items()}
    return {
        "state": shown.get("JobState", "UNKNOWN"),
        "reason": shown.get("Reason", ""),
        "exit_code": shown.get("ExitCode", ""),
        "batch_host": shown.get("BatchHost", ""),
        "nodes": shown.get("NodeList", ""),
    }


def progress_text(job: Mapping[str, Any], job_id: int, steps: int | None) -> str:
    """One line: ``job 12 RUNNING on ip-192-0-2-[5-6]: step 14 of 100, loss 10.70, 6449.4 examples/s``."""
    text = f"job {job_id} {job['state']}"
    if job["nodes"]:
        text += f" on {job['nodes']}"
    elif job["reason"] and job["reason"] != "None":
        text += f" ({job['reason']})"
    step = job.get("progress") or {}
    if not step:
        return text
    of = f" of {steps}" if steps else ""
    return f"{text}: step {step['step']}{of}, loss {step['loss']:.2f}, {step['throughput']:.1f} examples/s"
