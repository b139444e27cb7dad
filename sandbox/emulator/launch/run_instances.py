"""RunInstances as EC2 does it: client tokens, MinCount and MaxCount, capacity, and all instances or none."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from moto.ec2.models import EC2Backend
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.responses import EC2Response
from moto.utilities.utils import get_partition

from sandbox.emulator.ec2 import quotas
from sandbox.emulator.ec2.instances import finish_volumes
from sandbox.emulator.ec2.interfaces import LAUNCH
from sandbox.emulator.errors import refuse
from sandbox.emulator.launch import capacity, templates
from sandbox.emulator.launch.checks import check, offering_zones, reservation_target
from sandbox.emulator.state import LOCK

_respond = EC2Response.run_instances
_launch = EC2Backend.run_instances
_associate = EC2Backend.associate_iam_instance_profile


@dataclass
class Request:
    """What of a request moto does not hand on to its backend."""

    maximum: int = 0
    token: str | None = None
    signature: str = ""
    market: str | None = None
    placement: dict[str, Any] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    devices: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, response: EC2Response) -> Request:
        get = response._get_param
        parameters = {k: v for k, v in response.querystring.items() if k not in ("ClientToken", "DryRun")}
        return cls(
            maximum=int(get("MaxCount", 1)),
            token=get("ClientToken"),
            signature=repr(sorted(parameters.items())),
            market=(get("InstanceMarketOptions", {}) or {}).get("MarketType"),
            placement=get("Placement", {}) or {},
            target=reservation_target(response),
            profile=get("IamInstanceProfile", {}) or {},
            devices=get("BlockDeviceMappings", []) or [],
        )


# One launch is handled by one thread.
_THREAD = threading.local()


def _run_instances(self: EC2Response) -> Any:
    self = templates.expand(self)
    request = Request.of(self)
    tokens = self.ec2_backend.__dict__.setdefault("client_tokens", {})
    if request.token not in tokens:
        # A repeated request is answered even where it would not be possible any more.
        check(self)
    self.error_on_dryrun()
    _THREAD.request = request
    LAUNCH.tags = self._parse_tag_specification().get("network-interface", {})
    try:
        return _respond(self)
    finally:
        LAUNCH.tags = _THREAD.request = None


def run(account: str, region: str, parameters: dict[str, Any]) -> Any:
    """A launch that does not come as a request of its own; returns moto's reservation.

    Args:
        parameters: those of RunInstances.
    """
    response = EC2Response()
    response.current_account, response.region, response.partition = account, region, get_partition(region)
    response.querystring = response.data = {}
    response.uri_match, response.params = {}, parameters
    response.__dict__["patient"] = True
    return _run_instances(response).result


def _check_addresses(backend: Any, interfaces: list[dict[str, Any]], subnet: str | None, count: int) -> None:
    """Refuse what does not fit into the subnets, before anything is launched."""
    needed = Counter(
        nic["SubnetId"] for nic in interfaces if "SubnetId" in nic and nic.get("InterfaceType") != "efa-only"
    )
    if subnet and not interfaces:
        needed[subnet] = 1
    for name, addresses in needed.items():
        if backend.get_subnet(name).available_ip_address_count < addresses * count:
            refuse(
                "InsufficientFreeAddressesInSubnet",
                f"There are not enough free addresses in subnet '{name}' to satisfy the requested number of instances.",
            )


def _launch_instances(self: Any, image_id: str, count: int, user_data: Any, groups: list[str], **options: Any) -> Any:
    request = getattr(_THREAD, "request", None) or Request(maximum=count)
    with LOCK:
        tokens = self.__dict__.setdefault("client_tokens", {})
        if request.token in tokens:
            signature, reservation = tokens[request.token]
            if signature != request.signature:
                refuse(
                    "IdempotentParameterMismatch",
                    "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
                )
            if all(instance._state.name == "terminated" for instance in reservation.instances):
                refuse(
                    "IdempotentInstanceTerminated",
                    "The request to launch an instance uses the same client token as a previous request for which the "
                    "instance has been terminated.",
                )
            return reservation
        kind = options.get("instance_type") or "m1.small"
        interfaces = options.get("nics") or []
        subnet = options.get("subnet_id") or next((n["SubnetId"] for n in interfaces if n.get("SubnetId")), None)
        existing = next((n["NetworkInterfaceId"] for n in interfaces if n.get("NetworkInterfaceId")), None)
        if not subnet and existing:
            subnet = self.get_network_interface(existing).subnet.id
        if not subnet and not options.get("placement"):
            options["placement"] = next(iter(offering_zones(self.region_name, kind)), None)
        zone = str(self.get_subnet(subnet).availability_zone if subnet else options.get("placement"))
        quotas.check(self, kind, count, request.market)
        _check_addresses(self, interfaces, subnet, count)
        used = capacity.take(self, kind, zone, (count, request.maximum), request.target)
        before = set(self.reservations)
        try:
            reservation = _launch(self, image_id, len(used), user_data, groups, **options)
        except BaseException:
            _undo(self, before)
            capacity.give_back_all(self, kind, zone, used)
            raise
        for instance, reserved in zip(reservation.instances, used):
            _finish(instance, request, reserved)
        if request.token:
            tokens[request.token] = (request.signature, reservation)
        return reservation


def _undo(backend: Any, before: set[str]) -> None:
    """Remove what a failed launch has made."""
    for name in set(backend.reservations) - before:
        for instance in backend.reservations[name].instances:
            instance.teardown_defaults()
            for nic in instance.nics.values():
                nic.delete()
            backend.tags.pop(instance.id, None)
        del backend.reservations[name]


def _finish(instance: Any, request: Request, reserved: str | None) -> None:
    """What moto does not set on a new instance."""
    instance._placement.group_name = request.placement.get("GroupName", "")
    instance._placement.tenancy = request.placement.get("Tenancy", "default")
    instance.lifecycle = request.market
    instance.client_token = request.token or ""
    if reserved:
        instance.capacity_reservation_id = reserved
    instance.vcpus = INSTANCE_TYPES.get(instance.instance_type, {}).get("VCpuInfo", {}).get("DefaultVCpus", 0)
    finish_volumes(instance, request.devices)
    if request.profile:
        _associate(instance.ec2_backend, instance.id, request.profile.get("Name"), request.profile.get("Arn"))


def _associate_once(self: Any, instance_id: str, *arguments: Any, **options: Any) -> Any:
    """Stock moto gives the profile to the first instance of a launch only, and to that again at a repeated request."""
    known = self.iam_instance_profile_associations.get(instance_id)
    if known is not None and getattr(_THREAD, "request", None):
        return known
    return _associate(self, instance_id, *arguments, **options)


def install() -> None:
    EC2Response.run_instances = _run_instances
    EC2Backend.run_instances = _launch_instances
    EC2Backend.associate_iam_instance_profile = _associate_once
