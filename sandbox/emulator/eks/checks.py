"""The clusters that EKS refuses, and what it writes down of their logs."""

from __future__ import annotations

import ipaddress
from typing import Any

from moto.ec2.models import ec2_backends
from moto.eks.responses import EKSResponse
from moto.logs.models import logs_backends

from sandbox.emulator.eks.state import Cluster, wrong
from sandbox.emulator.records import Record

LOGS = ("api", "audit", "authenticator", "controllerManager", "scheduler")
# Version, its latest patch, the ends of standard and of extended support.
VERSIONS = (
    ("1.36", "1.36.2", "2027-07-30", "2028-07-30"),
    ("1.35", "1.35.6", "2027-03-27", "2028-03-27"),
    ("1.34", "1.34.9", "2026-12-02", "2027-12-02"),
    ("1.33", "1.33.13", "2026-07-29", "2027-07-29"),
    ("1.32", "1.32.13", "2026-03-23", "2027-03-23"),
    ("1.31", "1.31.14", "2025-11-26", "2026-11-26"),
    ("1.30", "1.30.14", "2025-07-23", "2026-07-23"),
)
DEFAULT = "1.35"
INSIDE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16")


def check_version(version: str) -> None:
    if version not in [one[0] for one in VERSIONS]:
        wrong(f"unsupported Kubernetes version {version}")


def check_network(response: EKSResponse, config: Record) -> Any:
    """The VPC of the subnets, which lie in two zones at least, and of the security groups."""
    ec2 = ec2_backends[response.current_account][response.region]
    known = {subnet.id: subnet for subnets in ec2.subnets.values() for subnet in subnets.values()}
    for identity in config.get("subnetIds") or ():
        if identity not in known:
            wrong(f"The subnet ID '{identity}' does not exist")
    subnets = [known[identity] for identity in config.get("subnetIds") or ()]
    if len({subnet.availability_zone for subnet in subnets}) < 2:
        wrong("Subnets specified must be in at least two different AZs")
    if len({subnet.vpc_id for subnet in subnets}) > 1:
        wrong("Subnets specified must be in the same VPC")
    for identity in config.get("securityGroupIds") or ():
        group = ec2.get_security_group_from_id(identity)
        if group is None:
            wrong(f"The security group ID '{identity}' does not exist")
        if group.vpc_id != subnets[0].vpc_id:
            wrong(f"Security group {identity} and the subnets belong to different networks.")
    return ec2.vpcs[subnets[0].vpc_id]


def check_zones(response: EKSResponse, before: list[str], after: list[str]) -> None:
    """Subnets change within the zones that a cluster has, of which each keeps one."""
    ec2 = ec2_backends[response.current_account][response.region]
    zones = [{ec2.get_subnet(subnet).availability_zone for subnet in subnets} for subnets in (before, after)]
    if zones[0] != zones[1]:
        wrong("Provided subnets must belong to the AZs that were provided during cluster creation.")


def check_endpoint(config: Record) -> None:
    if not config["endpointPublicAccess"] and not config["endpointPrivateAccess"]:
        wrong("Private and public endpoint access cannot be false.")
    for cidr in config["publicAccessCidrs"]:
        try:
            network = ipaddress.IPv4Network(cidr)
        except ValueError:
            wrong(f"The following CIDRs are invalid in publicAccessCidrs: {cidr}")
        if any(network.subnet_of(ipaddress.IPv4Network(inside)) for inside in INSIDE):
            wrong(f"The following CIDRs are not allowed in publicAccessCidrs: {cidr}")


def logging_of(asked: Record | None, current: Record | None = None) -> Record:
    enabled = {
        kind for setup in (current or {}).get("clusterLogging", ()) if setup["enabled"] for kind in setup["types"]
    }
    for setup in (asked or {}).get("clusterLogging") or ():
        for kind in setup.get("types") or ():
            if kind not in LOGS:
                wrong(f"{kind} is not a type of log")
            enabled = enabled | {kind} if setup.get("enabled") else enabled - {kind}
    pairs = [
        (True, [kind for kind in LOGS if kind in enabled]),
        (False, [kind for kind in LOGS if kind not in enabled]),
    ]
    return {"clusterLogging": [{"types": kinds, "enabled": on} for on, kinds in pairs if kinds]}


def write_logs(cluster: Cluster) -> None:
    """The log group stays when the cluster goes."""
    group = f"/aws/eks/{cluster.name}/cluster"
    backend = logs_backends[cluster.account][cluster.region]
    if any(setup["enabled"] for setup in cluster.shown["logging"]["clusterLogging"]) and group not in backend.groups:
        backend.create_log_group(group, {})
