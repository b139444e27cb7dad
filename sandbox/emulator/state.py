"""What the emulator keeps beside moto's own state, and the lock that launches share."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

LOCK = threading.RLock()

# (instance type, zone) -> free instances; a pair that is not in it has no limit.
CAPACITY: dict[tuple[str, str], int] = {}

# Each: action, code, message, status, times, skip (calls that pass first), delay, match (parameter -> value), service,
# after. In place of a code: ``body``, an answer that is not AWS's, with ``status``; or, for RunInstances, ``late``, the
# code of the StateReason with which instances go from pending to terminated, ``count`` of them or all; for a deletion
# of a node group of EKS, that of the issue with which it ends in DELETE_FAILED.
FAULTS: list[dict[str, Any]] = []

CALLS: deque[dict[str, Any]] = deque(maxlen=200_000)

# Code of a quota of EC2 -> vCPUs or addresses, where it is not the default.
QUOTAS: dict[str, float] = {}

# What each instance has written to its console.
CONSOLES: dict[str, str] = {}

# Access key -> the statements of its IAM policy, and what it had use for (access/permissions.py).
POLICIES: dict[str, list[dict[str, Any]]] = {}
USED: dict[str, list[dict[str, Any]]] = {}

# Seconds that every call takes, as over a network.
LATENCY = {"seconds": 0.0}

# What stands in for a head node's signal to CloudFormation: mode ``signal`` waits for it, ``succeed`` and ``fail`` give
# it after ``delay`` seconds, with ``reason``. Updates and deletions of stacks take ``delay`` seconds, too.
MODES = ("signal", "succeed", "fail")
WAITING: dict[str, Any] = {"mode": "succeed", "delay": 1.0, "reason": ""}
STARTED_WITH = dict(WAITING)


def waiting(changes: dict[str, Any]) -> dict[str, Any]:
    """Check a change of ``WAITING``."""
    mode = changes.get("mode", WAITING["mode"])
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}")
    delay, reason = float(changes.get("delay", WAITING["delay"])), str(changes.get("reason", WAITING["reason"]))
    return {"mode": mode, "delay": delay, "reason": reason}


def clear() -> None:
    """Forget everything."""
    CAPACITY.clear()
    FAULTS.clear()
    CALLS.clear()
    QUOTAS.clear()
    CONSOLES.clear()
    POLICIES.clear()
    USED.clear()
    LATENCY["seconds"] = 0.0
    WAITING.update(STARTED_WITH)
