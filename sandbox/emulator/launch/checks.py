"""The launches that EC2 refuses and stock moto accepts."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.responses import EC2Response
from moto.ec2.utils import filter_iam_instance_profiles

from sandbox.emulator.ec2.placement import GROUPS
from sandbox.emulator.errors import refuse
from sandbox.emulator.launch import lifecycle
from sandbox.emulator.records import RESERVATIONS, store

INTERFACE_TYPES = ("interface", "efa", "efa-only")
MARKETS = ("spot", "capacity-block", "interruptible-capacity-reservation")

Interface = dict[str, Any]


def check(response: EC2Response) -> None:
    """Refuse a RunInstances request; the more general faults are looked for first."""
    get = response._get_param
    interfaces: list[Interface] = get("NetworkInterfaces", []) or []
    _check_combination(response, interfaces)
    backend = response.ec2_backend
    kind = get("InstanceType", "m1.small")
    if kind not in INSTANCE_TYPES and not get("LaunchTemplate"):
        refuse("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
    image = get("ImageId")
    if image and not image.startswith("ami-"):
        refuse("InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")')
    if image and image not in backend.amis:
        refuse("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
    key = get("KeyName")
    if key and key not in backend.key_pairs:
        refuse("InvalidKeyPair.NotFound", f"The key pair '{key}' does not exist")
    _check_profile(response)
    market = (get("InstanceMarketOptions", {}) or {}).get("MarketType")
    if market and market not in MARKETS:
        refuse("InvalidParameterValue", f"Value ({market}) for parameter MarketType is invalid.")
    _check_cards(interfaces, kind, INSTANCE_TYPES.get(kind, {}).get("NetworkInfo", {}))
    _check_network(response, interfaces, kind)
    _check_placement(response)


def _check_combination(response: EC2Response, interfaces: list[Interface]) -> None:
    get = response._get_param
    if len(interfaces) > 1 and any(nic.get("AssociatePublicIpAddress") for nic in interfaces):
        refuse(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network "
            "interfaces.",
        )
    if interfaces and (get("SecurityGroupIds", []) or get("SecurityGroups", [])):
        refuse(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
        )
    least, most = int(get("MinCount", 1)), int(get("MaxCount", 1))
    if least < 1 or most < least:
        refuse("InvalidParameterValue", "MinCount must be at least 1 and at most MaxCount.")


def _check_profile(response: EC2Response) -> None:
    profile = response._get_param("IamInstanceProfile", {}) or {}
    name, arn = profile.get("Name"), profile.get("Arn")
    if not name and not arn:
        return
    found = None
    try:
        found = filter_iam_instance_profiles(response.current_account, response.partition, arn, name)
    except Exception as error:
        if getattr(error, "code", None) != "NoSuchEntity" and "NoSuchEntity" not in repr(error):
            raise
    # EC2 sees a new profile some seconds later than IAM, for which CloudFormation waits.
    late = 0.0 if getattr(response, "patient", False) else lifecycle.DELAY["seconds"]
    if found is None or (utcnow() - found.create_date).total_seconds() < late:
        field, value = ("name", name) if name else ("arn", arn)
        wrong = f"Value ({value}) for parameter iamInstanceProfile.{field} is invalid."
        refuse("InvalidParameterValue", f"{wrong} Invalid IAM Instance Profile {field}")


def _place(nic: Interface) -> tuple[int, int]:
    return int(nic.get("NetworkCardIndex") or 0), int(nic.get("DeviceIndex") or 0)


def _check_cards(interfaces: list[Interface], kind: str, network: dict[str, Any]) -> None:
    """``network``: NetworkInfo of the type's DescribeInstanceTypes record."""
    places = [_place(nic) for nic in interfaces]
    twice = [place for place, count in Counter(places).items() if count > 1]
    if twice:
        refuse("InvalidParameterValue", "Duplicate network card and device index {}/{}.".format(*twice[0]))
    if interfaces and (0, 0) not in places:
        refuse("InvalidParameterValue", "A primary network interface (network card 0, device index 0) is required.")
    cards = network.get("NetworkCards") or [{}]
    on_card, efa_on_card = Counter[int](), Counter[int]()
    for nic, (card, device) in zip(interfaces, places):
        type_of_nic = nic.get("InterfaceType") or "interface"
        if type_of_nic not in INTERFACE_TYPES:
            refuse("InvalidParameterValue", f"Value ({type_of_nic}) for parameter interfaceType is invalid.")
        if type_of_nic == "efa-only" and (card, device) == (0, 0):
            refuse("InvalidParameterValue", "An EFA-only interface cannot be the primary network interface.")
        if card >= len(cards):
            refuse("InvalidParameterValue", f"Network card index {card} exceeds the limit of {kind}: {len(cards)}.")
        on_card[card] += 1
        efa_on_card[card] += type_of_nic.startswith("efa")
        limit = cards[card].get("MaximumNetworkInterfaces")
        if limit and on_card[card] > limit:
            refuse(
                "AttachmentLimitExceeded",
                f"Interface count exceeds the limit of {limit} for network card {card} of {kind}.",
            )
    most = int(network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0))
    if efa_on_card.total() > 0 and not most:
        refuse("UnsupportedOperation", f"Elastic Fabric Adapter is not supported on {kind}.")
    if efa_on_card.total() > most or any(count > 1 for count in efa_on_card.values()):
        refuse("AttachmentLimitExceeded", f"{kind} supports {most} EFA interfaces, one on each network card.")


def _check_network(response: EC2Response, interfaces: list[Interface], kind: str) -> None:
    """Security groups exist and belong to the subnets' VPC; one zone, which offers the type."""
    backend, get = response.ec2_backend, response._get_param
    named = [get("SubnetId")] + [nic.get("SubnetId") for nic in interfaces]
    subnets = [backend.get_subnet(subnet) for subnet in dict.fromkeys(filter(None, named))]
    for name in get("SecurityGroups", []):
        if backend.get_security_group_by_name_or_id(name) is None:
            refuse("InvalidGroup.NotFound", f"The security group '{name}' does not exist")
    groups = list(get("SecurityGroupIds", [])) + [group for nic in interfaces for group in nic.get("Groups") or []]
    for identity in dict.fromkeys(groups):
        group = backend.get_security_group_from_id(identity)
        if group is None:
            refuse("InvalidGroup.NotFound", f"The security group '{identity}' does not exist")
        for subnet in subnets:
            if subnet.vpc_id != group.vpc_id:
                refuse(
                    "InvalidParameter",
                    f"Security group {identity} and subnet {subnet.id} belong to different networks.",
                )
    _check_addresses(response, interfaces)
    zones = {subnet.availability_zone for subnet in subnets}
    if len(zones) > 1:
        refuse("InvalidParameterCombination", "Network interfaces must be in the same Availability Zone.")
    if zones and not get("LaunchTemplate"):
        zone = zones.pop()
        if zone not in offering_zones(response.region, kind):
            refuse(
                "Unsupported",
                f"Your requested instance type ({kind}) is not supported in your requested Availability Zone ({zone}).",
            )


def _check_addresses(response: EC2Response, interfaces: list[Interface]) -> None:
    """Private addresses that the request names; stock moto ends in an error of its own where one is taken."""
    for nic in interfaces:
        address = nic.get("PrivateIpAddress")
        if not address or not nic.get("SubnetId"):
            continue
        if int(response._get_param("MaxCount", 1)) > 1:
            refuse("InvalidParameterCombination", "A private address may be specified for a single instance only.")
        subnet = response.ec2_backend.get_subnet(nic["SubnetId"])
        if ip_address(address) not in subnet.cidr:
            refuse("InvalidParameterValue", f"Address {address} does not fall within the subnet's address range")
        if address in subnet._subnet_ips:
            refuse("InvalidIPAddress.InUse", f"Address {address} is in use.")


def offering_zones(region: str, kind: str) -> list[str]:
    """The zones of a region that offer a type."""
    offered = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
    return sorted(offer["Location"] for offer in offered if offer["InstanceType"] == kind)


def _check_placement(response: EC2Response) -> None:
    backend = response.ec2_backend
    placement = response._get_param("Placement", {}) or {}
    group = placement.get("GroupName")
    if group and group not in store(backend, GROUPS):
        refuse("InvalidPlacementGroup.Unknown", f"The Placement Group '{group}' is unknown.")
    reservation = reservation_target(response).get("CapacityReservationId")
    if reservation and reservation not in store(backend, RESERVATIONS):
        refuse("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation}' does not exist")
    # One that was made inside of a placement group is for instances in that group.
    inside = store(backend, RESERVATIONS)[reservation].get("PlacementGroupArn", "") if reservation else ""
    if inside and inside.rpartition("/")[2] != group:
        refuse("ReservationCapacityExceeded", f"The capacity reservation '{reservation}' is for {inside}.")


def reservation_target(response: EC2Response) -> dict[str, Any]:
    """The request's CapacityReservationTarget; empty where it has none."""
    specification = response._get_param("CapacityReservationSpecification", {}) or {}
    target: dict[str, Any] = specification.get("CapacityReservationTarget", {}) or {}
    return target
