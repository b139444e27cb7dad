"""Makes and deletes a scenario's instances with the network that they need, in one process.

Each module of amazon.aws would load boto3 anew, which takes longer than what it does here.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import boto3

# One that offers the Trainium types as well.
ZONE = "us-west-2d"
LIVING = ["pending", "running", "shutting-down", "stopping", "stopped"]


def create(ec2: Any, cluster: str, arguments: argparse.Namespace) -> bool:
    """Make what is missing, and say whether that was anything."""
    tags = [{"Key": "trainium:cluster", "Value": cluster}, {"Key": "Name", "Value": cluster}]

    def tagged(kind: str, *more: dict[str, str]) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": [*tags, *more]}]

    missing = arguments.nodes - len(instances(ec2, cluster, ["pending", "running"]))
    if missing < 1:
        return False
    image = boto3.client("ssm").get_parameter(Name=arguments.image_parameter)["Parameter"]["Value"]
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
    keys, subnets, networks = (found(ec2, kind, cluster) for kind in ("key_pairs", "subnets", "vpcs"))
    for key in keys:
        ec2.delete_key_pair(KeyName=key["KeyName"])
    for subnet in subnets:
        ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    for network in networks:
        ec2.delete_vpc(VpcId=network["VpcId"])
    return bool(living or keys or subnets or networks)


def found(ec2: Any, kind: str, cluster: str) -> list[dict[str, Any]]:
    """What carries the cluster's tag."""
    answer = getattr(ec2, f"describe_{kind}")(Filters=[{"Name": "tag:trainium:cluster", "Values": [cluster]}])
    things: list[dict[str, Any]] = answer["".join(part.capitalize() for part in kind.split("_"))]
    return things


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
    ec2 = boto3.client("ec2")
    if arguments.command == "create":
        changed = create(ec2, arguments.cluster, arguments)
    else:
        changed = destroy(ec2, arguments.cluster)
    print("changed" if changed else "ok")


if __name__ == "__main__":
    main()
