# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whose it is what was found: another owner's or backend's, a stranger's in the VPC, somebody else's key. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    CLUSTER_TAG,
    OWNER_TAG,
    owner_of,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import networks
from ansible_collections.trainium.cluster.plugins.module_utils._network.plan import Found

Item = Mapping[str, Any]
# By which tag the instances of a backend are known; those of ec2 have none of these.
_BACKENDS = {"pcluster": "parallelcluster:cluster-name", "eks": "eks:cluster-name"}


def owners_of(items: Iterable[Item]) -> list[str]:
    """The owners in the tags of VPCs and instances, each once; what has none is nobody's."""
    return list(dict.fromkeys(owner_of(tags[OWNER_TAG]) for tags in map(tags_of, items) if OWNER_TAG in tags))


def backends_of(instances: Iterable[Item]) -> dict[str, int]:
    """How many instances each backend has made."""
    counts: dict[str, int] = {}
    for item in instances:
        tags = tags_of(item)
        made = [backend for backend, tag in _BACKENDS.items() if tag in tags] or ["ec2"]
        for backend in made:
            counts[backend] = counts.get(backend, 0) + 1
    return counts


def strangers(found: Found, cluster: str, cidrs: Sequence[str], groups: Sequence[str]) -> str:
    """What is wrong with what lies in the VPC in a place of the cluster's, a sentence; '' where nothing is.

    Args:
        cidrs: those of the cluster's subnets.
        groups: the names of its security groups.
    """
    if not found.vpc:
        return ""
    items = [
        *((item["SubnetId"], item["CidrBlock"], item) for item in found.subnets if item["CidrBlock"] in cidrs),
        *((item["GroupId"], item["GroupName"], item) for item in found.security_groups if item["GroupName"] in groups),
        *((item["InternetGatewayId"], "its internet gateway", item) for item in found.internet_gateways),
    ]
    return networks.strangers(items, found.vpc["VpcId"], cluster)


def key_state(pairs: Sequence[Item], public_key: str, cluster: str) -> dict[str, bool]:
    """Of the key pair of the wanted name: whether there is one, whether it is this cluster's, and holds our key."""
    pair = pairs[0] if pairs else {}
    return {
        "exists": bool(pair),
        "ours": tags_of(pair).get(CLUSTER_TAG) == cluster,
        "right": bool(pair) and pair.get("PublicKey", "").split()[:2] == public_key.split()[:2],
    }
