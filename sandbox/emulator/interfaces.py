"""One interface per (network card, device index), with its type; stock moto keys them by device index alone.

Secondary interfaces get distinct addresses of their subnet and the tags of the launch.
"""

from __future__ import annotations

import threading
from typing import Any

import moto.ec2.models.elastic_network_interfaces as eni_models
import moto.ec2.models.instances as instance_models
from moto.ec2.models import EC2Backend

# Tags for the interfaces of the launch that this thread is working on.
LAUNCH = threading.local()

_prep_nics = instance_models.Instance.prep_nics
_attach_eni = instance_models.Instance.attach_eni
_init_attachment = eni_models.Attachment.__init__

CARD_STRIDE = 1000  # key of an interface in Instance.nics: card * stride + device index


def _prepare(self: Any, nic_spec: list[dict[str, Any]], *arguments: Any, **options: Any) -> Any:
    self.planned_cards = iter(
        [(int(nic.get("NetworkCardIndex") or 0), nic.get("InterfaceType") or "interface") for nic in nic_spec]
    )
    for nic in nic_spec:
        # EC2 deletes what a launch created unless it is told otherwise.
        if not nic.get("NetworkInterfaceId"):
            nic.setdefault("DeleteOnTermination", True)
    for nic in nic_spec[1:]:
        addressed = nic.get("PrivateIpAddress") or nic.get("NetworkInterfaceId")
        if "SubnetId" in nic and not addressed:
            subnet = self.ec2_backend.get_subnet(nic["SubnetId"])
            nic["PrivateIpAddress"] = subnet.get_available_subnet_ip(instance=self)
    return _prep_nics(self, nic_spec, *arguments, **options)


def _attach(self: Any, eni: Any, device_index: int) -> str:
    card, kind = next(getattr(self, "planned_cards", iter(())), (0, eni.interface_type))
    # Stock moto keys by device index alone, so the interface of another card with the same one must be put back.
    earlier = self.nics.get(int(device_index))
    attachment: str = _attach_eni(self, eni, device_index)
    eni.network_card_index, eni.interface_type = card, kind
    eni.add_tags(getattr(LAUNCH, "tags", None) or {})
    if card:
        self.nics.pop(int(device_index), None)
        if earlier is not None:
            self.nics[int(device_index)] = earlier
        self.nics[card * CARD_STRIDE + int(device_index)] = eni
    return attachment


def _attachment(self: Any, eni: Any) -> None:
    _init_attachment(self, eni)
    self.network_card_index = getattr(eni, "network_card_index", 0)


def _get_network_interface(self: Any, eni_id: str) -> Any:
    """By key; stock moto walks through all of them."""
    if eni_id not in self.enis:
        raise eni_models.InvalidNetworkInterfaceIdError(eni_id)
    return self.enis[eni_id]


def install() -> None:
    instance_models.Instance.prep_nics = _prepare
    instance_models.Instance.attach_eni = _attach
    eni_models.Attachment.__init__ = _attachment
    EC2Backend.get_network_interface = _get_network_interface
