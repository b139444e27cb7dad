# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which nodes are replaced by other instances, and how far that is: the reasons of Slurm tell the next run. Pure.

A node that is to go is drained for a reason that names its instance. As long as it has that one it is still to go; once
it has another it has been replaced, and waits for the acceptance, which resumes it. Where the new one has another name
the reason is lost with the old one; then records of the head tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.drain import PREFIX, mark_of
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.leave import with_jobs
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode, described


def is_new(name: str, instances: Mapping[str, str], nodes: Mapping[str, SlurmNode]) -> bool:
    """Whether the node has been replaced and was not accepted yet."""
    mark = mark_of(nodes.get(name))
    return mark is not None and instances.get(name) not in (None, mark.instance_id)


def stays(node: SlurmNode) -> bool:
    """Whether it is out of service because somebody wants that, who may need it as it is."""
    return node.out and node.by_somebody and not (node.reason.startswith(PREFIX) or mark_of(node))


def choose(
    instances: Mapping[str, str],
    stay: Collection[str],
    wanted: Sequence[str],
    nodes: Mapping[str, SlurmNode],
    accepted: Collection[str] = (),
    replaced: Collection[str] = (),
) -> list[str]:
    """Which nodes go, in the order of ``instances``, the ids by name. Raises TrainiumError.

    ``wanted`` are those that were named, else all that Slurm or we took out of service; ``stay`` has those that never
    go. One whose instance is new does not go again until it was checked: ``accepted`` are the instances that were. One
    of which that is not known may just start, so it goes only by its name. ``replaced`` are names of nodes that went
    before, whose successors may have others.
    """
    unknown = [name for name in wanted if not (name in instances or name in replaced or mark_of(nodes.get(name)))]
    if unknown:
        raise TrainiumError(
            f"trainium_replace names {', '.join(unknown)}, no compute node of the cluster; name nodes as in the group "
            "compute of ansible-inventory --graph"
        )
    due = [name for name in instances if name in wanted]
    if not wanted:
        out = [name for name in instances if nodes.get(name, _NONE).out and not stays(nodes[name])]
        due = [name for name in out if nodes[name].kept_out or instances[name] in accepted]
    due = [name for name in due if not is_new(name, instances, nodes)]
    heads = [name for name in due if name in stay]
    if heads:
        raise TrainiumError(
            f"{', '.join(heads)} has Slurm's controller, whose queue would go with it; stop and start its instance, "
            "which moves it to other hardware, and name the others in trainium_replace"
        )
    if not wanted and len(due) > 1 and 2 * len(due) > len(instances):
        raise TrainiumError(
            f"{len(due)} of {len(instances)} nodes are out of service, rather by a fault of the head or of the network "
            f"than of each of them; run nodes.yml, or name them in trainium_replace: {', '.join(due)}"
        )
    return due


def refuse_busy(due: Iterable[str], nodes: Mapping[str, SlurmNode], jobs: Mapping[str, Sequence[str]]) -> None:
    """Raises TrainiumError where jobs would end with their nodes."""
    working = with_jobs(due, nodes, jobs)
    if working:
        raise TrainiumError(
            f"jobs run on {', '.join(working)}, which would be replaced; wait for them, cancel them, name other nodes "
            "in trainium_replace, or name these there and set trainium_replace_busy"
        )


def told(due: Sequence[str], instances: Mapping[str, str], nodes: Mapping[str, SlurmNode]) -> str:
    """One sentence on what is replaced, by name, state and instance, and on what an earlier run left to do."""
    shown = [f"{described(name, nodes[name]) if name in nodes else name}, {instances[name]}" for name in due]
    parts = [f"to be replaced by another instance: {'; '.join(shown)}" if due else "no node is to be replaced"]
    fresh = [name for name in instances if is_new(name, instances, nodes)]
    gone = [name for name in nodes if mark_of(nodes[name]) and name not in instances]
    left = [name for name in instances if name in nodes and name not in due and stays(nodes[name])]
    parts += [f"{', '.join(fresh)} has a new instance already, which was not accepted yet"] if fresh else []
    parts += [f"{', '.join(gone)} has no instance any more and is launched anew"] if gone else []
    if left:
        who = ", ".join(dict.fromkeys(nodes[name].user for name in left))
        whom = ", ".join(described(name, nodes[name]) for name in left)
        parts.append(f"{whom} stays, out of service by {who}; name it in trainium_replace to replace it too")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


_NONE = SlurmNode("unknown")
