# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the compute nodes of a ParallelCluster are called in Slurm. Pure.

ParallelCluster keeps in a DynamoDB table for each cluster which instance stands behind which node of Slurm. An item is
``{"Id": {"S": "train-dy-trn1-1"}, "InstanceId": {"S": "i-..."}}``; it stays when the instance goes, until the node is
started again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._ec2.hosts import COMPUTE, LIVE_STATES, Record

# The parts of the table that are read.
PROJECTION = "Id, InstanceId"
# How a node's name tells that Slurm keeps it or starts it when a job needs it.
KINDS = {"st": "static", "dy": "dynamic"}

Item = Mapping[str, Mapping[str, Any]]


class Table(NamedTuple):
    """Where the names of a cluster's nodes are kept."""

    region: str
    cluster: str

    @property
    def name(self) -> str:
        """The name of the DynamoDB table."""
        return f"parallelcluster-slurm-{self.cluster}"


def _table_of(record: Record) -> Table | None:
    """The table that may name a node; None if it has no name in a table."""
    cluster = record.get("parallelcluster_name")
    if not cluster or record["node_role"] != COMPUTE:
        return None
    return Table(record["aws_region"], cluster)


def tables(records: Iterable[Record]) -> list[Table]:
    """The tables to read: one for each ParallelCluster that has living compute nodes, in order."""
    alive = (record for record in records if record["instance_state"] in LIVE_STATES)
    return sorted({table for table in map(_table_of, alive) if table})


def name_nodes(records: Iterable[Record], answers: Mapping[Table, Iterable[Item]]) -> list[Record]:
    """The records, those of ParallelClusters' compute nodes with ``slurm_node_name`` and ``slurm_node_kind``.

    Both are '' for a node whose table is not among the answers or does not name it. A name counts for an instance that
    lives and whose queue and compute resource it holds.
    """
    instances = {table: _by_instance(items) for table, items in answers.items()}
    named = []
    for record in records:
        table = _table_of(record)
        if table:
            alive = record["instance_state"] in LIVE_STATES
            names = instances.get(table, {}).get(record["instance_id"], ()) if alive else ()
            queue, resource = record.get("queue", ""), record.get("compute_resource", "")
            kinds = ((name, kind_of(name, queue, resource)) for name in sorted(names))
            name, kind = next((found for found in kinds if found[1]), ("", ""))
            record = {**record, "slurm_node_name": name, "slurm_node_kind": kind}
        named.append(record)
    return named


def _by_instance(items: Iterable[Item]) -> dict[str, list[str]]:
    """Instance id -> the names that the table gives it; one, unless the table holds what is past."""
    found: dict[str, list[str]] = {}
    for item in items:
        name, instance = (item.get(key, {}).get("S") for key in ("Id", "InstanceId"))
        if name and instance:
            found.setdefault(instance, []).append(name)
    return found


def kind_of(name: str, queue: str, compute_resource: str) -> str:
    """``static`` or ``dynamic`` by a node's name, '' if it is no name of this queue and compute resource.

    Asked with both, because they may hold ``-st-`` and ``-dy-`` themselves.
    """
    for mark, kind in KINDS.items():
        prefix = f"{queue}-{mark}-{compute_resource}-"
        number = name[len(prefix) :]
        if name.startswith(prefix) and number.isascii() and number.isdigit():
            return kind
    return ""
