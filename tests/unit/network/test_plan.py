"""What differs in a network: all that the modules of amazon.aws would mend, and nothing that they would not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._network.plan import (
    Found,
    Wanted,
    compare,
    subnets_in,
    zones_of,
)

Item = dict[str, Any]
VPC, IGW, NAT, GROUP, ACCOUNT = "vpc-1", "igw-1", "nat-1", "sg-1", "123456789012"
RULES: list[Item] = [
    {"proto": "all", "group_name": "bert-efa", "rule_desc": "EFA"},
    {"proto": "tcp", "ports": [22], "cidr_ip": ["192.0.2.0/24", "10.77.0.0/16"], "rule_desc": "ssh"},
]
OUT = [{"proto": "all", "cidr_ip": "0.0.0.0/0", "rule_desc": "out"}]
WANTED = Wanted(
    cluster="bert",
    owner="ada",
    cidr="10.77.0.0/16",
    subnets=subnets_in(["us-west-2d"], "10.77.0.0/16"),
    tags={"team": "speech", "cost": 7},
    kind_tags={"private": {"kubernetes.io/role/internal-elb": "1"}},
    nat_gateway=True,
    s3_endpoint=True,
    groups={
        "security_group": {"name": "bert-efa", "description": "EFA", "rules": RULES, "rules_egress": OUT},
        "bastion_group": {"name": "bert-bastion", "description": "ssh", "rules": RULES[1:]},
    },
)
SSH = {
    "IpProtocol": "tcp",
    "FromPort": 22,
    "ToPort": 22,
    "IpRanges": [
        {"CidrIp": "10.77.0.0/16", "Description": "ssh"},
        {"CidrIp": "192.0.2.0/24", "Description": "ssh"},
    ],
}


def tags(name: str, **more: str) -> list[Item]:
    mine = {"trainium:cluster": "bert", "trainium:role": "network", "trainium:owner": "ada", "Name": name}
    # One that somebody else gave it is nobody's business.
    every = {**mine, "team": "speech", "cost": "7", "theirs": "x", **more}
    return [{"Key": key, "Value": value} for key, value in every.items()]


def table(kind: str, gateway: Item) -> Item:
    # That of the endpoint is the endpoint's.
    routes = [{"DestinationCidrBlock": "10.77.0.0/16", "GatewayId": "local"}, {"DestinationPrefixListId": "pl-1"}]
    return {
        "RouteTableId": f"rtb-{kind}",
        "Routes": [*routes, {"DestinationCidrBlock": "0.0.0.0/0", **gateway}],
        "Associations": [{"Main": False, "SubnetId": f"subnet-{kind}"}],
        "Tags": tags(f"bert-{kind}"),
    }


def right() -> Item:
    """What EC2 says of a network in which nothing differs."""
    among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": GROUP, "UserId": ACCOUNT, "Description": "EFA"}]}
    out = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0", "Description": "out"}]}
    block = {"CidrBlock": "10.77.0.0/16", "CidrBlockState": {"State": "associated"}}
    main = {"RouteTableId": "rtb-0", "Routes": [], "Associations": [{"Main": True}], "Tags": []}
    return {
        "vpc": {"VpcId": VPC, "CidrBlockAssociationSet": [block], "Tags": tags("bert")},
        "attributes": {"enableDnsSupport": True, "enableDnsHostnames": True},
        "subnets": [
            {
                "SubnetId": f"subnet-{one['kind']}",
                "CidrBlock": one["cidr"],
                "MapPublicIpOnLaunch": False,
                "AssignIpv6AddressOnCreation": False,
                "Ipv6CidrBlockAssociationSet": [],
                "Tags": tags(
                    f"bert-{one['kind']}-us-west-2d",
                    **{"trainium:subnet": one["kind"]},
                    **({"kubernetes.io/role/internal-elb": "1"} if one["kind"] == "private" else {}),
                ),
            }
            for one in WANTED.subnets
        ],
        "internet_gateways": [{"InternetGatewayId": IGW, "Tags": tags("bert")}],
        "nat_gateways": [{"NatGatewayId": NAT, "Tags": tags("bert")}],
        "route_tables": [table("public", {"GatewayId": IGW}), main, table("private", {"NatGatewayId": NAT})],
        "vpc_endpoints": [{"State": "available"}],
        "security_groups": [
            {
                "GroupId": GROUP,
                "GroupName": "bert-efa",
                "OwnerId": ACCOUNT,
                "Description": "EFA",
                "IpPermissions": [among, copy.deepcopy(SSH)],
                "IpPermissionsEgress": [out],
                "Tags": tags("bert-efa"),
            },
            {
                "GroupId": "sg-2",
                "GroupName": "bert-bastion",
                "OwnerId": ACCOUNT,
                "Description": "ssh",
                "IpPermissions": [copy.deepcopy(SSH)],
                # Nobody asked what goes out.
                "IpPermissionsEgress": [],
                "Tags": tags("bert-bastion"),
            },
        ],
    }


def tag_lost(path: Callable[[Item], Item], name: str = "team") -> Callable[[Item], None]:
    def change(found: Item) -> None:
        item = path(found)
        item["Tags"] = [tag for tag in item["Tags"] if tag["Key"] != name]

    return change


def put(path: Callable[[Item], Item], **fields: Any) -> Callable[[Item], None]:
    return lambda found: path(found).update(fields)


def emptied(*names: str) -> Callable[[Item], None]:
    return lambda found: found.update({name: [] for name in names})


def subnet(found: Item, kind: str = "public") -> Item:
    return next(one for one in found["subnets"] if one["SubnetId"] == f"subnet-{kind}")


def route_table(found: Item, kind: str = "public") -> Item:
    return next(one for one in found["route_tables"] if one["RouteTableId"] == f"rtb-{kind}")


def group(found: Item) -> Item:
    return dict.__getitem__(found, "security_groups")[0]


def ssh(found: Item) -> Item:
    return group(found)["IpPermissions"][1]


V6 = {"Ipv6CidrBlockState": {"State": "associated"}, "Ipv6CidrBlock": "2001:db8::/64"}
OTHER = {"CidrBlock": "10.78.0.0/16", "CidrBlockState": {"State": "associated"}}
GOING = {"CidrBlock": "10.77.0.0/16", "CidrBlockState": {"State": "disassociating"}}
DIFFERENT: list[tuple[str, str, Callable[[Item], None]]] = [
    ("vpc", f"{VPC} has not the network 10.77.0.0/16", put(lambda f: f["vpc"], CidrBlockAssociationSet=[OTHER, GOING])),
    ("vpc", f"enableDnsSupport of {VPC} is off", put(lambda f: f["attributes"], enableDnsSupport=False)),
    ("vpc", f"enableDnsHostnames of {VPC} is off", put(lambda f: f["attributes"], enableDnsHostnames=False)),
    ("vpc", f"{VPC} has no tag Name", tag_lost(lambda f: f["vpc"], "Name")),
    ("vpc", f"{VPC} has the tag cost with another value", put(lambda f: f["vpc"], Tags=tags("bert", cost="8"))),
    ("subnets", "subnet-public has MapPublicIpOnLaunch", put(subnet, MapPublicIpOnLaunch=True)),
    ("subnets", "subnet-public has AssignIpv6AddressOnCreation", put(subnet, AssignIpv6AddressOnCreation=True)),
    ("subnets", "subnet-public has an IPv6 network", put(subnet, Ipv6CidrBlockAssociationSet=[V6])),
    ("subnets", "subnet-public has no tag trainium:subnet", tag_lost(subnet, "trainium:subnet")),
    (
        "subnets",
        "subnet-private has no tag kubernetes.io/role/internal-elb",
        tag_lost(lambda f: subnet(f, "private"), "kubernetes.io/role/internal-elb"),
    ),
    ("internet_gateway", f"{IGW} has no tag team", tag_lost(lambda f: f["internet_gateways"][0])),
    ("nat_gateway", "there is no NAT gateway", emptied("nat_gateways")),
    ("route_tables", "there is no public route table", tag_lost(route_table, "trainium:cluster")),
    ("route_tables", "there is no public route table", tag_lost(route_table, "trainium:role")),
    ("route_tables", "there is no public route table", tag_lost(route_table, "Name")),
    ("route_tables", "rtb-public has no tag trainium:owner", tag_lost(route_table, "trainium:owner")),
    (
        "route_tables",
        "rtb-public does not lead to the internet gateway",
        put(route_table, Routes=[{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-2"}]),
    ),
    ("route_tables", "rtb-public does not lead to the internet gateway", put(route_table, Routes=[])),
    (
        "route_tables",
        "rtb-private does not lead to the NAT gateway",
        put(
            lambda f: route_table(f, "private"),
            Routes=[{"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-2"}],
        ),
    ),
    ("route_tables", "subnet-public does not go with rtb-public", put(route_table, Associations=[{"Main": True}])),
    (
        "route_tables",
        "subnet-9 goes with rtb-public",
        lambda f: route_table(f)["Associations"].append({"Main": False, "SubnetId": "subnet-9"}),
    ),
    ("s3_endpoint", "there is no gateway endpoint of S3", emptied("vpc_endpoints")),
    ("s3_endpoint", "there is no gateway endpoint of S3", put(lambda f: f["vpc_endpoints"][0], State="deleting")),
    ("s3_endpoint", "there is no gateway endpoint of S3", put(lambda f: f["vpc_endpoints"][0], State="Deleted")),
    ("security_group", f"{GROUP} has no tag team", tag_lost(group)),
    ("security_group", f"{GROUP} has another description", put(group, Description="another")),
    ("security_group", f"{GROUP} in has tcp 22 0.0.0.0/0 (ssh)", lambda f: opened(f, "0.0.0.0/0")),
    ("security_group", f"{GROUP} in lacks tcp 22 192.0.2.0/24 (ssh)", lambda f: ssh(f)["IpRanges"].pop()),
    ("security_group", f"{GROUP} in has tcp 22-23 192.0.2.0/24 (ssh)", put(ssh, ToPort=23)),
    ("security_group", f"{GROUP} in has udp 22 192.0.2.0/24 (ssh)", put(ssh, IpProtocol="udp")),
    (
        "security_group",
        f"{GROUP} in has tcp 22 192.0.2.0/24 (no description)",
        lambda f: ssh(f)["IpRanges"][1].pop("Description"),
    ),
    (
        "security_group",
        f"{GROUP} in has tcp 22 ::/0 (no description)",
        put(ssh, Ipv6Ranges=[{"CidrIpv6": "::/0"}]),
    ),
    (
        "security_group",
        f"{GROUP} in has tcp 22 pl-1 (no description)",
        put(ssh, PrefixListIds=[{"PrefixListId": "pl-1"}]),
    ),
    (
        "security_group",
        f"{GROUP} in has all sg-9 (no description)",
        lambda f: group(f)["IpPermissions"][0]["UserIdGroupPairs"].append({"GroupId": "sg-9", "UserId": ACCOUNT}),
    ),
    (
        "security_group",
        f"{GROUP} in lacks all {GROUP} (EFA)",
        lambda f: group(f)["IpPermissions"][0]["UserIdGroupPairs"][0].update(UserId="210987654321"),
    ),
    ("security_group", f"{GROUP} out lacks all 0.0.0.0/0 (out)", put(group, IpPermissionsEgress=[])),
    ("bastion_group", "there is no security group bert-bastion", lambda f: f["security_groups"].pop()),
]


def opened(found: Item, cidr: str) -> None:
    ssh(found)["IpRanges"].append({"CidrIp": cidr, "Description": "ssh"})


def test_where_all_is_right_nothing_differs_and_every_id_is_known() -> None:
    network = compare(WANTED, Found(**right()))
    assert network.differences == {}
    assert [one["id"] for one in network.subnets] == ["subnet-public", "subnet-private"]
    assert (network.vpc_id, network.internet_gateway_id, network.nat_gateway_id) == (VPC, IGW, NAT)
    assert network.route_table_ids == {"public": "rtb-public", "private": "rtb-private"}
    assert network.group_ids == {"security_group": GROUP, "bastion_group": "sg-2"}


@pytest.mark.parametrize(("part", "said", "change"), DIFFERENT)
def test_a_change_is_seen_in_its_part_alone(part: str, said: str, change: Callable[[Item], Any]) -> None:
    found = right()
    change(found)
    differences = compare(WANTED, Found(**found)).differences
    assert said in differences.pop(part)
    # Where a gateway is another one, so is the route to it.
    assert list(differences) == (["route_tables"] if part == "nat_gateway" else [])


def test_where_nothing_is_all_parts_are_to_be_made() -> None:
    network = compare(WANTED, Found())
    parts = ["vpc", "subnets", "internet_gateway", "nat_gateway", "route_tables", "s3_endpoint", "security_group"]
    assert list(network.differences) == [*parts, "bastion_group"]
    assert [one["id"] for one in network.subnets] == ["", ""]
    assert network.route_table_ids == {"public": "", "private": ""}


def test_a_new_subnet_or_gateway_takes_its_table_along() -> None:
    found = right()
    found["subnets"] = found["subnets"][:1]
    assert list(compare(WANTED, Found(**found)).differences) == ["subnets", "route_tables"]
    found = right()
    found["internet_gateways"] = []
    # A table that leads nowhere is not one that leads to a gateway without an id.
    route_table(found)["Routes"] = [{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": ""}]
    assert list(compare(WANTED, Found(**found)).differences) == ["internet_gateway", "route_tables"]


def test_what_was_not_asked_for_is_left_alone() -> None:
    found = right()
    found.update(nat_gateways=[], vpc_endpoints=[])
    route_table(found, "private")["Routes"] = [{"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-9"}]
    fields = {name: getattr(WANTED, name) for name in ("cluster", "owner", "cidr", "subnets", "tags", "kind_tags")}
    assert compare(Wanted(**fields), Found(**found)).differences == {}


def test_of_two_tables_of_a_name_the_first_is_the_one() -> None:
    found = right()
    second = {**copy.deepcopy(route_table(found)), "RouteTableId": "rtb-zz", "Routes": [], "Associations": []}
    found["route_tables"].insert(0, second)
    assert compare(WANTED, Found(**found)).differences == {}


def test_a_network_with_bits_of_a_host_is_the_one_that_ec2_keeps() -> None:
    groups = {
        "g": dict(WANTED.groups["bastion_group"], rules=[{**RULES[1], "cidr_ip": ["10.77.0.9/16", "192.0.2.7/24"]}])
    }
    assert (
        compare(Wanted("bert", "ada", "10.77.0.0/16", (), WANTED.tags, groups=groups), Found(**right())).differences
        == {}
    )


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"proto": "tcp", "from_port": 22}, "rules of bert-bastion have from_port, which cannot be compared"),
        ({"proto": "all", "group_name": "other"}, "a rule of bert-bastion names the group other"),
    ],
)
def test_a_rule_that_cannot_be_compared_is_refused(rule: Item, said: str) -> None:
    groups = {"g": dict(WANTED.groups["bastion_group"], rules=[rule])}
    with pytest.raises(TrainiumError, match=said):
        compare(Wanted("bert", "ada", "10.77.0.0/16", (), groups=groups), Found(**right()))


ZONES = [
    {"ZoneName": f"us-west-2{letter}", "ZoneId": f"usw2-az{number}", "State": "available"}
    for number, letter in ((1, "b"), (2, "a"), (3, "c"), (4, "d"))
]


def test_zones_that_have_the_type_come_first() -> None:
    assert zones_of(["us-west-2d"], [], [], 1, []) == (["us-west-2d"], [])
    assert zones_of(["us-west-2d", "us-west-2b"], [], [], 2, []) == (["us-west-2b", "us-west-2d"], [])
    # Where EC2 names none, those that are known by their id; one that has it not is added for a second.
    assert zones_of([], ZONES, ["usw2-az4"], 1, []) == (["us-west-2d"], [])
    assert zones_of(["us-west-2d"], ZONES, [], 2, ["usw2-az2"]) == (["us-west-2d"], ["us-west-2b"])
    away = [{**ZONES[1], "State": "impaired"}, {**ZONES[0], "ZoneType": "local-zone"}, ZONES[2]]
    assert zones_of(["us-west-2d"], away, [], 2, []) == (["us-west-2d"], ["us-west-2c"])
    assert zones_of([], [], [], 1, []) == ([], [])


def test_a_zone_whose_subnets_have_no_place_is_refused() -> None:
    with pytest.raises(TrainiumError, match="'us-west-2x' does not end with a letter"):
        subnets_in(["us-west-2x"], "10.77.0.0/16")
