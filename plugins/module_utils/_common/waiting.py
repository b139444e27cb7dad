# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting: the one loop there is, and on it the wait for one resource. The caller says how to look and to judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress


class Pace(NamedTuple):
    """Seconds between two looks: from ``first``, growing by ``factor``, to ``last``."""

    first: float = 0.5
    factor: float = 1.5
    last: float = 10.0


def every(seconds: float) -> Pace:
    """The same pause between all looks."""
    return Pace(seconds, 1.0, seconds)


def looks(
    timeout: float,
    pace: Pace | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[float]:
    """One turn for each look, with a pause between two, until ``timeout`` seconds are over; gives the seconds so far.

    The last look comes after the time is over, so that nothing is missed that happened in the last pause.
    """
    pace = pace or Pace()
    started, delay = clock(), pace.first
    while True:
        passed = clock() - started
        yield passed
        remaining = started + timeout - clock()
        if remaining <= 0:
            return
        sleep(min(delay, remaining))
        delay = min(delay * pace.factor, pace.last)


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
    goal: Goal, look: Callable[[], Seen], timeout: float, progress: Progress, pace: Pace | None = None
) -> Seen:
    """Look until the goal is reached; returns what was seen last. Raises TrainiumError after ``timeout`` seconds."""
    seen: Seen = None
    for _passed in looks(timeout, pace):
        seen = look()
        reason = goal.failed(seen)
        if reason:
            raise TrainiumError(reason)
        reached = goal.reached(seen)
        progress.report(goal.name, int(reached), 1, [] if reached else [goal.shown(seen)])
        if reached:
            return seen
    raise TrainiumError(f"{goal.shown(seen)} is not {goal.name} after {timeout:g} s; run again, or raise wait_timeout")
