# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Waiting until every node of a set is in a state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import (
    AwsCallError,
    TrainiumError,
    one_line,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace, looks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import DEAD_STATES, Node


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

    A goal is ``running``, ``stopped`` or ``terminated``. ``look`` gives the nodes of the set in one call. Raises
    WaitError after ``timeout`` seconds, or as soon as a node can no longer get there. A look that fails for the moment
    says nothing of the nodes; the next one may. Where the time ends without an answer, the error is that of the call.
    """
    # An instance that EC2 does not show is not visible yet, or has ended long ago.
    ends = goal == "terminated"
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
        # Stopping may show for a moment after a start.
        dead = [by_id[item] for item in wanted if item in by_id and by_id[item]["state"] in DEAD_STATES]
        failed = [] if ends else dead
        if failed:
            reasons = "; ".join(
                f"{node['instance_id']} {node['state']} {node['state_reason']}".strip() for node in failed
            )
            raise WaitError(
                f"{len(failed)} of {len(wanted)} nodes can no longer become {goal}: {reasons}",
                [node["instance_id"] for node in failed],
                failed,
            )
        missing = [item for item in wanted if not (by_id[item]["state"] == goal if item in by_id else ends)]
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
