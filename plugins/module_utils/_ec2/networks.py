# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cluster's subnets, what lies in its VPC and is somebody else's, and who may log in from where. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, tags_of

# Nobody comes from there over the Internet (RFC 1918, RFC 6598).
_INSIDE = [
    ipaddress.IPv4Network(network) for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
]
# Also where somebody asks for less: a /8 is as much as the largest owners of addresses have.
WIDEST = 8
# As AuthorizeSecurityGroupIngress takes it: an address and the length of its prefix, no netmask.
_NOTATION = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}/[0-9]{1,2}")


def wide_networks(networks: Iterable[str], smallest_prefix: int) -> list[str]:
    """What is wrong with the networks from which somebody may log in, a clause each; empty where all will do.

    Args:
        networks: such as ``192.0.2.0/24``. Private ones may have any size.
        smallest_prefix: bits that the prefix of any other network must have at least.

    Raises:
        ValueError: the prefix is no length of a prefix that narrows anything down.
    """
    if not WIDEST <= smallest_prefix <= 32:
        raise ValueError(f"the smallest prefix is {smallest_prefix}, and must be {WIDEST} to 32 bits")
    found, narrow = [], []
    for text in networks:
        try:
            if not _NOTATION.fullmatch(text):
                raise ValueError("no network")
            network = ipaddress.IPv4Network(text, strict=False)
        except ValueError:
            found.append(f"{text!r} is no IPv4 network such as 192.0.2.0/24")
            continue
        if any(network.subnet_of(inside) for inside in _INSIDE):
            continue
        if network.prefixlen < smallest_prefix:
            found.append(f"{text} is {network.num_addresses} addresses of the Internet")
        else:
            narrow.append(network)
    # A wide network may be given in parts.
    for network in ipaddress.collapse_addresses(narrow):
        if network.prefixlen < smallest_prefix:
            found.append(f"{network}, which is given in parts, is {network.num_addresses} addresses of the Internet")
    return found


def cluster_subnets(zones: Iterable[str], network: str) -> list[dict[str, str]]:
    """The public and the private subnet of each zone: ``zone``, ``kind`` and ``cidr``.

    The network is cut into sixteen. A zone's letter chooses its two parts, so that they stay the same when another zone
    begins to offer the type: public subnets lie in the lower half, private ones in the upper.

    Raises:
        ValueError: no network that can be cut so, or a zone with another letter.

    >>> [subnet["cidr"] for subnet in cluster_subnets(["us-west-2d"], "10.77.0.0/16")]
    ['10.77.48.0/20', '10.77.176.0/20']
    """
    parts = [str(part) for part in ipaddress.IPv4Network(network).subnets(prefixlen_diff=4)]
    subnets = []
    for zone in zones:
        slot = "abcdefgh".find(zone[-1:])
        if not zone or slot < 0:
            raise ValueError(f"the zone {zone!r} does not end with a letter from a to h")
        subnets += [
            {"zone": zone, "kind": kind, "cidr": parts[place]}
            for kind, place in (("public", slot), ("private", slot + 8))
        ]
    return subnets


def strangers(found: Iterable[tuple[str, str, Mapping[str, Any]]], vpc: str, cluster: str) -> str:
    """What is not the cluster's though it lies in its VPC, a sentence: the role would mark it, and teardown delete it.

    Args:
        found: id, what it is called, and what EC2 says of it.
        vpc: the VPC's id.
        cluster: the cluster's name.
    """
    theirs = [f"{identity} ({name})" for identity, name, item in found if tags_of(item).get(CLUSTER_TAG) != cluster]
    if not theirs:
        return ""
    return (
        f"{', '.join(theirs)} is in {vpc}, the VPC of the cluster {cluster}, and carries no tag "
        f"{CLUSTER_TAG}={cluster}, so that it is somebody else's; move it to another VPC, or give it that tag "
        "for the cluster to take it, and teardown.yml to delete it."
    )
