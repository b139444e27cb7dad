# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which of the known faults an /etc/hosts has, as the node that owns it sees the cluster. Pure.

Only the file is judged, not DNS: the file is asked first, and it is what multi-node jobs were seen to fail on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.entries import (
    MANAGED_DOMAIN,
    MAX_NAME_LENGTH,
    Address,
    HostEntry,
    HostLine,
    parse_address,
)

LOOPBACK = "loopback"
STALE_ADDRESS = "stale_address"
STALE_LINE = "stale_line"
NO_OWN_ENTRY = "no_own_entry"
NO_ENTRY = "no_entry"
FULL_NAME_UNKNOWN = "full_name_unknown"
PCLUSTER_ALIAS = "pcluster_alias"
LONG_NAME = "long_name"
OTHER_NAME_FIRST = "other_name_first"

MEANINGS = {
    LOOPBACK: "a node's name on a loopback address",
    STALE_ADDRESS: "a node's name with an address that is not its own",
    STALE_LINE: "a stale line beside the right one",
    NO_OWN_ENTRY: "no entry for the node itself",
    NO_ENTRY: "no entry for another node",
    FULL_NAME_UNKNOWN: "a full name that is not known on every node",
    PCLUSTER_ALIAS: "an alias under .pcluster",
    LONG_NAME: f"a name of more than {MAX_NAME_LENGTH} characters in the first line for an address",
    OTHER_NAME_FIRST: "another name in front of the node's own",
}
"""What can be wrong, in the order in which it is told."""

EXAMPLES = 5
"""A fault that a thousand nodes share is told by this many of its lines or names."""


# Kind of fault -> what shows it, in order and each once.
Found = dict[str, dict[str, None]]


@dataclass(frozen=True)
class Fault:
    """One kind of fault, and the lines (or names) that show it, each once however many of its names are wrong."""

    kind: str
    lines: list[str]

    @property
    def count(self) -> int:
        return len(self.lines)

    @property
    def examples(self) -> list[str]:
        return self.lines[:EXAMPLES]

    @property
    def message(self) -> str:
        more = f" and {self.count - EXAMPLES} more" if self.count > EXAMPLES else ""
        return f"{MEANINGS[self.kind]}: {'; '.join(self.examples)}{more}"


def is_managed_alias(name: str) -> bool:
    """Whether a cluster manager gave this name: <node>.<cluster>.pcluster."""
    return name.endswith(MANAGED_DOMAIN)


def managed_aliases(lines: Iterable[HostLine]) -> list[Fault]:
    """The lines with aliases of a cluster manager, of whatever cluster, as a list of one fault or none."""
    named = dict.fromkeys(line.text.strip() for line in lines if any(map(is_managed_alias, line.names)))
    return [Fault(PCLUSTER_ALIAS, list(named))] if named else []


def find_faults(lines: list[HostLine], entries: list[HostEntry], own: str) -> list[Fault]:
    """Every fault of the file for the node with the host name ``own``; none means that the file is sound.

    One pass over the lines and one over the entries, with look-ups in dictionaries: linear in both.
    """
    found: Found = defaultdict(dict)
    names = {name for entry in entries for name in entry.all_names}
    by_name: dict[str, list[HostLine]] = {}
    first: dict[Address, HostLine] = {}
    short = {name.partition(".")[0] for name in names}
    for line in lines:
        if line.address is None or not line.names:
            continue
        first.setdefault(line.address, line)
        for name in line.names:
            if name in names:
                by_name.setdefault(name, []).append(line)
            elif name.partition(".")[0] in short:
                # The node's only by its first label: wrong under .pcluster and on a loopback address.
                if is_managed_alias(name):
                    _add(found, PCLUSTER_ALIAS, line.text)
                elif line.address.is_loopback:
                    _add(found, LOOPBACK, line.text)
    for entry in entries:
        _judge_names(found, entry, by_name, own.lower() in entry.all_names)
        _judge_first_line(found, entry, first)
    return [Fault(kind, list(found[kind])) for kind in MEANINGS if kind in found]


def _add(found: Found, kind: str, example: str) -> None:
    found[kind][example.strip()] = None


def _judge_names(found: Found, entry: HostEntry, by_name: dict[str, list[HostLine]], own: bool) -> None:
    """What a look-up of each name of the node answers."""
    address = parse_address(entry.address)
    unknown = [name for name in entry.all_names if name not in by_name]
    if len(unknown) == len(entry.all_names):
        _add(found, NO_OWN_ENTRY if own else NO_ENTRY, entry.names[-1])
        return
    for name in unknown:
        _add(found, FULL_NAME_UNKNOWN, name)
    for name in entry.all_names:
        lines = by_name.get(name, [])
        right = any(line.address == address for line in lines)
        for line in lines:
            if line.address is None or line.address == address:
                continue
            if is_managed_alias(name):
                _add(found, PCLUSTER_ALIAS, line.text)
            if line.address.is_loopback:
                _add(found, LOOPBACK, line.text)
            else:
                _add(found, STALE_LINE if right else STALE_ADDRESS, line.text)


def _judge_first_line(found: Found, entry: HostEntry, first: dict[Address, HostLine]) -> None:
    """What a look-up of the node's address answers: the names of the first line that has it, and no others."""
    address = parse_address(entry.address)
    line = first.get(address) if address is not None else None
    if line is None:
        return
    if any(len(name) > MAX_NAME_LENGTH for name in line.names):
        _add(found, LONG_NAME, line.text)
    elif line.names[0] not in entry.names:
        _add(found, OTHER_NAME_FIRST, line.text)
