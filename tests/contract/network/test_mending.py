"""Role network on a network that is there: nothing is asked twice, and what was changed by hand is found and mended."""

from __future__ import annotations

import collections
from typing import Any

import pytest

from tests.contract.network.conftest import Controller, changed

NAME = "bert"
MINE = [{"Name": "tag:trainium:cluster", "Values": [NAME]}, {"Name": "tag:trainium:role", "Values": ["network"]}]
EVERYWHERE = "0.0.0.0/0"
Item = dict[str, Any]
# What a run with nothing to do asks, each once but for the two attributes of the VPC.
ASKED = {
    "GetCallerIdentity": 1,
    "DescribeInstances": 1,
    "DescribeInstanceTypeOfferings": 1,
    "DescribeKeyPairs": 1,
    "DescribeVpcs": 1,
    "DescribeVpcAttribute": 2,
    "DescribeSubnets": 1,
    "DescribeInternetGateways": 1,
    "DescribeNatGateways": 1,
    "DescribeRouteTables": 1,
    "DescribeVpcEndpoints": 1,
    "DescribeSecurityGroups": 1,
}


def tags(item: Item) -> Item:
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}


def inside(controller: Controller, kind: str, **arguments: Any) -> list[Item]:
    """Those of a kind that carry the cluster's tags, by their names."""
    answer = getattr(controller.ec2, f"describe_{kind}")(**(arguments or {"Filters": MINE}))
    found = next(value for key, value in answer.items() if key != "ResponseMetadata")
    return sorted(found, key=lambda item: str(tags(item).get("Name")))


def state(controller: Controller) -> Item:
    """All that role network decides, with names in place of ids, which a thing that is made anew has others of."""
    ec2 = controller.ec2
    (vpc,) = inside(controller, "vpcs")
    subnets, gateways = inside(controller, "subnets"), inside(controller, "internet_gateways")
    nats = [one for one in inside(controller, "nat_gateways", Filter=MINE) if one["State"] == "available"]
    called = {one["SubnetId"]: one["CidrBlock"] for one in subnets}
    called.update(
        {one["InternetGatewayId"]: "internet" for one in gateways}, **{one["NatGatewayId"]: "NAT" for one in nats}
    )
    tables = inside(controller, "route_tables")
    for one in tables:
        called[one["RouteTableId"]] = tags(one)["Name"]
    (group,) = inside(controller, "security_groups")
    (pair,) = ec2.describe_key_pairs(KeyNames=[NAME], IncludePublicKey=True)["KeyPairs"]
    attributes = ("enableDnsSupport", "enableDnsHostnames")
    answers = [ec2.describe_vpc_attribute(VpcId=vpc["VpcId"], Attribute=name) for name in attributes]
    endpoints = [one for one in inside(controller, "vpc_endpoints") if one["State"] == "available"]
    return {
        "vpc": [tags(vpc), *(answer[name[0].upper() + name[1:]] for name, answer in zip(attributes, answers))],
        "subnets": [(one["CidrBlock"], one["MapPublicIpOnLaunch"], tags(one)) for one in subnets],
        "gateways": [tags(one) for one in gateways + nats],
        "tables": [
            {
                "tags": tags(one),
                "ways": [
                    called[route.get("NatGatewayId") or route["GatewayId"]]
                    for route in one["Routes"]
                    if route.get("DestinationCidrBlock") == EVERYWHERE
                ],
                "subnets": sorted(called[entry["SubnetId"]] for entry in one["Associations"] if not entry["Main"]),
            }
            for one in tables
        ],
        "endpoints": [sorted(called[table] for table in one["RouteTableIds"]) for one in endpoints],
        "group": [tags(group), rules(group["IpPermissions"]), rules(group["IpPermissionsEgress"])],
        "key": (pair["PublicKey"].split()[:2], tags(pair)),
    }


def rules(permissions: list[Item]) -> list[str]:
    ends = ("IpRanges", "Ipv6Ranges", "UserIdGroupPairs", "PrefixListIds")
    return sorted(
        str((one["IpProtocol"], one.get("FromPort"), one.get("ToPort"), sorted(end.items())))
        for one in permissions
        for kind in ends
        for end in one.get(kind, [])
    )


@pytest.fixture(scope="module")
def made(controller: Controller) -> Item:
    """A network with everything in it, and what it is like."""
    controller.variables.update(
        trainium_cluster_name=NAME,
        trainium_backend="pcluster",
        trainium_public_ip="primary",
        network_address_service=f"{controller.api.url}/sandbox-api/address",
    )
    assert changed(controller.role("network")) > 0
    return state(controller)


def settled(controller: Controller) -> None:
    """A run that asks for each thing once, and calls nothing else."""
    controller.api.clear_calls()
    assert changed(controller.role("network")) == 0
    assert collections.Counter(call["action"] for call in controller.api.calls()) == ASKED


def test_a_network_that_is_right_is_asked_for_once(controller: Controller, made: Item) -> None:
    settled(controller)
    assert state(controller) == made


def test_what_was_changed_by_hand_is_mended_by_the_next_run(controller: Controller, made: Item) -> None:
    ec2 = controller.ec2
    (vpc,) = inside(controller, "vpcs")
    public_table, private_table = (
        next(one for one in inside(controller, "route_tables") if tags(one)["Name"] == f"{NAME}-{kind}")
        for kind in ("public", "private")
    )
    public, private = (
        [one for one in inside(controller, "subnets") if tags(one)["trainium:subnet"] == kind]
        for kind in ("public", "private")
    )
    (gateway,), (group,) = inside(controller, "internet_gateways"), inside(controller, "security_groups")
    (nat,) = [one for one in inside(controller, "nat_gateways", Filter=MINE) if one["State"] == "available"]
    (endpoint,) = inside(controller, "vpc_endpoints")

    ec2.modify_vpc_attribute(VpcId=vpc["VpcId"], EnableDnsHostnames={"Value": False})
    ec2.modify_vpc_attribute(VpcId=vpc["VpcId"], EnableDnsSupport={"Value": False})
    ec2.modify_subnet_attribute(SubnetId=public[0]["SubnetId"], MapPublicIpOnLaunch={"Value": True})
    for resource, tag in (
        (vpc["VpcId"], "Name"),
        (public[0]["SubnetId"], "trainium:subnet"),
        (gateway["InternetGatewayId"], "trainium:owner"),
        (private_table["RouteTableId"], "trainium:owner"),
        (group["GroupId"], "Name"),
    ):
        ec2.delete_tags(Resources=[resource], Tags=[{"Key": tag}])
    # The public table leads elsewhere, and the private one nowhere.
    ec2.replace_route(
        RouteTableId=public_table["RouteTableId"],
        DestinationCidrBlock=EVERYWHERE,
        NatGatewayId=nat["NatGatewayId"],
    )
    ec2.delete_route(RouteTableId=private_table["RouteTableId"], DestinationCidrBlock=EVERYWHERE)
    for table, subnet in ((public_table, public[0]), (private_table, private[0])):
        (association,) = [one for one in table["Associations"] if one.get("SubnetId") == subnet["SubnetId"]]
        ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
    ec2.delete_subnet(SubnetId=private[0]["SubnetId"])
    ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    ec2.authorize_security_group_ingress(
        GroupId=group["GroupId"], IpPermissions=[{**ssh, "IpRanges": [{"CidrIp": EVERYWHERE}]}]
    )
    (mine,) = [one for one in group["IpPermissions"] if one.get("FromPort") == 22]
    ec2.revoke_security_group_ingress(
        GroupId=group["GroupId"],
        IpPermissions=[{**ssh, "IpRanges": [one for one in mine["IpRanges"] if one["CidrIp"] != vpc["CidrBlock"]]}],
    )
    ec2.update_security_group_rule_descriptions_ingress(
        GroupId=group["GroupId"],
        IpPermissions=[{**ssh, "IpRanges": [{"CidrIp": vpc["CidrBlock"], "Description": "mine"}]}],
    )
    ec2.revoke_security_group_egress(
        GroupId=group["GroupId"],
        IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": EVERYWHERE}]}],
    )
    ours = [{"ResourceType": "key-pair", "Tags": ec2.describe_key_pairs(KeyNames=[NAME])["KeyPairs"][0]["Tags"]}]
    ec2.delete_key_pair(KeyName=NAME)
    ec2.create_key_pair(KeyName=NAME, KeyType="ed25519", TagSpecifications=ours)
    assert state_or_none(controller) != made

    assert changed(controller.role("network")) > 0
    assert state(controller) == made
    settled(controller)


def state_or_none(controller: Controller) -> Item | None:
    """As it is between two changes, where a thing may be missing that others are named after."""
    try:
        return state(controller)
    except KeyError:
        return None


def test_a_way_out_that_is_gone_is_made_anew(controller: Controller, made: Item) -> None:
    """The NAT gateway with its address, to which the private subnets lead."""
    (nat,) = [one for one in inside(controller, "nat_gateways", Filter=MINE) if one["State"] == "available"]
    controller.ec2.delete_nat_gateway(NatGatewayId=nat["NatGatewayId"])
    assert changed(controller.role("network")) > 0
    assert state(controller) == made
    settled(controller)


def test_the_group_of_a_bastion_is_mended_too(controller: Controller, made: Item) -> None:
    more, named = {"trainium_backend": "ec2", "trainium_bastion": "create"}, [f"{NAME}-bastion"]
    controller.api.clear_calls()
    assert controller.cases(("network", more)) == [""]
    wanted = [{"Name": "group-name", "Values": named}]
    (group,) = controller.ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    before = rules(group["IpPermissions"])
    assert len(before) == 1
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": EVERYWHERE}]}
    controller.ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[ssh])
    assert controller.cases(("network", more)) == [""]
    (group,) = controller.ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    assert rules(group["IpPermissions"]) == before
    # And the bastion with it is the one that was made.
    assert len(controller.api.calls("RunInstances")) == 1
    (node,) = controller.ec2.describe_instances(Filters=[{"Name": "tag:Name", "Values": named}])["Reservations"][0][
        "Instances"
    ]
    assert [one["GroupId"] for one in node["SecurityGroups"]] == [group["GroupId"]]
