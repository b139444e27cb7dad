"""Which hosts should exist: every instance of every region that is not terminated, with what it needs to boot."""

from __future__ import annotations

from typing import Any


def desired() -> list[dict[str, Any]]:
    """One record an instance; the fields are those that the reconciler reads."""
    from moto.ec2.models import ec2_backends

    records = []
    for regions in list(ec2_backends.values()):
        for backend in list(regions.values()):
            for reservation in list(backend.reservations.values()):
                records += [_record(backend, i) for i in reservation.instances if i._state.name != "terminated"]
    return records


def _record(backend: Any, instance: Any) -> dict[str, Any]:
    vpc = backend.vpcs.get(instance.vpc_id)
    key = backend.key_pairs.get(instance.key_name) if instance.key_name else None
    mine = {eni.id for eni in instance.nics.values()}
    addresses = [a.public_ip for a in backend.addresses if a.eni is not None and a.eni.id in mine]
    return {
        "instance_id": instance.id,
        "state": instance._state.name,
        "private_ip": instance.private_ip,
        "private_dns_name": f"ip-{instance.private_ip.replace('.', '-')}.{backend.region_name}.compute.internal",
        "hostname": "ip-" + instance.private_ip.replace(".", "-"),
        "vpc_id": instance.vpc_id,
        "vpc_cidr": vpc.cidr_block if vpc else None,
        "public_ips": addresses,
        "image_id": instance.image_id,
        "instance_type": instance.instance_type,
        "user_data": instance.user_data or None,
        "public_key": key.material_public.decode() if key else None,
        "efa_interfaces": sum(eni.interface_type.startswith("efa") for eni in instance.nics.values()),
        "tags": dict(backend.tags.get(instance.id, {})),
    }
