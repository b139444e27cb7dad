"""What is in use cannot be deleted; stock moto deletes most of it all the same."""

from __future__ import annotations

from typing import Any

from moto.ec2.models import EC2Backend

from sandbox.emulator.errors import refuse

_delete_security_group = EC2Backend.delete_security_group
_delete_subnet = EC2Backend.delete_subnet
_delete_vpc = EC2Backend.delete_vpc
_delete_interface = EC2Backend.delete_network_interface
_detach_gateway = EC2Backend.detach_internet_gateway


def _refers(group: Any, group_id: str) -> bool:
    rules = list(group.ingress_rules) + list(group.egress_rules)
    return any((rule.source_group or {}).get("GroupId") == group_id for rule in rules)


def _group_deleted(self: Any, name: str | None = None, group_id: str | None = None) -> Any:
    group = self.get_security_group_from_id(group_id) if group_id else None
    if group:
        others = [other for groups in self.groups.values() for other in groups.values() if other.id != group_id]
        used = any(member.id == group_id for eni in self.enis.values() for member in eni.group_set)
        if used or any(_refers(other, str(group_id)) for other in others):
            refuse("DependencyViolation", f"resource {group_id} has a dependent object")
    return _delete_security_group(self, name, group_id)


def _subnet_deleted(self: Any, subnet_id: str) -> Any:
    gateways = [g for g in self.nat_gateways.values() if g.state not in ("deleted", "deleting", "failed")]
    if any(eni.subnet.id == subnet_id for eni in self.enis.values()) or any(
        gateway.subnet_id == subnet_id for gateway in gateways
    ):
        refuse("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    return _delete_subnet(self, subnet_id)


def _vpc_deleted(self: Any, vpc_id: str) -> Any:
    gateways = self.describe_internet_gateways(filters={"attachment.vpc-id": [vpc_id]})
    groups = [group for group in self.groups.get(vpc_id, {}).values() if group.name != "default"]
    endpoints = [e for e in self.vpc_end_points.values() if e.vpc_id == vpc_id and e.state != "deleted"]
    if gateways or groups or endpoints:
        refuse("DependencyViolation", f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    return _delete_vpc(self, vpc_id)


def _interface_deleted(self: Any, eni_id: str) -> Any:
    eni = self.get_network_interface(eni_id)
    if eni.status == "in-use":
        refuse("InvalidParameterValue", f"Network interface '{eni_id}' is currently in use.")
    for address in eni.private_ip_addresses:
        eni.subnet.del_subnet_ip(address["PrivateIpAddress"])
    return _delete_interface(self, eni_id)


def _gateway_detached(self: Any, internet_gateway_id: str, vpc_id: str) -> Any:
    if any(eni.public_ip and eni.subnet.vpc_id == vpc_id for eni in self.enis.values()):
        refuse(
            "DependencyViolation",
            f"Network {vpc_id} has some mapped public address(es). Please unmap those public address(es) before "
            "detaching the gateway.",
        )
    return _detach_gateway(self, internet_gateway_id, vpc_id)


def install() -> None:
    EC2Backend.delete_security_group = _group_deleted
    EC2Backend.delete_subnet = _subnet_deleted
    EC2Backend.delete_vpc = _vpc_deleted
    EC2Backend.delete_network_interface = _interface_deleted
    EC2Backend.detach_internet_gateway = _gateway_detached
