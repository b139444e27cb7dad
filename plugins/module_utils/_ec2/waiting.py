# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting until every node of a set is in a state. Predicates in a table, one loop for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import DEAD_STATES, Node


class Goal(NamedTuple):
    """``reached`` and ``failed`` judge a node; ``absent_is_reached`` says what it means that EC2 shows no such node."""

    reached: Callable[[Node], bool]
    failed: Callable[[Node], bool]
    absent_is_reached: bool = False


def _dead(node: Node) -> bool:
    return node["state"] in DEAD_STATES


GOALS: dict[str, Goal] = {
    # A new instance may not be visible yet, and stopping may show for a moment after a start.
    "running": Goal(lambda node: node["state"] == "running", _dead),
    "stopped": Goal(lambda node: node["state"] == "stopped", _dead),
    "terminated": Goal(lambda node: node["state"] == "terminated", lambda node: False, absent_is_reached=True),
}


class WaitError(TrainiumError):
    """The goal was not reached; ``missing`` are the instances concerned."""

    def __init__(self, message: str, missing: Sequence[str]) -> None:
        super().__init__(message, missing=list(missing))
        self.missing = list(missing)


class Pace(NamedTuple):
    """Seconds between two looks: from ``first``, growing by ``factor``, to ``last``."""

    first: float = 0.5
    factor: float = 1.5
    last: float = 10.0


def wait_for(
    goal: str,
    ids: Iterable[str],
    look: Callable[[], Sequence[Node]],
    timeout: float,
    progress: Progress,
    pace: Pace | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Node]:
    """Look until all of ``ids`` have reached the goal; returns what was seen last.

    ``look`` gives the nodes of the set in one call. Raises WaitError after ``timeout`` seconds, or as soon as a node
    can no longer get there.
    """
    rule, pace = GOALS[goal], pace or Pace()
    wanted = list(dict.fromkeys(ids))
    deadline, delay = clock() + timeout, pace.first
    while True:
        seen = list(look())
        by_id = {node["instance_id"]: node for node in seen}
        failed = [by_id[item] for item in wanted if item in by_id and rule.failed(by_id[item])]
        if failed:
            reasons = "; ".join(
                f"{node['instance_id']} {node['state']} {node['state_reason']}".strip() for node in failed
            )
            raise WaitError(
                f"{len(failed)} of {len(wanted)} nodes can no longer become {goal}: {reasons}",
                [node["instance_id"] for node in failed],
            )
        missing = [
            item for item in wanted if not (rule.reached(by_id[item]) if item in by_id else rule.absent_is_reached)
        ]
        progress.report(goal, len(wanted) - len(missing), len(wanted), missing)
        if not missing:
            return seen
        remaining = deadline - clock()
        if remaining <= 0:
            raise WaitError(
                f"{len(wanted) - len(missing)} of {len(wanted)} nodes are {goal} after {timeout:g} s, "
                f"waiting for {', '.join(missing[:10])}{' ...' if len(missing) > 10 else ''}",
                missing,
            )
        sleep(min(delay, remaining))
        delay = min(delay * pace.factor, pace.last)
