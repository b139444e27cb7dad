# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting until every node of a set is in a state. What is waited for stands in a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import (
    AwsCallError,
    TrainiumError,
    one_line,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace, looks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import DEAD_STATES, Node


class NodeGoal(NamedTuple):
    """``reached`` and ``failed`` judge a node; ``absent_is_reached`` says what it means that EC2 shows no such node."""

    reached: Callable[[Node], bool]
    failed: Callable[[Node], bool]
    absent_is_reached: bool = False


def _dead(node: Node) -> bool:
    return node["state"] in DEAD_STATES


GOALS: dict[str, NodeGoal] = {
    # A new instance may not be visible yet, and stopping may show for a moment after a start.
    "running": NodeGoal(lambda node: node["state"] == "running", _dead),
    "stopped": NodeGoal(lambda node: node["state"] == "stopped", _dead),
    "terminated": NodeGoal(lambda node: node["state"] == "terminated", lambda node: False, absent_is_reached=True),
}


class WaitError(TrainiumError):
    """EC2 says that the goal was not reached; ``missing`` are the instances concerned, ``failed`` those that cannot."""

    def __init__(self, message: str, missing: Sequence[str], failed: Sequence[Node] = ()) -> None:
        super().__init__(message, missing=list(missing))
        self.missing, self.failed = list(missing), list(failed)


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
    can no longer get there. A look that fails for the moment says nothing of the nodes; the next one may. Where the
    time ends without an answer, the error is that of the call.
    """
    rule = GOALS[goal]
    wanted = list(dict.fromkeys(ids))
    missing = wanted
    unanswered: AwsCallError | None = None
    for _passed in looks(timeout, pace, clock, sleep):
        try:
            seen = list(look())
        except AwsCallError as error:
            if not error.transient:
                raise
            unanswered = error
            progress.report(goal, len(wanted) - len(missing), len(wanted), missing, note=one_line(error))
            continue
        unanswered = None
        by_id = {node["instance_id"]: node for node in seen}
        failed = [by_id[item] for item in wanted if item in by_id and rule.failed(by_id[item])]
        if failed:
            reasons = "; ".join(
                f"{node['instance_id']} {node['state']} {node['state_reason']}".strip() for node in failed
            )
            raise WaitError(
                f"{len(failed)} of {len(wanted)} nodes can no longer become {goal}: {reasons}",
                [node["instance_id"] for node in failed],
                failed,
            )
        missing = [
            item for item in wanted if not (rule.reached(by_id[item]) if item in by_id else rule.absent_is_reached)
        ]
        progress.report(goal, len(wanted) - len(missing), len(wanted), missing)
        if not missing:
            return seen
    if unanswered:
        raise unanswered
    raise WaitError(
        f"{len(wanted) - len(missing)} of {len(wanted)} nodes are {goal} after {timeout:g} s, "
        f"waiting for {', '.join(missing[:10])}{' ...' if len(missing) > 10 else ''}",
        missing,
    )
