"""NAT gateways that fail, and VPC endpoints of the default type; stock moto makes every NAT gateway available.

A public NAT gateway in a VPC without an internet gateway goes to the state ``failed``, as does one whose address is in
use by something else; a failed one holds no address and no interface, and cannot be used
(https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html).

An endpoint that was deleted is shown a little longer, in the state ``deleted``; stock moto shows it for ever.
"""

from __future__ import annotations

import time
from typing import Any

from moto.ec2.models import EC2Backend

from sandbox.emulator.records import store

LINGERS = 1.0
_create = EC2Backend.create_nat_gateway
_create_endpoint = EC2Backend.create_vpc_endpoint
_delete_endpoints = EC2Backend.delete_vpc_endpoints
_describe_endpoints = EC2Backend.describe_vpc_endpoints


def _reason(backend: Any, subnet_id: str, allocation_id: str | None) -> tuple[str, str] | None:
    """(code, message) of a failure; None where the gateway comes up."""
    vpc = backend.get_subnet(subnet_id).vpc_id
    if not backend.describe_internet_gateways(filters={"attachment.vpc-id": [vpc]}):
        return "Gateway.NotAttached", f"Network {vpc} has no Internet gateway attached"
    if allocation_id and backend.address_by_allocation([allocation_id])[0].association_id:
        return "Resource.AlreadyAssociated", f"Elastic IP address {allocation_id} is already associated"
    return None


def _created(self: Any, subnet_id: str, allocation_id: str, tags: Any = None, connectivity_type: str = "public") -> Any:
    reason = _reason(self, subnet_id, allocation_id) if connectivity_type != "private" else None
    if reason is None:
        return _create(self, subnet_id, allocation_id, tags, connectivity_type)
    gateway = _create(self, subnet_id, "", tags, connectivity_type)
    gateway._eni.delete()
    gateway.state = "failed"
    gateway.failure_code, gateway.failure_message = reason
    return gateway


def _endpoint_created(
    self: Any, vpc_id: str, service_name: str, endpoint_type: str | None, *more: Any, **options: Any
) -> Any:
    """Gateway is the default, which stock moto cannot delete."""
    return _create_endpoint(self, vpc_id, service_name, endpoint_type or "Gateway", *more, **options)


def _endpoints_deleted(self: Any, vpce_ids: list[str] | None = None) -> None:
    _delete_endpoints(self, vpce_ids)
    for identity in vpce_ids or []:
        store(self, "deleted_endpoints").setdefault(identity, {"until": time.monotonic() + LINGERS})


def _endpoints(self: Any, *arguments: Any, **options: Any) -> Any:
    left = store(self, "deleted_endpoints")
    for identity in [key for key, one in left.items() if time.monotonic() >= one["until"]]:
        del left[identity]
        self.vpc_end_points.pop(identity, None)
    return _describe_endpoints(self, *arguments, **options)


def install() -> None:
    EC2Backend.create_nat_gateway = _created
    EC2Backend.create_vpc_endpoint = _endpoint_created
    EC2Backend.delete_vpc_endpoints = _endpoints_deleted
    EC2Backend.describe_vpc_endpoints = _endpoints
