# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting until one resource is as wanted. The caller says how to look and how to judge; the loop is here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.waiting import Pace

Record = dict[str, Any]
Seen = Optional[Record]


class Goal(NamedTuple):
    """``name`` of the goal, for the reader; ``reached`` judges what was seen, None for a resource that is not there.

    ``failed`` gives the reason why the goal can no longer be reached, '' while it can. ``shown`` names the resource and
    how far it is, for the reader.
    """

    name: str
    reached: Callable[[Seen], bool]
    failed: Callable[[Seen], str]
    shown: Callable[[Seen], str]


def wait_until(
    goal: Goal,
    look: Callable[[], Seen],
    timeout: float,
    progress: Progress,
    pace: Pace | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Seen:
    """Look until the goal is reached; returns what was seen last. Raises TrainiumError after ``timeout`` seconds."""
    pace = pace or Pace()
    deadline, delay = clock() + timeout, pace.first
    while True:
        seen = look()
        reason = goal.failed(seen)
        if reason:
            raise TrainiumError(reason)
        reached = goal.reached(seen)
        progress.report(goal.name, int(reached), 1, [] if reached else [goal.shown(seen)])
        if reached:
            return seen
        remaining = deadline - clock()
        if remaining <= 0:
            raise TrainiumError(
                f"{goal.shown(seen)} is not {goal.name} after {timeout:g} s; run again, or raise wait_timeout"
            )
        sleep(min(delay, remaining))
        delay = min(delay * pace.factor, pace.last)
