"""One interface per (network card, device index), with its type; stock moto keys them by device index alone.

Interfaces get distinct addresses of their subnet, the primary one first, and the tags of the launch. An ``efa-only``
interface has no address. Inside moto an interface is known by ``card * CARD_STRIDE + device``.
"""

from __future__ import annotations

import threading
from typing import Any

import moto.ec2.models.elastic_network_interfaces as eni_models
import moto.ec2.models.instances as instance_models
from moto.ec2.models import EC2Backend

# Tags for the interfaces of the launch that this thread is working on.
LAUNCH = threading.local()

CARD_STRIDE = 1000

_prep_nics = instance_models.Instance.prep_nics
_attach_eni = instance_models.Instance.attach_eni
_init_attachment = eni_models.Attachment.__init__


def _prepare(self: Any, nic_spec: list[dict[str, Any]], *arguments: Any, **options: Any) -> Any:
    self.interface_types = {}
    named = [nic for nic in nic_spec if nic.get("PrivateIpAddress") and "SubnetId" in nic]
    for nic in named:
        # For the others another one is found.
        subnet = self.ec2_backend.get_subnet(nic["SubnetId"])
        subnet.request_ip(nic["PrivateIpAddress"], self)
    nic_spec.sort(key=lambda nic: (int(nic.get("NetworkCardIndex") or 0), int(nic.get("DeviceIndex") or 0)))
    for position, nic in enumerate(nic_spec):
        key = int(nic.get("NetworkCardIndex") or 0) * CARD_STRIDE + int(nic.get("DeviceIndex") or 0)
        nic["DeviceIndex"] = key
        kind = self.interface_types[key] = nic.get("InterfaceType") or "interface"
        if nic.get("NetworkInterfaceId"):
            continue
        # EC2 deletes what a launch created unless it is told otherwise.
        nic.setdefault("DeleteOnTermination", True)
        if nic.get("PrivateIpAddress") or kind == "efa-only" or "SubnetId" not in nic:
            continue
        subnet = self.ec2_backend.get_subnet(nic["SubnetId"])
        nic["PrivateIpAddress"] = subnet.get_available_subnet_ip(instance=self)
        if position == 0:
            # moto asks for the primary address by itself and refuses one that is taken.
            del subnet._subnet_ips[nic["PrivateIpAddress"]]
    for nic in named:
        del self.ec2_backend.get_subnet(nic["SubnetId"])._subnet_ips[nic["PrivateIpAddress"]]
    return _prep_nics(self, nic_spec, *arguments, **options)


def _attach(self: Any, eni: Any, key: int) -> str:
    attachment: str = _attach_eni(self, eni, key)
    eni.attach_time = eni.attach_time.replace(microsecond=0)
    eni.network_card_index, eni.device_index = divmod(int(key), CARD_STRIDE)
    eni.interface_type = getattr(self, "interface_types", {}).get(int(key), eni.interface_type)
    if eni.interface_type == "efa-only":
        eni.private_ip_address, eni.private_ip_addresses = None, []
    eni.add_tags(getattr(LAUNCH, "tags", None) or {})
    return attachment


def _detach(self: Any, eni: Any) -> None:
    self.nics = {key: nic for key, nic in self.nics.items() if nic is not eni}
    eni.instance = eni.attachment_id = eni.attach_time = eni.device_index = None
    eni.status = "available"


def _attachment(self: Any, eni: Any) -> None:
    _init_attachment(self, eni)
    self.network_card_index = getattr(eni, "network_card_index", 0)


def _get_network_interface(self: Any, eni_id: str) -> Any:
    """By key; stock moto walks through all of them."""
    if eni_id not in self.enis:
        raise eni_models.InvalidNetworkInterfaceIdError(eni_id)
    return self.enis[eni_id]


def _delete(self: Any) -> None:
    """With its instance; one that was deleted before is no error."""
    self.ec2_backend.enis.pop(self.id, None)
    self.ec2_backend.tags.pop(self.id, None)
    for address in self.private_ip_addresses:
        self.subnet.del_subnet_ip(address["PrivateIpAddress"])


def install() -> None:
    instance_models.Instance.prep_nics = _prepare
    instance_models.Instance.attach_eni = _attach
    instance_models.Instance.detach_eni = _detach
    eni_models.Attachment.__init__ = _attachment
    eni_models.NetworkInterface.delete = _delete
    EC2Backend.get_network_interface = _get_network_interface
