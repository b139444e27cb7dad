"""What lies in a cluster's VPC and is not the cluster's: the role network would take it by its place or its name."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Account

MINE = [{"Key": "trainium:cluster", "Value": "bert"}]


@pytest.mark.parametrize("kind", ["subnet", "group", "gateway"])
def test_it_is_refused_unless_it_carries_the_tag(cloud: Account, kind: str) -> None:
    ec2 = cloud.ec2
    cidrs = [item["CidrBlock"] for item in ec2.describe_subnets(SubnetIds=cloud.subnets)["Subnets"]]
    wanted = {"vpc_id": cloud.vpc, "cluster_name": "bert", "cidrs": ["10.77.240.0/20"], "group_names": ["bert-efa"]}
    if kind == "subnet":
        wanted["cidrs"], identity = cidrs, cloud.subnets[0]
        ec2.create_tags(Resources=cloud.subnets[1:], Tags=MINE)
    elif kind == "group":
        wanted["group_names"], identity = ["bert-bastion", "efa"], cloud.group
    else:
        identity = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=identity, VpcId=cloud.vpc)
        # Nobody has said anything of those of other VPCs.
        other = ec2.create_vpc(CidrBlock="10.78.0.0/16")["Vpc"]["VpcId"]
        second = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=second, VpcId=other)
    ec2.create_tags(Resources=[identity], Tags=[{**MINE[0], "Value": "bert-2"}])
    failed = cloud.run("internal.vpc_strangers", wanted)
    assert failed["failed"]
    message = str(failed["msg"])
    assert message.startswith(f"{identity} (")
    assert f") is in {cloud.vpc}, the VPC of the cluster bert, and carries no tag trainium:cluster=bert" in message
    assert message.count(". ") == 0
    ec2.create_tags(Resources=[identity], Tags=MINE)
    done = cloud.run("internal.vpc_strangers", wanted)
    assert (done["changed"], done.get("failed")) == (False, None)
