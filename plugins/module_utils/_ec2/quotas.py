# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether an account's quotas of vCPUs and of Elastic IPs have room for a launch. Pure.

Sources: EC2 user guide, "On-Demand Instance quotas" and "Spot Instance quotas": one quota for a group of families, in
vCPUs of running instances, named "Running On-Demand Trn instances" and "All Trn Spot Instance Requests"; the names, and
not the codes, tell the families. What is launched into a reservation that is named was counted when it was reserved;
Capacity Blocks are always so. EC2 user guide, "Elastic IP address quota": so many in a region. Whether those of a
range that somebody brought count is not written there; they do not here, so that none is refused that could be had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, ROLE_TAG, tags_of

_NAMES = {
    "on-demand": re.compile(r"Running On-Demand (.+) instances"),
    "spot": re.compile(r"All (.+) Spot Instance Requests"),
}
# The name of the quota of Elastic IPs.
ADDRESSES = "EC2-VPC Elastic IPs"
# Who takes one beside the nodes, by the tag trainium:role.
_ROLES = {"head": "the head node", "network": "the NAT gateway", "bastion": "the bastion"}
# Of these the user gives none.
_ALLOCATED = frozenset({"network", "bastion"})
LINK = "https://console.aws.amazon.com/servicequotas/home/services/ec2/quotas/{code}?region={region}"


class Quota(NamedTuple):
    """``value`` vCPUs may run at once, or so many addresses be had."""

    name: str
    code: str
    value: int


class Usage(NamedTuple):
    """A quota of vCPUs, how many of it are ``used``, and the ``vcpus`` of one node more."""

    quota: Quota
    used: int
    vcpus: int


def counts(params: Mapping[str, Any]) -> bool:
    """Whether a launch needs room in a quota."""
    reservation = params.get("capacity_reservation") or {}
    return params["market"] in _NAMES and not (reservation.get("id") or reservation.get("resource_group_arn"))


def _covers(group: str, instance_type: str) -> bool:
    """Whether "Standard (A, C, D)", "G and VT" or "P4, P3 and P2" has a type's family, perhaps with its generation."""
    family = re.match(r"([a-z]+)(\d*)", instance_type)
    words = {word.lower() for word in re.findall(r"[A-Za-z0-9]+", group)} - {"standard", "and"}
    return bool(family and {family.group(1), family.group()} & words)


def quota_of(quotas: Iterable[Mapping[str, Any]], instance_type: str, market: str) -> Quota | None:
    """The quota that a type belongs to; None where none has that name. The first of two of one name counts."""
    for item in quotas:
        match = _NAMES[market].fullmatch(item["QuotaName"])
        if match and _covers(match.group(1), instance_type):
            return Quota(item["QuotaName"], item["QuotaCode"], int(item["Value"]))
    return None


def quota_of_addresses(quotas: Iterable[Mapping[str, Any]]) -> Quota | None:
    """The quota of Elastic IPs; None where none has that name."""
    found = (item for item in quotas if item["QuotaName"] == ADDRESSES)
    return next((Quota(ADDRESSES, item["QuotaCode"], int(item["Value"])) for item in found), None)


def counted(addresses: Iterable[Mapping[str, Any]]) -> int:
    """How many of DescribeAddresses' items are Amazon's own."""
    return sum(item.get("PublicIpv4Pool", "amazon") == "amazon" for item in addresses)


def rivals(instances: Iterable[Mapping[str, Any]], quota: Quota, market: str) -> list[str]:
    """The types of those instances that use the quota, one entry each."""
    group = next(match.group(1) for match in (_NAMES[market].fullmatch(quota.name),) if match)
    lifecycle = "spot" if market == "spot" else ""
    return [
        item["InstanceType"]
        for item in instances
        if (item.get("InstanceLifecycle") or "") == lifecycle and _covers(group, item["InstanceType"])
    ]


def missing_addresses(
    addresses: Iterable[Mapping[str, Any]], cluster: str, wanted: Mapping[str, int]
) -> dict[str, int]:
    """How many of the addresses that are ``wanted`` by role a cluster does not have, of DescribeAddresses' items.

    Those that the user gave it serve the nodes, whose role they need not carry.
    """
    tags = [found for found in map(tags_of, addresses) if found.get(CLUSTER_TAG) == cluster]
    given = sum(ROLE_TAG not in found for found in tags)
    missing: dict[str, int] = {}
    for role, number in wanted.items():
        lacking = max(0, number - sum(found.get(ROLE_TAG) == role for found in tags))
        served = 0 if role in _ALLOCATED else min(given, lacking)
        given -= served
        missing[role] = lacking - served
    return missing


def problem_of_addresses(
    quota: Quota, used: int, count: int, region: str, missing: Mapping[str, int] | None = None
) -> str:
    """Why ``count`` more addresses cannot be had; '' where they can. ``missing`` has them by role."""
    if used + count <= quota.value:
        return ""
    parts = {role: number for role, number in (missing or {}).items() if number}
    named = [f"{_ROLES.get(role, 'the nodes')} ({number})" for role, number in parts.items()]
    who = " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]])) or "the nodes"
    verb = "needs" if len(parts) == 1 and set(parts) <= set(_ROLES) else "need"
    needs = f"{who[0].upper()}{who[1:]} {verb} {count} Elastic IP{'s' * (count != 1)} more"
    text = (
        f"{needs}, and the quota '{quota.name}' of {region} is {quota.value}, of which {used} are in use; ask for "
        f"{used + count} at {LINK.format(code=quota.code, region=region)}, or "
    )
    if parts and set(parts) <= _ALLOCATED:
        return f"{text}release what is not needed"
    return (
        f"{text}reach the nodes without (public_ip none, for the playbooks trainium_public_ip: none with "
        "trainium_connection: ssm or trainium_bastion: create)"
    )


def problem(quota: Quota, used: int, count: int, instance_type: str, vcpus: int, region: str) -> str:
    """Why ``count`` nodes of ``vcpus`` each do not fit; '' where they do."""
    needed = count * vcpus
    if used + needed <= quota.value:
        return ""
    return (
        f"{count} x {instance_type} need {needed} vCPUs, and the quota '{quota.name}' of {region} is {quota.value}, of "
        f"which {used} are in use; ask for {used + needed} at {LINK.format(code=quota.code, region=region)}, or take "
        "fewer nodes (count, for the playbooks trainium_node_count)"
    )
