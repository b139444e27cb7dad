"""Which hosts should exist: every instance of every region that is not terminated, with what it needs to boot."""

from __future__ import annotations

from typing import Any


def desired() -> list[dict[str, Any]]:
    """One record an instance; the fields are those that the reconciler reads. ``user_data`` is base64 or None."""
    from moto.ec2.models import ec2_backends

    return [
        _record(backend, instance)
        for regions in list(ec2_backends.values())
        for backend in list(regions.values())
        for reservation in list(backend.reservations.values())
        for instance in reservation.instances
        if instance._state.name != "terminated"
    ]


def _record(backend: Any, instance: Any) -> dict[str, Any]:
    vpc = backend.vpcs.get(instance.vpc_id)
    key = backend.key_pairs.get(instance.key_name) if instance.key_name else None
    name = instance.private_dns_name
    return {
        "instance_id": instance.id,
        "state": instance._state.name,
        "powered_off": getattr(instance, "powered_off", False),
        "private_ip": instance.private_ip,
        "private_dns_name": name,
        "hostname": name.split(".")[0],
        "zone": instance._placement.zone,
        "vpc_id": instance.vpc_id,
        "vpc_cidr": vpc.cidr_block if vpc else None,
        "public_ips": sorted({eni.public_ip for eni in instance.nics.values() if eni.public_ip}),
        "image_id": instance.image_id,
        "image_name": getattr(backend.amis.get(instance.image_id), "name", ""),
        "instance_type": instance.instance_type,
        "user_data": instance.user_data or None,
        "public_key": key.material_public.decode() if key else None,
        "efa_interfaces": sum(eni.interface_type.startswith("efa") for eni in instance.nics.values()),
        "tags": dict(backend.tags.get(instance.id, {})),
    }
