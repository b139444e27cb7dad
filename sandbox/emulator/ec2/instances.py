"""What an instance shows of itself, where stock moto shows something else.

Security groups are those of the primary interface; a terminated instance has no interfaces; changing one metadata
option keeps the others; a volume has the IOPS and the throughput that were asked for.
"""

from __future__ import annotations

from typing import Any

import moto.ec2.models.elastic_network_interfaces as eni_models
import moto.ec2.models.instances as models
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response

_parse_block_devices = EC2Response._parse_block_device_mapping
_stop_instances = EC2Response.stop_instances

METADATA_OPTIONS = {
    "http_tokens": "http_tokens",
    "hop_limit": "http_put_response_hop_limit",
    "http_endpoint": "http_endpoint",
    "http_protocol": "http_protocol_ipv6",
    "metadata_tags": "instance_metadata_tags",
}


def _gone(instance: Any) -> bool:
    return bool(instance._state.name == "terminated")


def _groups(self: Any) -> list[Any]:
    primary = getattr(self, "nics", {}).get(0)
    return list(primary._group_set) if primary else self.__dict__.get("launch_groups", [])


def _set_groups(self: Any, groups: list[Any]) -> None:
    self.__dict__["launch_groups"] = groups
    if getattr(self, "nics", {}).get(0):
        self.nics[0]._group_set = list(groups)


def _interfaces(self: Any) -> list[Any]:
    return [] if _gone(self) else [nic for _key, nic in sorted(self.nics.items())]


def _private_address(self: Any) -> str | None:
    address: str | None = None if _gone(self) or 0 not in self.nics else self.nics[0].private_ip_address
    return address


def _private_name(self: Any) -> str:
    address = _private_address(self)
    if not address:
        return ""
    domain = "ec2.internal" if self.region_name == "us-east-1" else f"{self.region_name}.compute.internal"
    return f"ip-{address.replace('.', '-')}.{domain}"


def _modify_metadata_options(self: Any, instance_id: str, dry_run: bool = False, **options: Any) -> Any:
    """``dry_run`` is dealt with before."""
    current = self.get_instance(instance_id).metadata_options
    for name, attribute in METADATA_OPTIONS.items():
        if options.get(name) is not None:
            setattr(current, attribute, options[name])
    return current


def _block_devices(self: EC2Response) -> list[dict[str, Any]]:
    mappings: list[dict[str, Any]] = _parse_block_devices(self)
    for mapping, asked in zip(mappings, self._get_param("BlockDeviceMappings", [])):
        ebs = asked.get("Ebs", {})
        # EC2's default for a volume that a launch creates.
        mapping["Ebs"]["DeleteOnTermination"] = ebs.get("DeleteOnTermination", True)
    return mappings


def _stop_as_asked(self: EC2Response) -> Any:
    """With Force, the operating system has no time to shut down (StopInstances in the EC2 API reference)."""
    for instance_id in self._get_param("InstanceIds", []):
        self.ec2_backend.get_instance(instance_id).powered_off = bool(self._get_param("Force", False))
    return _stop_instances(self)


def finish_volumes(instance: Any, asked: list[dict[str, Any]]) -> None:
    """Give an instance's new volumes what moto drops. ``asked``: the request's BlockDeviceMappings."""
    for mapping in asked:
        device = instance.block_device_mapping.get(mapping.get("DeviceName"))
        if device is None:
            continue
        volume = instance.ec2_backend.volumes[device.volume_id]
        ebs = mapping.get("Ebs", {})
        volume.iops = ebs.get("Iops") or volume.iops
        default = 125 if volume.volume_type == "gp3" else None  # MiB/s
        volume.throughput = ebs.get("Throughput") or getattr(volume, "throughput", None) or default


def install() -> None:
    instance = models.Instance
    instance.security_groups = property(_groups, _set_groups)
    instance.network_interfaces = property(_interfaces)
    instance.private_ip = instance.private_ip_address = property(_private_address)
    instance.private_dns_name = property(_private_name)
    # The launch has written the instance's groups into each interface already.
    eni_models.NetworkInterface.group_set = property(lambda self: self._group_set)
    EC2Backend.modify_instance_metadata_options = _modify_metadata_options
    EC2Response._parse_block_device_mapping = _block_devices
    EC2Response.stop_instances = _stop_as_asked
