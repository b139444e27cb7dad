# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lines of /etc/hosts, those that are and those that are wanted, and which names a node may have. Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Union

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

MAX_NAME_LENGTH = 63
"""Longest host name, in characters, that NCCL and the Neuron runtime can resolve."""

MANAGED_DOMAIN = ".pcluster"
"""ParallelCluster <= 3.5.1 writes <node>.<cluster>.pcluster with the address of the wrong interface."""

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

_MAX_ALIAS_LENGTH = 253
_LABEL = re.compile(r"^(?!-)[a-z0-9_-]{1,63}(?<!-)$")
_RESERVED = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})


@dataclass(frozen=True)
class HostEntry:
    """What a node shall be called: an address, its names with the canonical one first, and names that are too long.

    The over-long names get a line of their own behind the first one of the address. So they can still be looked up,
    but the look-up of the node's own name (``getfqdn``, and with it MASTER_ADDR) never answers with one.
    """

    address: str
    names: tuple[str, ...]
    long_names: tuple[str, ...] = ()

    @property
    def all_names(self) -> tuple[str, ...]:
        return self.names + self.long_names


@dataclass(frozen=True)
class HostLine:
    """One line of the file. ``address`` is None, and ``names`` empty, where it is no entry."""

    text: str
    address: Address | None = None
    names: tuple[str, ...] = ()


def read_line(text: str) -> HostLine:
    """Take a line of the file apart; names in lower case."""
    words = text.partition("#")[0].split()
    address = parse_address(words[0]) if words else None
    if address is None:
        return HostLine(text)
    return HostLine(text, address, tuple(word.lower() for word in words[1:]))


def parse_address(word: str) -> Address | None:
    """The address, without the zone of a link-local one; None for what is none."""
    try:
        return ipaddress.ip_address(word.partition("%")[0])
    except ValueError:
        return None


def parse_entries(text: str) -> list[HostEntry]:
    """Read wanted entries in the format of /etc/hosts: one address and at least one name a line, ``#`` comments.

    Names come back in lower case. The last name of a line is the node's host name. Raises TrainiumError for an address
    that is no address or a loopback one, for a name that is not a host name or is reserved, for a host name of more
    than 63 characters, and for a name or address that occurs twice.
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
            raise TrainiumError(f"The entry for {address} has no name; give every node a name.")
        if address in addresses:
            raise TrainiumError(f"The address {address} is given to two nodes; every node needs its own.")
        addresses.add(address)
        check_length(names[-1])
        for name in names:
            _check_name(name)
            if name in owners:
                raise TrainiumError(f"The name {name} is given to {owners[name]} and to {address}; make it unique.")
            owners[name] = address
        fit = tuple(name for name in names if len(name) <= MAX_NAME_LENGTH)
        entries.append(HostEntry(address, fit, tuple(name for name in names if len(name) > MAX_NAME_LENGTH)))
    if not entries:
        raise TrainiumError("There is no entry to write; the cluster has no nodes.")
    return entries


def check_length(name: str) -> None:
    """Raise TrainiumError for a host name that collectives cannot use."""
    if len(name) > MAX_NAME_LENGTH:
        raise TrainiumError(
            f"The host name {name} has {len(name)} characters, and collectives fail on more than {MAX_NAME_LENGTH};"
            " give the node a shorter one."
        )


def _checked_address(word: str) -> str:
    address = parse_address(word)
    if address is None:
        raise TrainiumError(f"{word} is not an IP address; give every node the address of its primary interface.")
    if address.is_loopback or address.is_unspecified:
        raise TrainiumError(f"{word} reaches only the node itself; give the address of its primary interface.")
    return str(address)


def _check_name(name: str) -> None:
    labels = name.split(".")
    valid = len(name) <= _MAX_ALIAS_LENGTH and all(_LABEL.match(label) for label in labels)
    if not valid or name in _RESERVED or parse_address(name) is not None:
        raise TrainiumError(f"{name} cannot be the name of a node; use letters, digits, hyphens and dots.")
