# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters hostlist_expand and hostlist_compress; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import hostlist


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


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[[Any], Any]]:
        return {"hostlist_expand": hostlist_expand, "hostlist_compress": hostlist_compress}
