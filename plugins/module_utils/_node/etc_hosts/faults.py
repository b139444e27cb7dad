# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which of the known faults an /etc/hosts has, as the node that owns it sees the cluster. Pure.

Only the file is judged, not DNS: the file is asked first, and it is what multi-node jobs were seen to fail on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

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


@dataclass
class Fault:
    """One kind of fault: how often it occurs, and the first lines (or names) that show it."""

    kind: str
    count: int = 0
    examples: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set, repr=False, compare=False)

    def add(self, example: str) -> None:
        """Count a line or name, once however many of its names are wrong."""
        if example in self._seen:
            return
        self._seen.add(example)
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    @property
    def message(self) -> str:
        more = f" and {self.count - len(self.examples)} more" if self.count > len(self.examples) else ""
        return f"{MEANINGS[self.kind]}: {'; '.join(self.examples)}{more}"


def is_managed_alias(name: str) -> bool:
    """Whether a cluster manager gave this name: <node>.<cluster>.pcluster."""
    return name.endswith(MANAGED_DOMAIN)


def managed_aliases(lines: Iterable[HostLine]) -> list[Fault]:
    """The lines with aliases of a cluster manager, of whatever cluster, as a list of one fault or none."""
    fault = Fault(PCLUSTER_ALIAS)
    for line in lines:
        if any(is_managed_alias(name) for name in line.names):
            fault.add(line.text.strip())
    return [fault] if fault.count else []


def find_faults(lines: list[HostLine], entries: list[HostEntry], own: str) -> list[Fault]:
    """Every fault of the file for the node with the host name ``own``; none means that the file is sound.

    One pass over the lines and one over the entries, with look-ups in dictionaries: linear in both.
    """
    found = _Found()
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
                found.add_foreign(name, line)
    for entry in entries:
        _judge_names(found, entry, by_name, own.lower() in entry.all_names)
        _judge_first_line(found, entry, first)
    return found.in_order()


class _Found:
    """Faults by kind."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}

    def add(self, kind: str, example: str) -> None:
        self._faults.setdefault(kind, Fault(kind)).add(example.strip())

    def add_foreign(self, name: str, line: HostLine) -> None:
        """A name that is the node's only by its first label: wrong under .pcluster and on a loopback address."""
        if is_managed_alias(name):
            self.add(PCLUSTER_ALIAS, line.text)
        elif line.address is not None and line.address.is_loopback:
            self.add(LOOPBACK, line.text)

    def in_order(self) -> list[Fault]:
        return [self._faults[kind] for kind in MEANINGS if kind in self._faults]


def _judge_names(found: _Found, entry: HostEntry, by_name: dict[str, list[HostLine]], own: bool) -> None:
    """What a look-up of each name of the node answers."""
    address = parse_address(entry.address)
    unknown = [name for name in entry.all_names if name not in by_name]
    if len(unknown) == len(entry.all_names):
        found.add(NO_OWN_ENTRY if own else NO_ENTRY, entry.names[-1])
        return
    for name in unknown:
        found.add(FULL_NAME_UNKNOWN, name)
    for name in entry.all_names:
        lines = by_name.get(name, [])
        right = any(line.address == address for line in lines)
        for line in lines:
            if line.address is None or line.address == address:
                continue
            if is_managed_alias(name):
                found.add(PCLUSTER_ALIAS, line.text)
            if line.address.is_loopback:
                found.add(LOOPBACK, line.text)
            else:
                found.add(STALE_LINE if right else STALE_ADDRESS, line.text)


def _judge_first_line(found: _Found, entry: HostEntry, first: dict[Address, HostLine]) -> None:
    """What a look-up of the node's address answers: the names of the first line that has it, and no others."""
    address = parse_address(entry.address)
    line = first.get(address) if address is not None else None
    if line is None:
        return
    if any(len(name) > MAX_NAME_LENGTH for name in line.names):
        found.add(LONG_NAME, line.text)
    elif line.names[0] not in entry.names:
        found.add(OTHER_NAME_FIRST, line.text)
