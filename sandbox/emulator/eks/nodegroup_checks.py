"""The node groups that EKS refuses, with their launch templates."""

from __future__ import annotations

from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES

from sandbox.emulator.ec2 import eks_images
from sandbox.emulator.eks.state import Cluster, not_now, wrong
from sandbox.emulator.eks.user_data import is_mime
from sandbox.emulator.records import Record

# What only the template or only the group may say: field of the template, what it is called.
PROHIBITED = {
    "IamInstanceProfile": "Instance profile",
    "InstanceInitiatedShutdownBehavior": "Instance initiated shutdown behavior",
    "HibernationOptions": "Hibernation options",
}


def template_of(cluster: Cluster, named: Record | None) -> tuple[Record, Record]:
    """The template as DescribeNodegroup shows it, and the fields of its version."""
    if not named:
        return {}, {}
    if bool(named.get("id")) == bool(named.get("name")):
        wrong(
            "You must specify either the launch template ID or the launch template name in the request, but not both."
        )
    keys = {"LaunchTemplateId": named.get("id"), "LaunchTemplateName": named.get("name")}
    arguments = {**{key: value for key, value in keys.items() if value}, "Version": named.get("version") or "$Default"}
    try:
        version = ec2_backends[cluster.account][cluster.region]._get_template_from_args(arguments)
    except Exception as error:
        not_now(f"Launch template details can't be found: {error}")
    shown = {"id": version.template.id, "name": version.template.name, "version": str(version.number)}
    return shown, version.data


def check_template(data: Record, asked: Record) -> None:
    for key, called in PROHIBITED.items():
        if data.get(key):
            not_now(f"{called} should not be specified in the launch template.")
    if data.get("SubnetId") or any(nic.get("SubnetId") for nic in data.get("NetworkInterfaces") or ()):
        not_now("Network interface subnets should not be specified in the launch template.")
    market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    if market == "spot":
        not_now("Instance market options should not be specified in the launch template, but for Capacity Blocks.")
    if asked.get("diskSize"):
        wrong("Disk size must be specified within the launch template.")
    if asked.get("remoteAccess"):
        wrong("Remote access configuration cannot be specified with a launch template.")
    if asked.get("instanceTypes") and data.get("InstanceType"):
        wrong("Instance types must be specified either in the launch template or in the request, not in both.")
    if data.get("ImageId"):
        if asked.get("amiType") not in (None, "CUSTOM"):
            wrong(
                "You cannot specify an AMI Type other than CUSTOM, when specifying an image id in your launch template."
            )
        if asked.get("version") or asked.get("releaseVersion"):
            wrong("You cannot specify version or releaseVersion when specifying an image id in your launch template.")
    elif data.get("UserData") and not is_mime(data["UserData"]):
        not_now("Ec2LaunchTemplateInvalidConfiguration: User data was not in the MIME multipart format.")
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    block = market == "capacity-block" and target.get("CapacityReservationId") and data.get("InstanceType")
    if asked.get("capacityType") == "CAPACITY_BLOCK" and not block:
        needs = "the market type capacity-block, a capacity reservation id and an instance type"
        wrong(f"The launch template of a node group with the capacity type CAPACITY_BLOCK needs {needs}.")
    if market == "capacity-block" and asked.get("capacityType") != "CAPACITY_BLOCK":
        wrong("A launch template with the market type capacity-block needs the capacity type CAPACITY_BLOCK.")


def check_scaling(scaling: Record) -> None:
    least, wanted, most = (scaling[key] for key in ("minSize", "desiredSize", "maxSize"))
    if most < 1:
        wrong("Maximum capacity must be at least 1")
    if wanted < least:
        wrong(f"Minimum capacity {least} can't be greater than desired size {wanted}")
    if wanted > most:
        wrong(f"desired capacity {wanted} can't be greater than max size {most}")


def check_types(kinds: list[str], ami: str) -> None:
    for kind in kinds:
        if kind not in INSTANCE_TYPES:
            wrong(f"The following supplied instance types do not exist: [{kind}]")
        if ami.endswith("_NEURON") and not kind.startswith(("trn", "inf")):
            wrong(f"[{kind}] is not a valid instance type for requested amiType {ami}")


def check_release(release: str, version: str) -> str:
    offered = eks_images.release_versions(version)
    if release and release not in offered:
        wrong(f"Requested release version {release} is not valid for kubernetes version {version}")
    return release or offered[0]


def check_subnets(cluster: Cluster, asked: Record, data: Record) -> None:
    ec2 = ec2_backends[cluster.account][cluster.region]
    known = {subnet.id: subnet for subnets in ec2.subnets.values() for subnet in subnets.values()}
    for identity in asked["subnets"]:
        if identity not in known:
            wrong(f"The subnet ID '{identity}' does not exist")
        if known[identity].vpc_id != cluster.shown["resourcesVpcConfig"]["vpcId"]:
            wrong(f"The subnet {identity} is not in the VPC of the cluster.")
    zones = {known[identity].availability_zone for identity in asked["subnets"]}
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    reserved = ec2.__dict__.get("capacity_reservations", {}).get(target.get("CapacityReservationId"))
    if asked.get("capacityType") == "CAPACITY_BLOCK" and reserved and zones != {reserved["AvailabilityZone"]}:
        wrong("The subnets of a node group with Capacity Blocks must be in the zone of the capacity reservation.")
