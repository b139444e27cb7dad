# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a cluster's network has to be, and in what that which is there differs from it, part by part. Pure.

Compared is what the modules of amazon.aws would compare with the arguments that role network gives them, no less: where
nothing differs they need not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    CLUSTER_TAG,
    OWNER_TAG,
    ROLE_TAG,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.networks import cluster_subnets
from ansible_collections.trainium.cluster.plugins.module_utils._network.rules import rule_differences

Item = Mapping[str, Any]
EVERYWHERE = "0.0.0.0/0"
SUBNET_TAG = "trainium:subnet"
# Those of an endpoint that is no longer there; one in any other is taken as it is.
ENDED = ("deleting", "deleted", "failed", "rejected")


@dataclass(frozen=True)
class Wanted:
    """What was asked for.

    ``cidr`` is the VPC's, ``tags`` are those beside the cluster's own, ``kind_tags`` those of a kind of subnet beside
    them. ``groups`` are security groups by part, each with ``name``, ``description``, ``rules`` and perhaps
    ``rules_egress`` as amazon.aws.ec2_security_group takes them.
    """

    cluster: str
    owner: str
    cidr: str
    subnets: Sequence[Mapping[str, str]]
    tags: Mapping[str, Any] = field(default_factory=dict)
    kind_tags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    nat_gateway: bool = False
    s3_endpoint: bool = False
    groups: Mapping[str, Item] = field(default_factory=dict)

    def tags_named(self, name: str) -> dict[str, str]:
        """The tags of a part with this name, as role network gives them."""
        own = {CLUSTER_TAG: self.cluster, ROLE_TAG: "network", OWNER_TAG: self.owner, "Name": name}
        return {str(key): str(value) for key, value in {**self.tags, **own}.items()}


@dataclass(frozen=True)
class Found:
    """What EC2 says: of the ``vpc`` with its ``attributes``, and the lists of what lies in it."""

    vpc: Item | None = None
    attributes: Mapping[str, bool] = field(default_factory=dict)
    subnets: Sequence[Item] = ()
    internet_gateways: Sequence[Item] = ()
    nat_gateways: Sequence[Item] = ()
    route_tables: Sequence[Item] = ()
    vpc_endpoints: Sequence[Item] = ()
    security_groups: Sequence[Item] = ()


@dataclass
class Network:
    """What is there of what was asked for: ids, '' for what is not, and by part in what it differs."""

    vpc_id: str = ""
    subnets: list[dict[str, str]] = field(default_factory=list)
    internet_gateway_id: str = ""
    nat_gateway_id: str = ""
    route_table_ids: dict[str, str] = field(default_factory=dict)
    group_ids: dict[str, str] = field(default_factory=dict)
    differences: dict[str, list[str]] = field(default_factory=dict)


def zones_of(
    offered: Sequence[str], zones: Iterable[Item], known: Sequence[str], least: int, left_out: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The zones with the instance type, and those that are added to them for a cluster that needs more.

    Args:
        offered: the zones that EC2 says offer it.
        zones: the region's, where they were asked.
        known: ids of zones that are known to have it, for where EC2 names none.
        least: how many zones there are to be.
        left_out: ids of zones that are never added.
    """
    every = list(zones)
    mine = sorted(offered) or sorted(zone["ZoneName"] for zone in every if zone["ZoneId"] in known)
    others = sorted(
        zone["ZoneName"]
        for zone in every
        if zone.get("ZoneType", "availability-zone") == "availability-zone"
        and zone["State"] == "available"
        and zone["ZoneId"] not in left_out
        and zone["ZoneName"] not in mine
    )
    return mine, others[: max(least - len(mine), 0)]


def subnets_in(zones: Sequence[str], cidr: str) -> list[dict[str, str]]:
    """The subnets of these zones; see `cluster_subnets`."""
    try:
        return cluster_subnets(zones, cidr)
    except ValueError as error:
        raise TrainiumError(str(error)) from error


def compare(wanted: Wanted, found: Found) -> Network:
    """The network as it is, with its differences."""
    network = Network()
    differences: dict[str, list[str]] = {"vpc": _vpc(wanted, found)}
    network.vpc_id = found.vpc["VpcId"] if found.vpc else ""
    network.subnets, differences["subnets"] = _subnets(wanted, found)
    network.internet_gateway_id, differences["internet_gateway"] = _internet_gateway(wanted, found)
    if wanted.nat_gateway:
        network.nat_gateway_id = found.nat_gateways[0]["NatGatewayId"] if found.nat_gateways else ""
        differences["nat_gateway"] = [] if found.nat_gateways else ["there is no NAT gateway"]
    differences["route_tables"] = _route_tables(wanted, found, network)
    if wanted.s3_endpoint and not any(str(one.get("State", "")).lower() not in ENDED for one in found.vpc_endpoints):
        differences["s3_endpoint"] = ["there is no gateway endpoint of S3"]
    for part, group in wanted.groups.items():
        network.group_ids[part], differences[part] = _group(wanted, group, found)
    network.differences = {part: said for part, said in differences.items() if said}
    return network


def tag_differences(wanted: Mapping[str, str], item: Item, called: str) -> list[str]:
    """The tags that ``item`` lacks or has with another value; others it may have."""
    tags = tags_of(item)
    return [
        f"{called} has the tag {key} with another value" if key in tags else f"{called} has no tag {key}"
        for key, value in wanted.items()
        if tags.get(key) != value
    ]


def _vpc(wanted: Wanted, found: Found) -> list[str]:
    if not found.vpc:
        return ["there is no VPC"]
    vpc = found.vpc["VpcId"]
    blocks = {
        one["CidrBlock"]
        for one in found.vpc.get("CidrBlockAssociationSet", ())
        if one["CidrBlockState"]["State"] not in ("disassociating", "disassociated")
    }
    return [
        *([] if wanted.cidr in blocks else [f"{vpc} has not the network {wanted.cidr}"]),
        *(f"{name} of {vpc} is off" for name in sorted(found.attributes) if not found.attributes[name]),
        *tag_differences(wanted.tags_named(wanted.cluster), found.vpc, vpc),
    ]


def _subnets(wanted: Wanted, found: Found) -> tuple[list[dict[str, str]], list[str]]:
    """The wanted subnets with their ``id``, and what differs. What nobody asked for EC2 does by itself stays off."""
    by_cidr = {item["CidrBlock"]: item for item in found.subnets}
    subnets, said = [], []
    for subnet in wanted.subnets:
        kind, zone, item = subnet["kind"], subnet["zone"], by_cidr.get(subnet["cidr"])
        subnets.append({**subnet, "id": item["SubnetId"] if item else ""})
        if not item:
            said.append(f"there is no {kind} subnet {subnet['cidr']} in {zone}")
            continue
        called = item["SubnetId"]
        said += [
            f"{called} has {name}"
            for name in ("MapPublicIpOnLaunch", "AssignIpv6AddressOnCreation")
            if item.get(name, False)
        ]
        if any(
            one.get("Ipv6CidrBlockState", {}).get("State") in ("associated", "associating")
            for one in item.get("Ipv6CidrBlockAssociationSet", ())
        ):
            said.append(f"{called} has an IPv6 network")
        tags = {
            **wanted.tags_named(f"{wanted.cluster}-{kind}-{zone}"),
            SUBNET_TAG: kind,
            **{str(key): str(value) for key, value in wanted.kind_tags.get(kind, {}).items()},
        }
        said += tag_differences(tags, item, called)
    return subnets, said


def _internet_gateway(wanted: Wanted, found: Found) -> tuple[str, list[str]]:
    if not found.internet_gateways:
        return "", ["there is no internet gateway"]
    item = found.internet_gateways[0]
    identity = item["InternetGatewayId"]
    return identity, tag_differences(wanted.tags_named(wanted.cluster), item, identity)


def _route_tables(wanted: Wanted, found: Found, network: Network) -> list[str]:
    """Two tables, which the cluster's tags tell: each subnet goes with its own, and that to the gateway of its kind."""
    said = []
    for kind in ("public", "private"):
        ids = [subnet["id"] for subnet in network.subnets if subnet["kind"] == kind]
        table = _table(wanted, found, f"{wanted.cluster}-{kind}")
        network.route_table_ids[kind] = table["RouteTableId"] if table else ""
        if not ids:
            continue
        if not table:
            said.append(f"there is no {kind} route table")
            continue
        called = table["RouteTableId"]
        route: dict[str, str] = {}
        if kind == "public":
            route = {"DestinationCidrBlock": EVERYWHERE, "GatewayId": network.internet_gateway_id}
        elif wanted.nat_gateway:
            route = {"DestinationCidrBlock": EVERYWHERE, "NatGatewayId": network.nat_gateway_id}
        if route and not ("" not in route.values() and any(route.items() <= one.items() for one in table["Routes"])):
            said.append(f"{called} does not lead to the {'internet' if kind == 'public' else 'NAT'} gateway")
        associated = {one["SubnetId"] for one in table["Associations"] if not one["Main"] and one.get("SubnetId")}
        said += [f"{one or 'a new subnet'} does not go with {called}" for one in ids if one not in associated]
        said += [f"{one} goes with {called}" for one in sorted(associated.difference(ids))]
        said += tag_differences(wanted.tags_named(f"{wanted.cluster}-{kind}"), table, called)
    return said


def _table(wanted: Wanted, found: Found, name: str) -> Item | None:
    mine = {CLUSTER_TAG: wanted.cluster, ROLE_TAG: "network", "Name": name}
    tables = [table for table in found.route_tables if mine.items() <= tags_of(table).items()]
    return min(tables, key=lambda table: str(table["RouteTableId"]), default=None)


def _group(wanted: Wanted, group: Item, found: Found) -> tuple[str, list[str]]:
    item = next((one for one in found.security_groups if one["GroupName"] == group["name"]), None)
    if not item:
        return "", [f"there is no security group {group['name']}"]
    called = item["GroupId"]
    said = tag_differences(wanted.tags_named(group["name"]), item, called)
    if item["Description"] != group["description"]:
        said.append(f"{called} has another description")
    said += rule_differences(group["rules"], item["IpPermissions"], item, f"{called} in")
    if group.get("rules_egress") is not None:
        said += rule_differences(group["rules_egress"], item["IpPermissionsEgress"], item, f"{called} out")
    return called, said
