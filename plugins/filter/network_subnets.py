# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter network_subnets; documented in the YAML file beside this one."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._ec2.networks import cluster_subnets
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, is_listed, takes


@takes(is_listed, "a list of zones")
def network_subnets(value: Any, network: str) -> list[dict[str, str]]:
    """The public and the private subnet of each zone."""
    return cluster_subnets(map(str, value), str(network))


FilterModule = filter_module(network_subnets)
