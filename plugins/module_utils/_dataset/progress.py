# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How far a transfer is, in one line: bytes done of total, rate, time left. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import duration
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import human

# The rate is that of the last seconds, so that a transfer that slows down says so.
RATE_SECONDS = 20.0


def rate(samples: Sequence[tuple[float, int]]) -> float:
    """Bytes per second from (time, bytes done) in order of time, over the last RATE_SECONDS.

    >>> rate([(0.0, 0), (10.0, 100)])
    10.0
    """
    if len(samples) < 2:
        return 0.0
    last_time, last = samples[-1]
    first_time, first = next(item for item in samples if last_time - item[0] <= RATE_SECONDS or item is samples[-2])
    return max(last - first, 0) / (last_time - first_time) if last_time > first_time else 0.0


def line(progress: Mapping[str, Any]) -> str:
    """``fetching 1.0 of 4.0 GiB ...``: ``phase``, ``done`` and ``total`` bytes, ``rate`` per second, perhaps ``note``.

    >>> line({"phase": "fetching", "done": 1024, "total": 4096, "rate": 1024.0})
    'fetching 1.0 KiB of 4.0 KiB (25%), 1.0 KiB/s, 3 s left'
    """
    done, total, speed = int(progress.get("done", 0)), int(progress.get("total", 0)), float(progress.get("rate", 0))
    text = str(progress.get("phase") or "starting")
    if total > 0:
        text += f" {human(done)} of {human(total)} ({100 * min(done, total) // total}%)"
    elif done:
        text += f" {human(done)}"
    if speed > 0:
        text += f", {human(speed)}/s"
        if total > done:
            text += f", {duration((total - done) / speed)} left"
    note = str(progress.get("note") or "")
    return f"{text}, {note}" if note else text
