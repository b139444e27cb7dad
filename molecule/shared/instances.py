"""Makes and deletes a scenario's instances with the network that they need, in one process.

Each module of amazon.aws would load boto3 anew, which takes longer than what it does here.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sandbox.account import environment as account  # the checkout is not installed

# One that offers the Trainium types as well.
ZONE = "us-west-2d"
LIVING = ["pending", "running", "shutting-down", "stopping", "stopped"]


def create(ec2: Any, cluster: str, arguments: argparse.Namespace) -> bool:
    """Make what is missing, and say whether that was anything."""
    tags = [{"Key": "trainium:cluster", "Value": cluster}, {"Key": "Name", "Value": cluster}]

    def tagged(kind: str, *more: dict[str, str]) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": [*tags, *more]}]

    network = found(ec2, "vpcs", cluster) + found(ec2, "subnets", cluster) + found(ec2, "key_pairs", cluster)
    missing = arguments.nodes - len(instances(ec2, cluster, ["pending", "running"]))
    if missing < 1 and network:
        return False
    networks = found(ec2, "vpcs", cluster) or [
        ec2.create_vpc(CidrBlock=f"{arguments.network}.0.0/16", TagSpecifications=tagged("vpc"))["Vpc"]
    ]
    subnets = found(ec2, "subnets", cluster) or [
        ec2.create_subnet(
            VpcId=networks[0]["VpcId"],
            CidrBlock=f"{arguments.network}.0.0/20",
            AvailabilityZone=ZONE,
            TagSpecifications=tagged("subnet"),
        )["Subnet"]
    ]
    if not found(ec2, "key_pairs", cluster):
        key = Path(arguments.public_key).read_bytes()
        ec2.import_key_pair(KeyName=cluster, PublicKeyMaterial=key, TagSpecifications=tagged("key-pair"))
    if missing < 1:
        return True
    image = boto3.client("ssm").get_parameter(Name=arguments.image_parameter)["Parameter"]["Value"]
    ec2.run_instances(
        ImageId=image,
        InstanceType=arguments.instance_type,
        KeyName=cluster,
        MinCount=missing,
        MaxCount=missing,
        NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnets[0]["SubnetId"], "DeleteOnTermination": True}],
        TagSpecifications=tagged("instance", {"Key": "trainium:role", "Value": "compute"}),
    )
    return True


def destroy(ec2: Any, cluster: str) -> bool:
    """Delete what there is, and say whether that was anything."""
    living = instances(ec2, cluster, LIVING)
    if living:
        ec2.terminate_instances(InstanceIds=living)
    end = time.monotonic() + 60
    while instances(ec2, cluster, LIVING):
        if time.monotonic() > end:
            sys.exit(f"The instances of {cluster} do not end; see python -m sandbox logs.")
        time.sleep(0.2)
    left = [(kind, thing) for kind in DELETED for thing in found(ec2, kind, cluster)]
    for kind, thing in left:
        DELETED[kind](ec2, thing)
    return bool(living or left)


def delete_nat_gateway(ec2: Any, gateway: dict[str, Any]) -> None:
    """Delete a NAT gateway and wait until nothing of it holds its subnet or address."""
    ec2.delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])
    ec2.get_waiter("nat_gateway_deleted").wait(NatGatewayIds=[gateway["NatGatewayId"]], WaiterConfig={"Delay": 1})


def delete_security_group(ec2: Any, group: dict[str, Any]) -> None:
    """Delete a group, with the rules by which it refers to itself."""
    for rules, revoke in (
        ("IpPermissions", ec2.revoke_security_group_ingress),
        ("IpPermissionsEgress", ec2.revoke_security_group_egress),
    ):
        if group[rules]:
            revoke(GroupId=group["GroupId"], IpPermissions=group[rules])
    ec2.delete_security_group(GroupId=group["GroupId"])


def delete_route_table(ec2: Any, table: dict[str, Any]) -> None:
    """Delete a route table that subnets may use."""
    for association in table["Associations"]:
        ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
    ec2.delete_route_table(RouteTableId=table["RouteTableId"])


def delete_internet_gateway(ec2: Any, gateway: dict[str, Any]) -> None:
    """Delete a gateway that a network may use."""
    for attachment in gateway["Attachments"]:
        ec2.detach_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"], VpcId=attachment["VpcId"])
    ec2.delete_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"])


# What holds something else comes before it.
DELETED: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "capacity_reservations": lambda ec2, thing: ec2.cancel_capacity_reservation(
        CapacityReservationId=thing["CapacityReservationId"]
    ),
    "nat_gateways": delete_nat_gateway,
    "vpc_endpoints": lambda ec2, thing: ec2.delete_vpc_endpoints(VpcEndpointIds=[thing["VpcEndpointId"]]),
    "addresses": lambda ec2, thing: ec2.release_address(AllocationId=thing["AllocationId"]),
    "volumes": lambda ec2, thing: ec2.delete_volume(VolumeId=thing["VolumeId"]),
    "network_interfaces": lambda ec2, thing: ec2.delete_network_interface(
        NetworkInterfaceId=thing["NetworkInterfaceId"]
    ),
    "placement_groups": lambda ec2, thing: ec2.delete_placement_group(GroupName=thing["GroupName"]),
    "security_groups": delete_security_group,
    "route_tables": delete_route_table,
    "internet_gateways": delete_internet_gateway,
    "subnets": lambda ec2, thing: ec2.delete_subnet(SubnetId=thing["SubnetId"]),
    "vpcs": lambda ec2, thing: ec2.delete_vpc(VpcId=thing["VpcId"]),
    "key_pairs": lambda ec2, thing: ec2.delete_key_pair(KeyName=thing["KeyName"]),
}

LIVING_STATES = {"nat_gateways": ["pending", "available", "failed"], "capacity_reservations": ["pending", "active"]}


def found(ec2: Any, kind: str, cluster: str) -> list[dict[str, Any]]:
    """What carries the cluster's tag. NAT gateways and reservations are shown for a while after they are gone."""
    filters = [{"Name": "tag:trainium:cluster", "Values": [cluster]}]
    if kind in LIVING_STATES:
        filters.append({"Name": "state", "Values": LIVING_STATES[kind]})
    answer = getattr(ec2, f"describe_{kind}")(Filters=filters)
    things: list[dict[str, Any]] = answer["".join(part.capitalize() for part in kind.split("_"))]
    # Not every filter is honoured everywhere, and what is not the cluster's must not be deleted.
    return [
        thing
        for thing in things
        if {"Key": "trainium:cluster", "Value": cluster} in (thing.get("Tags") or thing.get("TagSet") or [])
        and thing.get("State") != "deleted"
    ]


def instances(ec2: Any, cluster: str, states: list[str]) -> list[str]:
    """The ids of the cluster's instances in these states."""
    filters = [
        {"Name": "tag:trainium:cluster", "Values": [cluster]},
        {"Name": "instance-state-name", "Values": states},
    ]
    reservations = ec2.describe_instances(Filters=filters)["Reservations"]
    return [instance["InstanceId"] for reservation in reservations for instance in reservation["Instances"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("create", "destroy"):
        command = commands.add_parser(name)
        command.add_argument("cluster")
        if name == "create":
            command.add_argument("--network", required=True, help="the first two numbers of its addresses")
            command.add_argument("--nodes", required=True, type=int)
            command.add_argument("--instance-type", required=True)
            command.add_argument("--image-parameter", required=True)
            command.add_argument("--public-key", required=True)
    arguments = parser.parse_args()
    # Also where somebody runs molecule by hand: never in an account of AWS.
    if account.main():
        sys.exit(1)
    ec2 = boto3.client("ec2")
    if arguments.command == "create":
        changed = create(ec2, arguments.cluster, arguments)
    else:
        changed = destroy(ec2, arguments.cluster)
    print("changed" if changed else "ok")


if __name__ == "__main__":
    main()
