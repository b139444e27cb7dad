"""Public addresses from a documentation range (RFC 5737), which the sandbox routes to its hosts; stock: 127.x.

A NAT gateway has an address of its subnet, which is set free with it. An address in use is not released, except in a
default VPC, and an instance with several interfaces is not a place for an address.
"""

from __future__ import annotations

import ipaddress
import threading
from typing import Any

import moto.ec2.models.elastic_ip_addresses as eip_models
import moto.ec2.models.elastic_network_interfaces as eni_models
import moto.ec2.models.nat_gateways as nat_models
from moto.ec2.models import EC2Backend, ec2_backends

from sandbox.emulator.ec2 import quotas
from sandbox.emulator.errors import refuse
from sandbox.network import PUBLIC

RANGE = ipaddress.ip_network(PUBLIC)

_allocate = EC2Backend.allocate_address
_associate = EC2Backend.associate_address
_release = EC2Backend.release_address
_init_gateway = nat_models.NatGateway.__init__
_delete_gateway = EC2Backend.delete_nat_gateway
# The subnet of the NAT gateway that this thread is making.
_GATEWAY = threading.local()


def _public_address() -> str:
    """The lowest address of the range that nothing in any region holds."""
    taken = set()
    for regions in list(ec2_backends.values()):
        for backend in list(regions.values()):
            taken |= {address.public_ip for address in backend.addresses}
            taken |= {eni.public_ip for eni in backend.enis.values()}
    free = next((str(address) for address in RANGE.hosts() if str(address) not in taken), None)
    if free is None:
        refuse("AddressLimitExceeded", "The maximum number of addresses has been reached.")
    return free


def _allocated(self: Any, *arguments: Any, **options: Any) -> Any:
    quotas.check_addresses(len(self.addresses))
    return _allocate(self, *arguments, **options)


def _associated(self: Any, instance: Any = None, eni: Any = None, **options: Any) -> Any:
    if instance and not eni and len(instance.nics) > 1:
        refuse(
            "InvalidInstanceID",
            f"There are multiple interfaces attached to instance '{instance.id}'. "
            "Please specify an interface ID for the operation instead.",
        )
    found = _associate(self, instance=instance, eni=eni, **options)
    # An interface has one address; and DescribeAddresses names the instance behind it.
    for address in self.addresses:
        if address is not found and address.eni is found.eni:
            address.eni = address.instance = address.association_id = None
    found.instance = found.eni.instance if found.eni else found.instance
    return found


def _in_default_vpc(self: Any, address: Any) -> bool:
    subnet = getattr(address.eni, "subnet", None)
    return subnet is not None and str(self.vpcs[subnet.vpc_id].is_default).lower() == "true"


def _released(self: Any, address: str | None = None, allocation_id: str | None = None) -> Any:
    found = self.address_by_ip([address]) if address else self.address_by_allocation([allocation_id])
    if found[0].association_id:
        if not _in_default_vpc(self, found[0]):
            refuse("InvalidIPAddress.InUse", f"Address {found[0].public_ip} is in use.")
        # There EC2 takes it from its instance unasked (ReleaseAddress, API reference).
        self.disassociate_address(association_id=found[0].association_id)
    self.tags.pop(found[0].id, None)
    return _release(self, address=address, allocation_id=allocation_id)


def _start_gateway(self: Any, backend: Any, subnet_id: str, *arguments: Any, **options: Any) -> None:
    _GATEWAY.subnet = backend.get_subnet(subnet_id)
    try:
        _init_gateway(self, backend, subnet_id, *arguments, **options)
    finally:
        _GATEWAY.subnet = None
    self._eni.interface_type, self._eni.status = "nat_gateway", "in-use"


def _gateway_address(*arguments: Any, **options: Any) -> str:
    address: str = _GATEWAY.subnet.get_available_subnet_ip(instance=None)
    return address


def _end_gateway(self: Any, nat_gateway_id: str) -> Any:
    if nat_gateway_id not in self.nat_gateways:
        refuse("NatGatewayNotFound", f"The Nat Gateway {nat_gateway_id} was not found")
    gateway = _delete_gateway(self, nat_gateway_id)
    if gateway._eni.id in self.enis:
        for address in self.addresses:
            if address.eni is gateway._eni:
                address.eni = address.instance = address.association_id = None
        gateway._eni.delete()
    return gateway


def install() -> None:
    eip_models.random_ip = _public_address
    eni_models.random_public_ip = _public_address
    nat_models.random_private_ip = _gateway_address
    nat_models.NatGateway.__init__ = _start_gateway
    EC2Backend.delete_nat_gateway = _end_gateway
    EC2Backend.allocate_address = _allocated
    EC2Backend.associate_address = _associated
    EC2Backend.release_address = _released
