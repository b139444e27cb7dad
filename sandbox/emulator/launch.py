"""RunInstances as EC2 does it: client tokens, MinCount and MaxCount, capacity, and the requests that EC2 refuses."""

from __future__ import annotations

import threading
from typing import Any

from moto.ec2.models import EC2Backend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.responses import EC2Response
from moto.ec2.utils import filter_dict_attribute_mapping

from sandbox.emulator.errors import refuse
from sandbox.emulator.interfaces import LAUNCH
from sandbox.emulator.state import CAPACITY, LOCK

_respond = EC2Response.run_instances
_launch = EC2Backend.run_instances

# What of the request the backend's method is not given: one launch is handled by one thread.
REQUEST = threading.local()


def _check_interfaces(response: EC2Response, interfaces: list[dict[str, Any]], record: dict[str, Any]) -> None:
    """Refuse interfaces that EC2 refuses. ``record``: the type's DescribeInstanceTypes record."""
    kind = record.get("InstanceType", "")
    network = record.get("NetworkInfo", {})
    cards = int(network.get("MaximumNetworkCards", 1))
    efa = int(network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0))
    seen = set()
    efa_used = 0
    for nic in interfaces:
        place = (int(nic.get("NetworkCardIndex") or 0), int(nic.get("DeviceIndex") or 0))
        if place in seen:
            refuse("InvalidParameterValue", f"Duplicate network card and device index {place[0]}/{place[1]}.")
        seen.add(place)
        if place[0] >= cards:
            refuse(
                "InvalidParameterValue", f"Network card index {place[0]} exceeds the limit of {kind}: {cards} cards."
            )
        if str(nic.get("InterfaceType", "")).startswith("efa"):
            efa_used += 1
        for group in nic.get("Groups", []) or nic.get("SecurityGroupIds", []) or []:
            if response.ec2_backend.get_security_group_from_id(group) is None:
                refuse("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
    if efa_used > efa:
        code = "UnsupportedOperation" if not efa else "InvalidParameterValue"
        refuse(code, f"{kind} supports {efa} EFA interfaces, and {efa_used} were asked for.")
    if interfaces and not any(place == (0, 0) for place in seen):
        refuse("InvalidParameterValue", "Network card 0 with device index 0 is missing.")


def _check(response: EC2Response) -> None:
    """Refuse what EC2 refuses and moto accepts."""
    get = response._get_param
    interfaces = get("NetworkInterfaces", []) or []
    if len(interfaces) > 1 and any(nic.get("AssociatePublicIpAddress") for nic in interfaces):
        refuse(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified with multiple network interfaces.",
        )
    if interfaces and get("SecurityGroupIds", []):
        refuse(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
        )
    if int(get("MinCount", 1)) < 1 or int(get("MaxCount", 1)) < int(get("MinCount", 1)):
        refuse("InvalidParameterValue", "MinCount must be at least 1 and at most MaxCount.")
    backend = response.ec2_backend
    kind = get("InstanceType", "m1.small")
    template = get("LaunchTemplate")
    if kind not in INSTANCE_TYPES and not template:
        refuse("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
    image = get("ImageId")
    if image and image not in backend.amis:
        refuse("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
    key = get("KeyName")
    if key and key not in backend.key_pairs:
        refuse("InvalidKeyPair.NotFound", f"The key pair '{key}' does not exist")
    _check_interfaces(response, interfaces, INSTANCE_TYPES.get(kind, {}))
    subnet = get("SubnetId") or next((nic["SubnetId"] for nic in interfaces if nic.get("SubnetId")), None)
    if subnet and not template:
        zone = backend.get_subnet(subnet).availability_zone
        offered = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(response.region, [])
        if not any(o["InstanceType"] == kind and o["Location"] == zone for o in offered):
            refuse(
                "Unsupported",
                f"Your requested instance type ({kind}) is not supported in your requested Availability Zone ({zone}).",
            )
    _check_placement(response)


def _check_placement(response: EC2Response) -> None:
    placement = response._get_param("Placement", {}) or {}
    group = placement.get("GroupName")
    if group and group not in getattr(response.ec2_backend, "placement_groups", {}):
        refuse("InvalidPlacementGroup.Unknown", f"The Placement Group '{group}' is unknown.")
    target = (response._get_param("CapacityReservationSpecification", {}) or {}).get("CapacityReservationTarget", {})
    reservation = target.get("CapacityReservationId")
    if reservation and reservation not in getattr(response.ec2_backend, "capacity_reservations", {}):
        refuse("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation}' does not exist")


def _run_instances(self: EC2Response) -> Any:
    get = self._get_param
    REQUEST.maximum = int(get("MaxCount", 1))
    REQUEST.token = get("ClientToken")
    REQUEST.placement = get("Placement", {}) or {}
    REQUEST.market = (get("InstanceMarketOptions", {}) or {}).get("MarketType")
    REQUEST.signature = repr(sorted((k, v) for k, v in self.querystring.items() if k not in ("ClientToken", "DryRun")))
    REQUEST.reservation = (
        (get("CapacityReservationSpecification", {}) or {})
        .get("CapacityReservationTarget", {})
        .get("CapacityReservationId")
    )
    LAUNCH.tags = self._parse_tag_specification().get("network-interface", {})
    try:
        _check(self)
        return _respond(self)
    finally:
        LAUNCH.tags = {}


def _take_capacity(kind: str, zone: str, minimum: int) -> int:
    """How many instances are launched; the capacity of the type in the zone shrinks by that."""
    free = CAPACITY.get((kind, zone))
    if free is None:
        return max(minimum, REQUEST.maximum)
    count = min(max(minimum, REQUEST.maximum), free)
    if count < minimum or count == 0:
        refuse(
            "InsufficientInstanceCapacity",
            f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}).",
        )
    CAPACITY[(kind, zone)] = free - count
    return count


def _launch_instances(self: Any, image_id: str, count: int, user_data: Any, groups: list[str], **options: Any) -> Any:
    with LOCK:
        tokens = self.__dict__.setdefault("client_tokens", {})
        token = getattr(REQUEST, "token", None)
        signature = getattr(REQUEST, "signature", "")
        if token in tokens:
            earlier, reservation = tokens[token]
            if earlier != signature:
                refuse(
                    "IdempotentParameterMismatch",
                    "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
                )
            return reservation
        interfaces = options.get("nics") or []
        subnet = options.get("subnet_id") or next((n["SubnetId"] for n in interfaces if n.get("SubnetId")), None)
        zone = str(self.get_subnet(subnet).availability_zone if subnet else options.get("placement"))
        kind = options.get("instance_type") or "m1.small"
        reservation = _launch(self, image_id, _take_capacity(kind, zone, count), user_data, groups, **options)
        placement = getattr(REQUEST, "placement", {})
        for instance in reservation.instances:
            instance._placement.group_name = placement.get("GroupName", "")
            instance._placement.tenancy = placement.get("Tenancy", "default")
            if getattr(REQUEST, "market", None):
                instance.lifecycle = REQUEST.market
            if getattr(REQUEST, "reservation", None):
                instance.capacity_reservation_id = REQUEST.reservation
        if token:
            tokens[token] = (signature, reservation)
        return reservation


def install() -> None:
    filter_dict_attribute_mapping["client-token"] = "client_token"
    filter_dict_attribute_mapping["instance-lifecycle"] = "lifecycle"
    EC2Response.run_instances = _run_instances
    EC2Backend.run_instances = _launch_instances
