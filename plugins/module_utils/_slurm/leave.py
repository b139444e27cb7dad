# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which nodes may leave a cluster that becomes smaller: unhealthy ones first, then idle ones, none with jobs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode

REASON = "trainium: leaves the cluster"


def has_jobs(node: SlurmNode | None) -> bool:
    """A draining node still runs its jobs, unlike a drained one (sinfo(1), node states).

    One that does not answer (``*``) has them as well, until Slurm sets it down.
    """
    return node is not None and (node.busy or node.state.startswith("draining"))


def choose(names: Sequence[str], stay: Collection[str], count: int, nodes: Mapping[str, SlurmNode]) -> list[str]:
    """``count`` of ``names``, which are in the order of ranks: of equally good ones the last. Raises TrainiumError."""

    def order(name: str) -> tuple[bool, int]:
        node = nodes.get(name)
        return node is not None and node.usable, -names.index(name)

    free = [name for name in names if name not in stay and not has_jobs(nodes.get(name))]
    if len(free) < count:
        busy = [name for name in names if has_jobs(nodes.get(name))]
        raise TrainiumError(
            f"{count} nodes are to leave, and only {len(free)} may: jobs run on {', '.join(busy) or 'none'}, and "
            f"{', '.join(stay)} stays; wait for the jobs, cancel them, ask for more nodes, or set trainium_shrink_busy"
        )
    return sorted(sorted(free, key=order)[:count], key=names.index)
