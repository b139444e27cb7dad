# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What systemd and a node's record say of a training that runs without Slurm, and what to do next. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.step_log import last_step, step_text

ACTIVE = ("active", "activating", "deactivating", "reloading")
# As the role writes it.
_DESCRIPTION = re.compile(r"^Description=trainium job ([0-9a-f]{12})$", re.MULTILINE)
_STATE = re.compile(r"^ActiveState=(\S+)$", re.MULTILINE)


def state_of(shown: str, record: Mapping[str, Any] | None) -> dict[str, Any]:
    """``systemctl show`` and the record as one state. Without a record a unit has not run, or was killed."""
    found = _STATE.search(shown)
    active = found is not None and found[1] in ACTIVE
    digest = _DESCRIPTION.search(shown)
    known = record if record and not active else {}
    code = known.get("exit_code", -1)
    return {
        "active": active,
        "digest": digest[1] if digest and active else "",
        "ended": bool(known),
        "succeeded": bool(known) and code == 0,
        "exit_code": code if isinstance(code, int) else -1,
        "phase": str(known.get("phase", "")),
        "restarts": int(known.get("restarts", 0)),
        "started_at": int(known.get("started_at", 0)),
        "ended_at": int(known.get("ended_at", 0)),
    }


def progress(text: str) -> dict[str, Any]:
    """The last step that the end of a log shows; {} for none."""
    step = last_step(text)
    return step.shown() if step else {}


def text_of(name: str, state: Mapping[str, Any], steps: int | None) -> str:
    """One line: ``trainium-bert runs: step 14 of 100, loss 10.70, 6449.4 examples/s``."""
    step = state.get("progress") or {}
    if not step:
        return f"{name} runs"
    return f"{name} runs: {step_text(step, steps)}"


def decide(states: Mapping[str, Mapping[str, Any]], digest: str) -> dict[str, Any]:
    """What to do, by the state of each node: ``action`` and ``nodes`` that it is done on, or ``refused``.

    ``follow``: the training runs, and is started on the nodes that it has not reached yet. ``start``: it is started
    anew on all nodes. ``done``: it has succeeded on all.
    """
    others = sorted(node for node, state in states.items() if state["active"] and state["digest"] != digest)
    if others:
        message = (
            f"Another training of this name runs on {', '.join(others)}; wait for its end, or run that definition with "
            "training_job_state=absent to stop it."
        )
        return {"refused": message, "action": "", "nodes": []}
    active = [node for node, state in states.items() if state["active"]]
    if active:
        # Killed in the middle of starting it.
        missing = [node for node, state in states.items() if not state["active"] and not state["ended"]]
        return {"refused": "", "action": "follow", "nodes": missing}
    if all(state["succeeded"] for state in states.values()):
        return {"refused": "", "action": "done", "nodes": []}
    return {"refused": "", "action": "start", "nodes": list(states)}
