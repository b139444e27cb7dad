# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules of a security group: as amazon.aws.ec2_security_group takes them beside those that EC2 shows. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

Item = Mapping[str, Any]
# What the ends of a rule are called in EC2's answer.
_ENDS = (
    ("IpRanges", "CidrIp"),
    ("Ipv6Ranges", "CidrIpv6"),
    ("PrefixListIds", "PrefixListId"),
    ("UserIdGroupPairs", "GroupId"),
)


class Rule(NamedTuple):
    """One protocol, ports and end; ``end`` is what EC2 calls its kind, who owns it, and the network or id."""

    protocol: str
    ports: tuple[int, int] | None
    end: tuple[str, str, str]
    description: str

    def __str__(self) -> str:
        ports = (
            "" if self.ports is None else f" {self.ports[0]}" + f"-{self.ports[1]}" * (self.ports[0] != self.ports[1])
        )
        protocol = "all" if self.protocol == "-1" else self.protocol
        return f"{protocol}{ports} {self.end[2]} ({self.description or 'no description'})"


def rule_differences(wanted: Sequence[Item], shown: Sequence[Item], group: Item, called: str) -> list[str]:
    """The rules that are missing, and those that nobody asked for; a description that differs makes another rule.

    Args:
        wanted: with ``proto``, ``ports``, ``cidr_ip`` or ``group_name``, which is the group's own, and ``rule_desc``.
        shown: ``IpPermissions`` or ``IpPermissionsEgress``.
        group: what EC2 says of it.
        called: how the messages begin.
    """
    mine = {one for rule in wanted for one in _wanted(rule, group)}
    theirs = {one for permission in shown for one in _shown(permission)}
    return [
        *(f"{called} lacks {rule}" for rule in sorted(mine - theirs, key=str)),
        *(f"{called} has {rule}" for rule in sorted(theirs - mine, key=str)),
    ]


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _wanted(rule: Item, group: Item) -> Iterator[Rule]:
    unknown = sorted(set(rule) - {"proto", "ports", "cidr_ip", "group_name", "rule_desc"})
    if unknown:
        raise TrainiumError(f"rules of {group['GroupName']} have {', '.join(unknown)}, which cannot be compared")
    protocol = "-1" if rule["proto"] == "all" else str(rule["proto"])
    numbers: Iterable[int | None] = [int(port) for port in _listed(rule.get("ports"))] or [None]
    ends = [("IpRanges", "", _network(cidr)) for cidr in _listed(rule.get("cidr_ip"))]
    for name in _listed(rule.get("group_name")):
        if name != group["GroupName"]:
            raise TrainiumError(
                f"a rule of {group['GroupName']} names the group {name}, and only its own can be compared"
            )
        ends.append(("UserIdGroupPairs", str(group["OwnerId"]), str(group["GroupId"])))
    for number in numbers:
        for end in ends:
            yield Rule(protocol, None if number is None else (number, number), end, str(rule.get("rule_desc") or ""))


def _shown(permission: Item) -> Iterator[Rule]:
    first, last = permission.get("FromPort"), permission.get("ToPort")
    ports = None if first is None or last is None or (first, last) == (-1, -1) else (int(first), int(last))
    for kind, key in _ENDS:
        for end in permission.get(kind) or ():
            # Groups of services have a name alone.
            target = str(end.get(key) or end.get("GroupName") or "")
            owner = str(end.get("UserId") or "")
            yield Rule(str(permission["IpProtocol"]), ports, (kind, owner, target), str(end.get("Description") or ""))


def _network(cidr: str) -> str:
    """As EC2 keeps it, which takes the bits of a host away."""
    try:
        return str(ipaddress.IPv4Network(cidr, strict=False))
    except ValueError:
        return str(cidr)
