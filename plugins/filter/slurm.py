# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters of Slurm's names and nodes; documented in the YAML files beside this one."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._slurm import hostlist
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import nodes_of_partition
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, is_listed, takes


@takes(str, "a string such as 'node[1-3]'")
def hostlist_expand(value: Any) -> list[str]:
    """A Slurm hostlist as a list of names."""
    return hostlist.expand(value)


@takes(is_listed, "a list of host names")
def hostlist_compress(value: Any) -> str:
    """A list of names as one Slurm hostlist."""
    names = list(value)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"it needs host names that are strings, not {name!r}")
    return hostlist.compress(names)


@takes(is_listed, "the lines of sinfo")
def slurm_nodes_usable(value: Any, partition: str = "", every: bool = False) -> list[str]:
    """The names of the nodes that may get a job, in Slurm's order."""
    return [name for name, node in nodes_of_partition(map(str, value), partition).items() if every or node.usable]


FilterModule = filter_module(hostlist_expand, hostlist_compress, slurm_nodes_usable)
