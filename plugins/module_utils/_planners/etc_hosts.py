# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_util is PRIVATE to the collection. Do not use it from outside: it can change without notice.

"""What /etc/hosts is -> what it must be, so that every node of a cluster has one name and one address everywhere.

Collectives and rendezvous resolve the names of the other nodes, and of the node itself, through this file. A loopback
entry (``127.0.1.1 fqdn short``), a stale address or an alias that a cluster manager left behind makes a job hang or
fail with "Invalid NCCL_COMM_ID". So the names of the cluster occur in the marked block and nowhere else.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

MAX_NAME_LENGTH = 63
"""Longest host name, in characters, that NCCL and the Neuron runtime can resolve."""

_LABEL = re.compile(r"^(?!-)[a-z0-9_-]{1,63}(?<!-)$")
_RESERVED = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
# ParallelCluster <= 3.5.1 writes <node>.<cluster>.pcluster with the address of the wrong interface.
_MANAGED_DOMAIN = ".pcluster"


class EtcHostsError(ValueError):
    """The wanted entries cannot go into /etc/hosts; the message is one sentence for the user."""


@dataclass(frozen=True)
class HostEntry:
    """One line of /etc/hosts: an address and its names, the canonical one first."""

    address: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class EtcHostsPlan:
    """The text that /etc/hosts must have, and the lines outside the block that had to be corrected."""

    content: str
    repaired: list[str] = field(default_factory=list)


def parse_entries(text: str) -> list[HostEntry]:
    """Read wanted entries in the format of /etc/hosts: one address and at least one name a line, ``#`` comments.

    Names come back in lower case. Raises EtcHostsError for an address that is no address or a loopback one, for a name
    that is not a host name, is longer than 63 characters or is reserved, and for a name or address that occurs twice.
    """
    entries: list[HostEntry] = []
    addresses: set[str] = set()
    owners: dict[str, str] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        address, names = _checked_address(words[0]), tuple(dict.fromkeys(word.lower() for word in words[1:]))
        if not names:
            raise EtcHostsError(f"The entry for {address} has no name; give every node a name.")
        if address in addresses:
            raise EtcHostsError(f"The address {address} is given to two nodes; every node needs its own.")
        addresses.add(address)
        for name in names:
            _check_name(name)
            if name in owners:
                raise EtcHostsError(f"The name {name} is given to {owners[name]} and to {address}; make it unique.")
            owners[name] = address
        entries.append(HostEntry(address, names))
    if not entries:
        raise EtcHostsError("There is no entry to write; the cluster has no nodes.")
    return entries


def plan_etc_hosts(current: str, entries: list[HostEntry], marker: str) -> EtcHostsPlan:
    """Plan the content of /etc/hosts from its current text, the wanted entries and the marker's name.

    The block keeps its place; a new one goes to the end. Either moves up in front of a line of somebody else's for an
    address of the cluster, because the first line for an address decides what a reverse look-up answers.
    """
    begin, end = f"# BEGIN {marker}", f"# END {marker}"
    cluster = _ClusterNames(entries)
    outside, place = _without_block(current.splitlines(), begin, end)
    kept: list[str] = []
    repaired: list[str] = []
    position: int | None = None
    for index, line in enumerate(outside):
        if index == place and position is None:
            position = len(kept)
        cleaned = cluster.clean(line)
        if cleaned != line:
            repaired.append(line)
        if cleaned is None:
            continue
        if position is None and cluster.claims_address(cleaned):
            position = len(kept)
        kept.append(cleaned)
    if position is None:
        position = len(kept)
    block = [begin, *(f"{entry.address} {' '.join(entry.names)}" for entry in entries), end]
    return EtcHostsPlan("\n".join([*kept[:position], *block, *kept[position:]]) + "\n", repaired)


class _ClusterNames:
    """Which names and addresses belong to the cluster, as sets: each line of a file costs the same on any cluster."""

    def __init__(self, entries: list[HostEntry]) -> None:
        self.names = frozenset(name for entry in entries for name in entry.names)
        self.short = frozenset(name.partition(".")[0] for name in self.names)
        self.addresses = frozenset(ipaddress.ip_address(entry.address) for entry in entries)

    def clean(self, line: str) -> str | None:
        """The line without names of the cluster: itself when it has none, None when no name is left."""
        data, sign, comment = line.partition("#")
        words = data.split()
        address = _address(words[0]) if words else None
        if address is None:
            return line
        left = [name for name in words[1:] if not self._owns(name.lower(), address.is_loopback)]
        if len(left) == len(words) - 1:
            return line
        if not left:
            return None
        return " ".join([words[0], *left]) + (f" {sign}{comment}" if sign else "")

    def claims_address(self, line: str) -> bool:
        """Whether the line gives a name to an address of the cluster."""
        words = line.partition("#")[0].split()
        return bool(words) and _address(words[0]) in self.addresses

    def _owns(self, name: str, loopback: bool) -> bool:
        if name in self.names:
            return True
        short, _dot, domain = name.partition(".")
        return short in self.short and (loopback or f".{domain}".endswith(_MANAGED_DOMAIN))


def _without_block(lines: list[str], begin: str, end: str) -> tuple[list[str], int | None]:
    """The lines outside the block, and the index among them where the block stood (None: there was none).

    A begin without an end (a file that was cut off, or edited) loses only the marker line, never what follows it.
    """
    outside: list[str] = []
    place: int | None = None
    index = 0
    while index < len(lines):
        line = lines[index].strip()
        if line == begin:
            place = len(outside) if place is None else place
            index = _end_of_block(lines, index, begin, end)
        elif line != end:
            outside.append(lines[index])
        index += 1
    return outside, place


def _end_of_block(lines: list[str], start: int, begin: str, end: str) -> int:
    """The index of the end marker that belongs to the begin marker at start, or start when it has none."""
    for index in range(start + 1, len(lines)):
        if lines[index].strip() == end:
            return index
        if lines[index].strip() == begin:
            break
    return start


def _address(word: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(word.partition("%")[0])
    except ValueError:
        return None


def _checked_address(word: str) -> str:
    address = _address(word)
    if address is None:
        raise EtcHostsError(f"{word} is not an IP address; give every node the address of its primary interface.")
    if address.is_loopback or address.is_unspecified:
        raise EtcHostsError(f"{word} reaches only the node itself; give the address of its primary interface.")
    return str(address)


def _check_name(name: str) -> None:
    if len(name) > MAX_NAME_LENGTH:
        raise EtcHostsError(
            f"The name {name} has {len(name)} characters, and collectives fail on more than {MAX_NAME_LENGTH};"
            " shorten the host name or its domain."
        )
    if name in _RESERVED or _address(name) is not None or not all(_LABEL.match(label) for label in name.split(".")):
        raise EtcHostsError(f"{name} cannot be the name of a node; use letters, digits, hyphens and dots.")
