"""What is asked of EC2 about a cluster's network, and nothing that nobody wants to know."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._network.rules import rule_differences
from ansible_collections.trainium.cluster.plugins.module_utils._network.run import Look

from tests.unit.aws_answers import REGION, Aws, Item
from tests.unit.network.test_plan import WANTED, right

ROLE = "arn:aws:sts::123456789012:assumed-role/ml"
ASKED: Item = {
    "cidr": "10.77.0.0/16",
    "instance_type": "trn1.32xlarge",
    "zones": 1,
    "known_zone_ids": [],
    "left_out_zone_ids": [],
    "nat_gateway": True,
    "s3_endpoint": True,
    "tags": WANTED.tags,
    "kind_tags": WANTED.kind_tags,
    "groups": WANTED.groups,
    "group_names": ["bert-efa", "bert-bastion"],
}
OFFERED = {"InstanceTypeOfferings": [{"InstanceType": "trn1.32xlarge", "Location": "us-west-2d"}]}
ZONES = [
    {"ZoneName": f"us-west-2{one}", "ZoneId": f"usw2-az{number}", "State": "available", "ZoneType": "availability-zone"}
    for number, one in enumerate("abcd", 1)
]


def tags(**more: str) -> list[Item]:
    return [{"Key": key.replace("_", ":"), "Value": value} for key, value in more.items()]


def answers(**more: Any) -> Item:
    """Of a network in which nothing differs."""
    found = right()
    attributes = {"enableDnsSupport": "EnableDnsSupport", "enableDnsHostnames": "EnableDnsHostnames"}
    return {
        "DescribeVpcs": {"Vpcs": [found["vpc"]]},
        "DescribeInstances": {},
        "DescribeInstanceTypeOfferings": OFFERED,
        "DescribeVpcAttribute": lambda asked: {attributes[asked["Attribute"]]: {"Value": True}},
        "DescribeSubnets": {"Subnets": found["subnets"]},
        "DescribeInternetGateways": {"InternetGateways": found["internet_gateways"]},
        "DescribeNatGateways": {"NatGateways": found["nat_gateways"]},
        "DescribeRouteTables": {"RouteTables": found["route_tables"]},
        "DescribeVpcEndpoints": {"VpcEndpoints": found["vpc_endpoints"]},
        "DescribeSecurityGroups": {"SecurityGroups": found["security_groups"]},
        "GetCallerIdentity": {"Arn": f"{ROLE}/session", "Account": "123456789012", "UserId": "x"},
        **more,
    }


def ask(aws: Aws, network: Item | None = None, **params: Any) -> Item:
    given = {"cluster_name": "bert", "owner": "ada", "caller": "", "key_name": "", "public_key": "", "network": network}
    client = aws.client("ec2")
    found: Item = Look(client, lambda: aws.client("sts"), REGION, {**given, **params}).ask()
    return found


def test_whose_a_cluster_is_takes_two_calls() -> None:
    instances = [
        {"InstanceId": "i-1", "Tags": tags(trainium_cluster="bert", trainium_owner="bob")},
        {"InstanceId": "i-2", "Tags": [{"Key": "eks:cluster-name", "Value": "bert"}]},
    ]
    vpc = {"VpcId": "vpc-1", "Tags": tags(trainium_owner="ada")}
    aws = Aws({"DescribeVpcs": {"Vpcs": [vpc]}, "DescribeInstances": {"Reservations": [{"Instances": instances}]}})
    assert ask(aws) == {
        "caller": "",
        "owner": "ada",
        "owners": ["ada", "bob"],
        "backends": {"ec2": 1, "eks": 1},
        "vpc_ids": ["vpc-1"],
    }
    assert aws.names() == {"DescribeVpcs", "DescribeInstances"}
    # A VPC that has only the name or the network is somebody else's.
    assert aws.filters("DescribeVpcs") == {"tag:trainium:cluster": ["bert"], "tag:trainium:role": ["network"]}
    living = ["pending", "running", "stopping", "stopped"]
    assert aws.filters("DescribeInstances") == {"tag:trainium:cluster": ["bert"], "instance-state-name": living}


@pytest.mark.parametrize(
    ("params", "asked", "caller", "owner"),
    [
        ({"owner": ""}, True, f"{ROLE}/session", ROLE),
        ({"owner": "", "caller": f"{ROLE}/other"}, False, f"{ROLE}/other", ROLE),
        ({"owner": "ada", "caller": "x"}, False, "x", "ada"),
        ({"owner": "ada"}, False, "", "ada"),
    ],
)
def test_who_calls_is_asked_where_nobody_has_said_it(params: Item, asked: bool, caller: str, owner: str) -> None:
    aws = Aws(answers(DescribeVpcs={}))
    found = ask(aws, **params)
    assert ("GetCallerIdentity" in aws.names()) is asked
    assert (found["caller"], found["owner"], found["vpc_ids"]) == (caller, owner, [])


def test_a_key_pair_is_looked_for_with_its_public_key() -> None:
    pair = {"KeyName": "k", "PublicKey": "ssh-ed25519 AAAA x", "Tags": tags(trainium_cluster="bert")}
    aws = Aws(answers(DescribeKeyPairs={"KeyPairs": [pair]}))
    found = ask(aws, key_name="k", public_key="ssh-ed25519 AAAA me")
    assert found["key"] == {"exists": True, "ours": True, "right": True}
    assert aws.filters("DescribeKeyPairs") == {"key-name": ["k"]}
    assert aws.last("DescribeKeyPairs")["IncludePublicKey"] is True
    assert "key" not in ask(Aws(answers()))


def test_a_network_in_which_nothing_differs() -> None:
    aws = Aws(answers())
    found = ask(aws, ASKED)
    assert (found["differs"], found["differences"], found["strangers"]) == ([], {}, "")
    assert (found["zones"], found["further_zones"]) == (["us-west-2d"], [])
    assert (found["vpc_id"], found["internet_gateway_id"], found["nat_gateway_id"]) == ("vpc-1", "igw-1", "nat-1")
    assert found["route_table_ids"] == {"public": "rtb-public", "private": "rtb-private"}
    assert {name for name in aws.names() if "Zone" in name or "Types" in name} == set()
    inside = {"vpc-id": ["vpc-1"]}
    assert aws.filters("DescribeSubnets") == aws.filters("DescribeRouteTables") == inside
    assert aws.filters("DescribeInternetGateways") == {"attachment.vpc-id": ["vpc-1"]}
    assert aws.filters("DescribeSecurityGroups") == {**inside, "group-name": ["bert-efa", "bert-bastion"]}
    assert aws.filters("DescribeNatGateways") == {
        **inside,
        "tag:trainium:cluster": ["bert"],
        "tag:trainium:role": ["network"],
        "state": ["pending", "available"],
    }
    assert aws.filters("DescribeVpcEndpoints") == {
        **inside,
        "service-name": ["com.amazonaws.us-west-2.s3"],
        "vpc-endpoint-type": ["Gateway"],
    }
    assert aws.filters("DescribeInstanceTypeOfferings") == {"instance-type": ["trn1.32xlarge"]}
    asked = {request["Attribute"] for call, request in aws.asked if call == "DescribeVpcAttribute"}
    assert asked == {"enableDnsSupport", "enableDnsHostnames"}


def test_an_attribute_that_is_off_is_a_difference() -> None:
    def attribute(asked: Item) -> Item:
        name = asked["Attribute"]
        return {name[0].upper() + name[1:]: {"Value": name == "enableDnsSupport"}}

    found = ask(Aws(answers(DescribeVpcAttribute=attribute)), ASKED)
    assert found["differences"] == {"vpc": ["enableDnsHostnames of vpc-1 is off"]}


def test_what_is_not_wanted_is_not_asked_for() -> None:
    aws = Aws(answers())
    ask(aws, {**ASKED, "nat_gateway": False, "s3_endpoint": False})
    assert not aws.names() & {"DescribeNatGateways", "DescribeVpcEndpoints"}


def test_of_a_vpc_that_is_not_there_nothing_is_asked() -> None:
    aws = Aws(answers(DescribeVpcs={}))
    found = ask(aws, ASKED)
    assert aws.names() == {"DescribeVpcs", "DescribeInstances", "DescribeInstanceTypeOfferings"}
    assert "vpc" in found["differs"]
    assert found["differs"] == sorted(found["differs"])


def test_strangers_are_told_by_the_cluster_s_subnets_and_groups() -> None:
    stranger = {
        "OwnerId": "1",
        "GroupId": "sg-9",
        "GroupName": "bert-efa",
        "Description": "x",
        "IpPermissions": [],
        "Tags": [],
    }
    aws = Aws(answers(DescribeSecurityGroups={"SecurityGroups": [{**stranger, "IpPermissionsEgress": []}]}))
    assert ask(aws, ASKED)["strangers"].startswith("sg-9 (bert-efa) is in vpc-1, the VPC of")
    subnet = {"SubnetId": "subnet-9", "CidrBlock": WANTED.subnets[0]["cidr"], "Tags": []}
    aws = Aws(answers(DescribeSubnets={"Subnets": [subnet]}))
    assert ask(aws, ASKED)["strangers"].startswith("subnet-9 (")


@pytest.mark.parametrize(
    ("offered", "changes", "asks", "mine", "further"),
    [
        (["d"], {"zones": 2}, {"DescribeAvailabilityZones"}, ["d"], ["a"]),
        (["d"], {"zones": 3, "left_out_zone_ids": ["usw2-az1"]}, {"DescribeAvailabilityZones"}, ["d"], ["b", "c"]),
        (["c", "d"], {"zones": 2}, set(), ["c", "d"], []),
        ([], {"known_zone_ids": ["usw2-az2"]}, {"DescribeAvailabilityZones", "DescribeInstanceTypes"}, ["b"], []),
        ([], {"zones": 2}, {"DescribeInstanceTypes"}, [], []),
    ],
)
def test_zones_are_asked_for_where_they_are_needed(
    offered: list[str], changes: Item, asks: set[str], mine: list[str], further: list[str]
) -> None:
    offerings = [{"InstanceType": "trn1.32xlarge", "Location": f"us-west-2{one}"} for one in offered]
    known = {"InstanceTypes": [{"InstanceType": "trn1.32xlarge"}]}
    aws = Aws(
        answers(
            DescribeVpcs={},
            DescribeInstanceTypeOfferings={"InstanceTypeOfferings": offerings},
            DescribeAvailabilityZones={"AvailabilityZones": ZONES},
            DescribeInstanceTypes=known,
        )
    )
    found = ask(aws, {**ASKED, **changes})
    assert aws.names() & {"DescribeAvailabilityZones", "DescribeInstanceTypes"} == asks
    assert (found["zones"], found["further_zones"]) == (
        [f"us-west-2{one}" for one in mine],
        [f"us-west-2{one}" for one in further],
    )


def test_a_type_that_ec2_does_not_know_is_refused() -> None:
    aws = Aws(answers(DescribeInstanceTypeOfferings={}, DescribeInstanceTypes="InvalidInstanceType"))
    with pytest.raises(TrainiumError, match=r"^EC2 does not know the instance type trn1.32xlarge in this region;"):
        ask(aws, ASKED)


def test_ports_of_all_kinds_are_none() -> None:
    """EC2 shows -1 where a rule of ICMP has no type; of all protocols it shows no ports."""
    group = {"GroupName": "g", "GroupId": "sg-1", "OwnerId": "1"}
    ends = {"IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    wanted = [{"proto": "icmp", "cidr_ip": "10.0.0.0/8"}]
    shown: Item = {"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1, **ends}
    assert rule_differences(wanted, [shown], group, "g") == []
    assert (
        rule_differences([{"proto": "all", "cidr_ip": ["10.0.0.0/8"]}], [{"IpProtocol": "-1", **ends}], group, "g")
        == []
    )
    (lacks, has) = rule_differences(wanted, [{**shown, "FromPort": 8}], group, "g")
    assert lacks == "g lacks icmp 10.0.0.0/8 (no description)"
    assert has == "g has icmp 8--1 10.0.0.0/8 (no description)"


def test_a_call_that_is_refused_is_the_error() -> None:
    with pytest.raises(AwsCallError, match="UnauthorizedOperation it is"):
        ask(Aws(answers(DescribeSubnets="UnauthorizedOperation")), ASKED)
