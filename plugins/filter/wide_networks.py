# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter wide_networks; documented in the YAML file beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import networks


def wide_networks(value: Any, smallest_prefix: Any = 16) -> list[str]:
    """What is wrong with a list of networks from which somebody may log in."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
        raise AnsibleFilterError(f"wide_networks needs a list of networks, not {value!r}.")
    try:
        return networks.wide_networks([str(item) for item in value], int(smallest_prefix))
    except (TypeError, ValueError) as error:
        raise AnsibleFilterError(f"wide_networks: {error}.") from None


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"wide_networks": wide_networks}
