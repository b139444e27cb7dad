"""The subnets of a cluster's network, and what in it is somebody else's."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.ec2 import FilterModule
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.networks import cluster_subnets, strangers

ZONES = [f"us-west-2{letter}" for letter in "abcdefgh"]


@pytest.mark.parametrize("network", ["10.77.0.0/16", "10.77.32.0/20", "192.168.1.0/24"])
def test_all_lie_in_the_network_and_none_in_another(network: str) -> None:
    cut = [ipaddress.IPv4Network(subnet["cidr"]) for subnet in cluster_subnets(ZONES, network)]
    assert len(cut) == 16
    assert list(ipaddress.collapse_addresses(cut)) == [ipaddress.IPv4Network(network)]


def test_another_zone_changes_none() -> None:
    both = cluster_subnets(["us-west-2b", "us-west-2d"], "10.77.0.0/16")
    assert [subnet for subnet in both if subnet["zone"] == "us-west-2d"] == [
        {"zone": "us-west-2d", "kind": "public", "cidr": "10.77.48.0/20"},
        {"zone": "us-west-2d", "kind": "private", "cidr": "10.77.176.0/20"},
    ]


@pytest.mark.parametrize(
    ("zones", "network", "message"),
    [
        (["us-west-2x"], "10.77.0.0/16", "'us-west-2x' does not end with a letter"),
        (["us-west-2a"], "10.77.0.0/30", "network_subnets: "),
        ("us-west-2a", "10.77.0.0/16", "needs a list of zones, not str"),
    ],
)
def test_refusals(zones: object, network: str, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        FilterModule().filters()["network_subnets"](zones, network)


def test_what_is_somebody_else_s_in_the_vpc_is_named() -> None:
    def tagged(cluster: str) -> dict[str, Any]:
        return {"Tags": [{"Key": "trainium:cluster", "Value": cluster}]}

    mine = ("igw-1", "an Internet gateway", tagged("bert"))
    assert strangers([], "vpc-1", "bert") == strangers([mine], "vpc-1", "bert") == ""
    said = strangers([mine, ("nat-1", "a NAT gateway", tagged("gpt")), ("rtb-1", "a route table", {})], "vpc-1", "bert")
    assert said.startswith(
        "nat-1 (a NAT gateway), rtb-1 (a route table) is in vpc-1, the VPC of the cluster bert, and carries no tag "
        "trainium:cluster=bert, so that it is somebody else's;"
    )
    assert "igw-1" not in said
