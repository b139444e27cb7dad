# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter package_changes; documented in the YAML file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._node.state import package_changes as plan


def package_changes(value: Any, installed: Mapping[str, Any], held: bool = True) -> dict[str, list[str]]:
    """Which of the wanted packages have to be installed, and which to be held."""
    if not isinstance(value, Mapping) or not isinstance(installed, Mapping):
        raise AnsibleFilterError("package_changes needs two dictionaries, wanted versions and installed packages.")
    return plan(value, installed, bool(held))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"package_changes": package_changes}
