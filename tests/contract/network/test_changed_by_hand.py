"""What somebody changes in the account by hand is found and mended by the next run, or refused in one sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.network.conftest import Controller, changed

NAME = "hand"
MINE = [{"Name": "tag:trainium:cluster", "Values": [NAME]}]
EVERYWHERE = "0.0.0.0/0"
Item = dict[str, Any]


def tags(item: Item) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}


class Cluster:
    """A network with two nodes, and what there is to see of it."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.ec2, self.iam = controller, controller.ec2, controller.client("iam")
        controller.variables.update(
            trainium_cluster_name=NAME,
            trainium_instance_type="trn1.2xlarge",
            trainium_node_count=2,
            trainium_key_name=NAME,
            trainium_public_ip="primary",
            trainium_placement_group=False,
            trainium_image_id=self.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"],
            network_nat_gateway=True,
            network_instance_profile=f"{NAME}-nodes",
            network_address_service=f"{controller.api.url}/sandbox-api/address",
            efa_nodes_interface_layout="none",
        )

    def run(self) -> int:
        """A run of what makes the account's part of a cluster; how many tasks changed something."""
        roles = [{"ansible.builtin.include_role": {"name": f"trainium.cluster.{name}"}} for name in ROLES]
        return changed(self.controller.run(self.controller.play(roles)))

    @property
    def vpc(self) -> str:
        (found,) = self.ec2.describe_vpcs(Filters=MINE)["Vpcs"]
        return str(found["VpcId"])

    @property
    def group(self) -> Item:
        (found,) = self.ec2.describe_security_groups(Filters=MINE)["SecurityGroups"]
        return dict(found)

    def table(self, kind: str) -> Item:
        named = [{"Name": "tag:Name", "Values": [f"{NAME}-{kind}"]}]
        (found,) = self.ec2.describe_route_tables(Filters=[*MINE, *named])["RouteTables"]
        return dict(found)

    def subnets(self) -> dict[str, Item]:
        return {one["SubnetId"]: one for one in self.ec2.describe_subnets(Filters=MINE)["Subnets"]}

    def endpoints(self) -> list[Item]:
        found = self.ec2.describe_vpc_endpoints(Filters=[{"Name": "vpc-id", "Values": [self.vpc]}])["VpcEndpoints"]
        return [one for one in found if one["State"].lower() not in ("deleting", "deleted")]

    def nodes(self) -> list[Item]:
        alive = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
        found = self.ec2.describe_instances(Filters=[*MINE, alive])["Reservations"]
        every = [one for reservation in found for one in reservation["Instances"]]
        return sorted(every, key=lambda one: str(one["InstanceId"]))

    def state(self) -> Item:
        """Everything that somebody may change, without what a thing that is made anew has otherwise: ids and times."""
        ec2, vpc, subnets = self.ec2, self.vpc, self.subnets()
        (pair,) = ec2.describe_key_pairs(KeyNames=[NAME], IncludePublicKey=True)["KeyPairs"]
        profile = self.iam.get_instance_profile(InstanceProfileName=f"{NAME}-nodes")["InstanceProfile"]
        tables = {kind: self.table(kind) for kind in ("public", "private")}
        names = {table["RouteTableId"]: kind for kind, table in tables.items()}
        return {
            "vpc": tags(ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]),
            "dns": [
                ec2.describe_vpc_attribute(VpcId=vpc, Attribute=attribute)[attribute[0].upper() + attribute[1:]][
                    "Value"
                ]
                for attribute in ("enableDnsSupport", "enableDnsHostnames")
            ],
            "subnets": {one["CidrBlock"]: tags(one) for one in subnets.values()},
            "tables": {kind: tags(table) for kind, table in tables.items()},
            "routes": {
                kind: [
                    (route.get("GatewayId"), route.get("NatGatewayId"))
                    for route in table["Routes"]
                    if route.get("DestinationCidrBlock") == EVERYWHERE
                ]
                for kind, table in tables.items()
            },
            "associations": {
                kind: sorted(
                    subnets[one["SubnetId"]]["CidrBlock"] for one in table["Associations"] if "SubnetId" in one
                )
                for kind, table in tables.items()
            },
            "endpoints": [
                (one["ServiceName"], sorted(names[table] for table in one["RouteTableIds"]), tags(one))
                for one in self.endpoints()
            ],
            "group": (tags(self.group), rules(self.group["IpPermissions"]), rules(self.group["IpPermissionsEgress"])),
            "key": (pair["PublicKey"].split()[:2], tags(pair)),
            "profile": [role["RoleName"] for role in profile["Roles"]],
            "nodes": {
                one["InstanceId"]: (one["State"]["Name"], tags(one), one.get("PublicIpAddress", ""))
                for one in self.nodes()
            },
        }

    # What somebody does by hand.

    def take_the_rule_of_efa_away(self) -> None:
        (rule,) = [rule for rule in self.group["IpPermissions"] if rule["IpProtocol"] == "-1"]
        self.ec2.revoke_security_group_ingress(GroupId=self.group["GroupId"], IpPermissions=[rule])

    def open_ssh_to_the_world(self) -> None:
        rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": EVERYWHERE}]}
        self.ec2.authorize_security_group_ingress(GroupId=self.group["GroupId"], IpPermissions=[rule])

    def forbid_what_leaves_the_nodes(self) -> None:
        rules = [rule for rule in self.group["IpPermissionsEgress"] if rule.get("IpRanges")]
        self.ec2.revoke_security_group_egress(
            GroupId=self.group["GroupId"], IpPermissions=[{"IpProtocol": "-1", "IpRanges": rules[0]["IpRanges"]}]
        )

    def route_the_public_subnets_over_nat(self) -> None:
        (gateway,) = self.ec2.describe_nat_gateways(Filter=MINE)["NatGateways"]
        route = {"DestinationCidrBlock": EVERYWHERE, "NatGatewayId": gateway["NatGatewayId"]}
        self.ec2.replace_route(RouteTableId=self.table("public")["RouteTableId"], **route)

    def delete_the_route_of_the_private_subnets(self) -> None:
        table = self.table("private")["RouteTableId"]
        self.ec2.delete_route(RouteTableId=table, DestinationCidrBlock=EVERYWHERE)

    def take_a_subnet_from_its_table(self) -> None:
        made = next(one for one in self.table("private")["Associations"] if "SubnetId" in one)
        self.ec2.disassociate_route_table(AssociationId=made["RouteTableAssociationId"])

    def remove_a_tag(self) -> None:
        self.ec2.delete_tags(Resources=[min(self.subnets())], Tags=[{"Key": "trainium:owner"}])

    def switch_dns_off(self) -> None:
        self.ec2.modify_vpc_attribute(VpcId=self.vpc, EnableDnsHostnames={"Value": False})
        self.ec2.modify_vpc_attribute(VpcId=self.vpc, EnableDnsSupport={"Value": False})

    def replace_the_key(self, marked: bool = True) -> None:
        other = self.controller.folder / "another"
        if not other.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
        (pair,) = self.ec2.describe_key_pairs(KeyNames=[NAME])["KeyPairs"]
        self.ec2.delete_key_pair(KeyName=NAME)
        specification = [{"ResourceType": "key-pair", "Tags": pair["Tags"]}] if marked else []
        public = Path(f"{other}.pub").read_bytes()
        self.ec2.import_key_pair(KeyName=NAME, PublicKeyMaterial=public, TagSpecifications=specification)

    def empty_the_profile(self) -> None:
        role = {"InstanceProfileName": f"{NAME}-nodes", "RoleName": f"{NAME}-nodes"}
        self.iam.remove_role_from_instance_profile(**role)

    def stop_a_node(self) -> None:
        node = self.nodes()[0]["InstanceId"]
        self.ec2.stop_instances(InstanceIds=[node])
        self.ec2.get_waiter("instance_stopped").wait(InstanceIds=[node], WaiterConfig={"Delay": 1, "MaxAttempts": 120})

    def take_an_address_away(self) -> None:
        node = self.nodes()[1]["InstanceId"]
        found = self.ec2.describe_addresses(Filters=MINE)["Addresses"]
        (address,) = [one for one in found if one.get("InstanceId") == node]
        self.ec2.disassociate_address(AssociationId=address["AssociationId"])

    def remove_a_tag_of_a_node(self) -> None:
        self.ec2.delete_tags(Resources=[self.nodes()[1]["InstanceId"]], Tags=[{"Key": "trainium:owner"}])


ROLES = ("network", "efa_nodes")
BY_HAND: tuple[Callable[[Cluster], None], ...] = (
    Cluster.take_the_rule_of_efa_away,
    Cluster.open_ssh_to_the_world,
    Cluster.forbid_what_leaves_the_nodes,
    Cluster.route_the_public_subnets_over_nat,
    Cluster.delete_the_route_of_the_private_subnets,
    Cluster.take_a_subnet_from_its_table,
    Cluster.remove_a_tag,
    Cluster.switch_dns_off,
    Cluster.replace_the_key,
    Cluster.empty_the_profile,
    Cluster.stop_a_node,
    Cluster.take_an_address_away,
    Cluster.remove_a_tag_of_a_node,
)


def rules(permissions: list[Item]) -> list[tuple[str, ...]]:
    """The rules of a security group, one for each peer."""
    found = []
    for rule in permissions:
        ports = (rule["IpProtocol"], str(rule.get("FromPort", "")), str(rule.get("ToPort", "")))
        found += [(*ports, item["CidrIp"]) for item in rule.get("IpRanges", [])]
        found += [(*ports, item["GroupId"]) for item in rule.get("UserIdGroupPairs", [])]
    return sorted(found)


@pytest.fixture(scope="module")
def cluster(controller: Controller) -> Cluster:
    """A cluster as a run has left it."""
    made = Cluster(controller)
    assert made.run() > 0
    return made


def test_each_thing_is_found_and_mended(cluster: Cluster) -> None:
    wanted = cluster.state()
    before = wanted
    for by_hand in BY_HAND:
        by_hand(cluster)
        after = cluster.state()
        assert after != before, by_hand.__name__
        before = after
    assert {key for key, value in wanted.items() if before[key] == value} == {"vpc", "tables", "endpoints"}
    assert cluster.run() > 0
    mended = cluster.state()
    assert {key: value for key, value in mended.items() if value != wanted[key]} == {}
    cluster.controller.api.clear_calls()
    assert cluster.run() == 0
    assert cluster.controller.api.writes() == []


def test_the_key_of_somebody_else_is_refused(cluster: Cluster) -> None:
    """Whoever has it would log in to every node that is launched from now on."""
    cluster.replace_the_key(marked=False)
    cluster.controller.api.clear_calls()
    (said,) = cluster.controller.cases(("network", {}))
    assert f"key pair {NAME} in us-west-2 is not this cluster's and holds another public key" in said
    assert cluster.controller.api.writes() == []


def test_a_subnet_without_the_clusters_tag_is_not_taken(cluster: Cluster) -> None:
    """A subnet that lost the tag cannot be told from somebody else's."""
    subnet = min(cluster.subnets())
    cluster.ec2.delete_key_pair(KeyName=NAME)
    cluster.ec2.delete_tags(Resources=[subnet], Tags=[{"Key": "trainium:cluster"}])
    (said,) = cluster.controller.cases(("network", {}))
    assert f"{subnet} (" in said
    assert "and carries no tag" in said
