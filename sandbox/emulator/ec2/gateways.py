"""NAT gateways that fail, and VPC endpoints of the default type; stock moto makes every NAT gateway available.

A public NAT gateway in a VPC without an internet gateway goes to the state ``failed``, as does one whose address is in
use by something else; a failed one holds no address and no interface, and cannot be used
(https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html).
"""

from __future__ import annotations

from typing import Any

from moto.ec2.models import EC2Backend

_create = EC2Backend.create_nat_gateway
_create_endpoint = EC2Backend.create_vpc_endpoint


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


def install() -> None:
    EC2Backend.create_nat_gateway = _created
    EC2Backend.create_vpc_endpoint = _endpoint_created
