# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter wide_networks; documented in the YAML file beside this one."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import networks
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, is_listed, takes


@takes(is_listed, "a list of networks")
def wide_networks(value: Any, smallest_prefix: Any = 16) -> list[str]:
    """What is wrong with a list of networks from which somebody may log in."""
    return networks.wide_networks([str(item) for item in value], int(str(smallest_prefix)))


FilterModule = filter_module(wide_networks)
