# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which nodes may leave a cluster that becomes smaller: unhealthy ones first, then idle ones, none with jobs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.drain import LONGEST_REASON, back_to
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode

REASON = "trainium: leaves the cluster"
_WAS = f"{REASON}, was "


def reason_for(node: SlurmNode) -> str:
    """By which a node is drained that is to leave: with what keeps it out of service already, which is to come back."""
    if not node.kept_out:
        return REASON
    before = node.reason if node.reason not in ("", "none") else f"it was {node.state}"
    return f"{_WAS}{before}"[:LONGEST_REASON].rstrip()


def undo(reason: str) -> list[str]:
    """What scontrol is told of a node drained for ``reason`` that stays after all; [] if that is none of ours."""
    if reason == REASON:
        return back_to("")
    return back_to(reason[len(_WAS) :]) if reason.startswith(_WAS) else []


def has_jobs(node: SlurmNode | None) -> bool:
    """A draining node still runs its jobs, unlike a drained one (sinfo(1), node states).

    One that does not answer (``*``) has them as well, until Slurm sets it down.
    """
    return node is not None and (node.busy or node.state.startswith("draining"))


def with_jobs(names: Iterable[str], nodes: Mapping[str, SlurmNode], jobs: Mapping[str, Sequence[str]]) -> list[str]:
    """Those on which jobs are, each with the numbers of the ``jobs``."""
    working = [name for name in names if jobs.get(name) or has_jobs(nodes.get(name))]
    return [f"{name} ({', '.join(jobs[name])})" if jobs.get(name) else name for name in working]


def choose(
    names: Sequence[str],
    stay: Collection[str],
    count: int,
    nodes: Mapping[str, SlurmNode],
    jobs: Mapping[str, Sequence[str]],
) -> list[str]:
    """``count`` of ``names``, which are in the order of ranks: of equally good ones the last. Raises TrainiumError.

    ``jobs`` are those on each node: where Slurm calls one invalid or failing its state says nothing of them, and those
    that are suspended no state shows.
    """

    def order(name: str) -> tuple[bool, int]:
        node = nodes.get(name)
        return node is not None and node.usable, -names.index(name)

    free = [name for name in names if name not in stay and not with_jobs([name], nodes, jobs)]
    if len(free) < count:
        busy = with_jobs(names, nodes, jobs)
        raise TrainiumError(
            f"{count} nodes are to leave, and only {len(free)} may: jobs run on {', '.join(busy) or 'none'}, and "
            f"{', '.join(stay)} stays; wait for the jobs, cancel them, ask for more nodes, or set trainium_shrink_busy"
        )
    return sorted(sorted(free, key=order)[:count], key=names.index)
