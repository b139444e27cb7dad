"""What the resolver of a VPC knows: private names of instances, those of file systems of FSx, and of EFS that have a
mount target, and the records of Route 53's hosted zones."""

from __future__ import annotations


def known() -> dict[str, str]:
    """Name in lower case, without the last dot -> address."""
    from moto.ec2.models import ec2_backends
    from moto.efs.models import efs_backends
    from moto.fsx.models import fsx_backends
    from moto.route53.models import route53_backends

    from sandbox.emulator.services import efs, fsx

    found: dict[str, str] = {}
    for regions in list(ec2_backends.values()):
        for backend in list(regions.values()):
            for reservation in list(backend.reservations.values()):
                for instance in reservation.instances:
                    if instance._state.name != "terminated":
                        name = instance.private_dns_name.lower()
                        found[name] = found[name.split(".")[0]] = instance.private_ip
    for regions in list(efs_backends.values()):
        for region, backend in list(regions.items()):
            found.update(efs.names(backend, region))
    for regions in list(fsx_backends.values()):
        for backend in list(regions.values()):
            found.update(fsx.names(backend))
    for partitions in list(route53_backends.values()):
        for backend in list(partitions.values()):
            for zone in list(backend.zones.values()):
                for record in list(zone.rrsets):
                    if record.type == "A" and record.records:
                        value = record.records[0]
                        address = value["Value"] if isinstance(value, dict) else value
                        found[record.name.rstrip(".").lower()] = str(address)
    return found
