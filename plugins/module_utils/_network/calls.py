# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One question to EC2 each, for what a cluster's network consists of."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import Client, call_of, list_of

# Of all describe calls this one alone has no Filters but Filter.
nat_gateways = list_of("list the NAT gateways", "describe_nat_gateways", "NatGateways")
vpc_endpoints = list_of("list the endpoints of the VPC", "describe_vpc_endpoints", "VpcEndpoints")
# Those that the account may use.
zones = call_of("list the zones of the region", "describe_availability_zones", "AvailabilityZones")


def vpc_attribute(client: Client, vpc: str, name: str) -> bool:
    """Whether an attribute such as ``enableDnsSupport`` is on."""
    call = call_of("describe the VPC", "describe_vpc_attribute", name[0].upper() + name[1:])
    return bool(call(client, VpcId=vpc, Attribute=name)["Value"])
