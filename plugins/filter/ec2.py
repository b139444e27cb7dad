# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters of networks and network interfaces; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import networks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import (
    known_network,
    network_of,
    plan_interfaces,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.request import interface_entries
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, is_listed, takes


@takes((str, Mapping), "an instance type or its record")
def efa_interfaces(
    value: Any, layout: str | None = None, subnet_id: str = "", security_groups: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The network interfaces of an instance type, as RunInstances and launch templates take them."""
    if isinstance(security_groups, str):
        security_groups = [security_groups]
    network = known_network(value) if isinstance(value, str) else network_of(value)
    return interface_entries(plan_interfaces(network, layout), subnet_id, security_groups)


@takes(is_listed, "a list of zones")
def network_subnets(value: Any, network: str) -> list[dict[str, str]]:
    """The public and the private subnet of each zone."""
    return networks.cluster_subnets(map(str, value), str(network))


@takes(is_listed, "a list of networks")
def wide_networks(value: Any, smallest_prefix: Any = 16) -> list[str]:
    """What is wrong with a list of networks from which somebody may log in."""
    return networks.wide_networks([str(item) for item in value], int(str(smallest_prefix)))


FilterModule = filter_module(efa_interfaces, network_subnets, wide_networks)
