# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters of Slurm's names and nodes; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import hostlist
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import nodes_of_partition


def hostlist_expand(value: Any) -> list[str]:
    """A Slurm hostlist as a list of names."""
    if not isinstance(value, str):
        raise AnsibleFilterError(f"hostlist_expand needs a string such as 'node[1-3]', not {value!r}.")
    try:
        return hostlist.expand(value)
    except hostlist.HostlistError as error:
        raise AnsibleFilterError(f"hostlist_expand: {error}.") from None


def hostlist_compress(value: Any) -> str:
    """A list of names as one Slurm hostlist."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
        raise AnsibleFilterError(f"hostlist_compress needs a list of host names, not {value!r}.")
    names = list(value)
    for name in names:
        if not isinstance(name, str):
            raise AnsibleFilterError(f"hostlist_compress needs host names that are strings, not {name!r}.")
    try:
        return hostlist.compress(names)
    except hostlist.HostlistError as error:
        raise AnsibleFilterError(f"hostlist_compress: {error}.") from None


def slurm_nodes_usable(value: Any, partition: str = "", every: bool = False) -> list[str]:
    """The names of the nodes that may get a job, in Slurm's order. Raises AnsibleFilterError for anything but lines."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise AnsibleFilterError(f"slurm_nodes_usable needs the lines of sinfo, not {type(value).__name__}.")
    return [name for name, node in nodes_of_partition(map(str, value), partition).items() if every or node.usable]


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "hostlist_expand": hostlist_expand,
            "hostlist_compress": hostlist_compress,
            "slurm_nodes_usable": slurm_nodes_usable,
        }
