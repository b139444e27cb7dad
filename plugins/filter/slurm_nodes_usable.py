# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter slurm_nodes_usable; documented in the YAML file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import nodes_of_partition


def slurm_nodes_usable(value: Any, partition: str = "", every: bool = False) -> list[str]:
    """The names of the nodes that may get a job, in Slurm's order. Raises AnsibleFilterError for anything but lines."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise AnsibleFilterError(f"slurm_nodes_usable needs the lines of sinfo, not {type(value).__name__}.")
    return [name for name, node in nodes_of_partition(map(str, value), partition).items() if every or node.usable]


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"slurm_nodes_usable": slurm_nodes_usable}
