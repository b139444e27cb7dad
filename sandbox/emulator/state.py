"""What the emulator keeps beside moto's own state, and the lock that launches share."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

LOCK = threading.RLock()

# (instance type, zone) -> free instances; a pair that is not in it has no limit.
CAPACITY: dict[tuple[str, str], int] = {}

# Each: action, code, message, status, times, delay, match (parameter -> value), service, after.
FAULTS: list[dict[str, Any]] = []

CALLS: deque[dict[str, Any]] = deque(maxlen=200_000)

# Code of a quota of EC2 -> vCPUs, where it is not the default.
QUOTAS: dict[str, float] = {}

# Seconds that every call takes, as over a network.
LATENCY = {"seconds": 0.0}


def clear() -> None:
    """Forget everything."""
    CAPACITY.clear()
    FAULTS.clear()
    CALLS.clear()
    QUOTAS.clear()
    LATENCY["seconds"] = 0.0
