"""Addresses of a cluster: its control plane and DNS, and those of its Pods. Pure; the hosts use it as well."""

from __future__ import annotations

import ipaddress

# Shared address space (RFC 6598), which the VPC CNI's documentation proposes for Pods as well. A node's part of it is
# found from the node's address alone, so that no node has to be told of another.
PODS = ipaddress.ip_network("100.64.0.0/10")
_BITS = 6  # of a node's Pods: 61 of them
MAX_PODS = 2**_BITS - 6


def control_plane(vpc_cidr: str, taken: set[str]) -> str | None:
    """An address for a control plane, of those that AWS keeps for itself in a VPC; None where none is left.

    The first is the router, which the machine itself is; see "Subnet sizing" in the VPC user guide.
    """
    network = ipaddress.ip_network(vpc_cidr)
    return next((str(network[index]) for index in (3, 2) if str(network[index]) not in taken), None)


def gateway(vpc_cidr: str) -> str:
    return str(ipaddress.ip_network(vpc_cidr)[1])


def dns(service_cidr: str) -> str:
    """The address of kube-dns, as nodeadm derives it from the services' range."""
    return str(ipaddress.ip_network(service_cidr)[10])


def kubernetes_service(service_cidr: str) -> str:
    """The address of the apiserver as a service, which its certificate names."""
    return str(ipaddress.ip_network(service_cidr)[1])


def pods_of(private_ip: str, vpc_cidr: str) -> str:
    """The range of the Pods of a node.

    Raises:
        ValueError: the node is not in the VPC, or a VPC larger than AWS allows.
    """
    vpc = ipaddress.ip_network(vpc_cidr)
    address = ipaddress.ip_address(private_ip)
    if address not in vpc or vpc.prefixlen < 16:
        raise ValueError(f"{private_ip} is no address of a VPC {vpc_cidr} of /16 or smaller")
    first = int(PODS.network_address) + ((int(address) - int(vpc.network_address)) << _BITS)
    return f"{ipaddress.ip_address(first)}/{32 - _BITS}"
