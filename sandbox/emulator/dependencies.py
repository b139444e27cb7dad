"""A security group, subnet or VPC in use cannot be deleted; stock moto deletes the first two all the same."""

from __future__ import annotations

from typing import Any

from moto.ec2.models import EC2Backend

from sandbox.emulator.errors import refuse

_delete_security_group = EC2Backend.delete_security_group
_delete_subnet = EC2Backend.delete_subnet
_delete_vpc = EC2Backend.delete_vpc
_delete_nat_gateway = EC2Backend.delete_nat_gateway


def _group_deleted(self: Any, name: str | None = None, group_id: str | None = None) -> Any:
    group = self.get_security_group_from_id(group_id) if group_id else None
    if group and any(member.id == group_id for eni in self.enis.values() for member in eni.group_set):
        refuse("DependencyViolation", f"resource {group_id} has a dependent object")
    return _delete_security_group(self, name, group_id)


def _subnet_deleted(self: Any, subnet_id: str) -> Any:
    if any(eni.subnet.id == subnet_id for eni in self.enis.values()):
        refuse("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    if any(
        gateway.subnet_id == subnet_id and gateway.state not in ("deleted", "deleting")
        for gateway in self.nat_gateways.values()
    ):
        refuse("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    return _delete_subnet(self, subnet_id)


def _vpc_deleted(self: Any, vpc_id: str) -> Any:
    gateways = self.describe_internet_gateways(filters={"attachment.vpc-id": [vpc_id]})
    groups = [group for group in self.groups.get(vpc_id, {}).values() if group.name != "default"]
    if gateways or groups:
        refuse("DependencyViolation", f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    return _delete_vpc(self, vpc_id)


def _gateway_deleted(self: Any, nat_gateway_id: str) -> Any:
    """The gateway's own interface goes with it, and its address is free again."""
    gateway = _delete_nat_gateway(self, nat_gateway_id)
    for address in self.addresses:
        if address.eni is not None and address.eni.id == gateway._eni.id:
            address.eni = address.instance = address.association_id = None
    self.enis.pop(gateway._eni.id, None)
    return gateway


def install() -> None:
    EC2Backend.delete_nat_gateway = _gateway_deleted
    EC2Backend.delete_security_group = _group_deleted
    EC2Backend.delete_subnet = _subnet_deleted
    EC2Backend.delete_vpc = _vpc_deleted
