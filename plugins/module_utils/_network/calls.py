# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One question to EC2 each, for what a cluster's network consists of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    checked,
    filters_of,
    one_call,
    pages,
    retried,
)


@one_call("describe the VPC")
def vpc_attribute(client: Client, vpc: str, name: str) -> bool:
    """Whether an attribute such as ``enableDnsSupport`` is on."""
    answer = checked(retried(client.describe_vpc_attribute)(VpcId=vpc, Attribute=name))
    return bool(answer[name[0].upper() + name[1:]]["Value"])


@one_call("list the NAT gateways")
def nat_gateways(client: Client, filters: Mapping[str, Any]) -> list[Item]:
    # Of all describe calls this one alone has no Filters.
    return list(pages(client, "describe_nat_gateways", Filter=filters_of(filters)).get("NatGateways", ()))


@one_call("list the endpoints of the VPC")
def vpc_endpoints(client: Client, filters: Mapping[str, Any]) -> list[Item]:
    return list(pages(client, "describe_vpc_endpoints", Filters=filters_of(filters)).get("VpcEndpoints", ()))


@one_call("describe the key pair")
def key_pairs(client: Client, name: str) -> list[Item]:
    """The key pair of a name with its public key, if there is one."""
    asked = retried(client.describe_key_pairs)(Filters=filters_of({"key-name": name}), IncludePublicKey=True)
    return list(checked(asked)["KeyPairs"])


@one_call("list the zones of the region")
def zones(client: Client) -> list[Item]:
    """Those that the account may use."""
    return list(checked(retried(client.describe_availability_zones)())["AvailabilityZones"])
