"""What lies in a cluster's VPC and is not the cluster's: the role network would take it by its place or its name."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.networks import cluster_subnets

from tests.contract.conftest import Account

MINE = [{"Key": "trainium:cluster", "Value": "bert"}]
NETWORK = [{"Key": "trainium:role", "Value": "network"}]


@pytest.mark.parametrize("kind", ["subnet", "group", "gateway"])
def test_it_is_refused_unless_it_carries_the_tag(cloud: Account, kind: str) -> None:
    ec2 = cloud.ec2
    ec2.create_tags(Resources=[cloud.vpc], Tags=[*MINE, *NETWORK])
    # Another network than that of the account's subnets, and in it the public subnet of a zone that has the type.
    mine = {"cidr": "10.77.128.0/17", "instance_type": "trn1.32xlarge"}
    wanted: dict[str, Any] = {"cluster_name": "bert", "network": {**mine, "group_names": ["bert-efa"]}}
    if kind == "subnet":
        (cidr, *_others) = [one["cidr"] for one in cluster_subnets(cloud.zones, mine["cidr"])]
        made = ec2.create_subnet(VpcId=cloud.vpc, CidrBlock=cidr, AvailabilityZone=cloud.zones[0])
        identity = made["Subnet"]["SubnetId"]
    elif kind == "group":
        wanted["network"]["group_names"], identity = ["bert-bastion", "efa"], cloud.group
    else:
        identity = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=identity, VpcId=cloud.vpc)
        # Nobody has said anything of those of other VPCs.
        other = ec2.create_vpc(CidrBlock="10.78.0.0/16")["Vpc"]["VpcId"]
        second = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=second, VpcId=other)
    ec2.create_tags(Resources=[identity], Tags=[{**MINE[0], "Value": "bert-2"}])
    message = str(cloud.run("internal.network_info", wanted)["strangers"])
    assert message.startswith(f"{identity} (")
    assert f") is in {cloud.vpc}, the VPC of the cluster bert, and carries no tag trainium:cluster=bert" in message
    assert message.count(". ") == 0
    ec2.create_tags(Resources=[identity], Tags=MINE)
    done = cloud.run("internal.network_info", wanted)
    assert (done["changed"], done.get("failed"), done["strangers"]) == (False, None, "")
