# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What /etc/hosts is -> what it must be, so that every node of a cluster has one name and one address everywhere. Pure.

Collectives and rendezvous resolve the names of the other nodes, and of the node itself, through this file. A loopback
entry (``127.0.1.1 fqdn short``), a stale address or an alias that a cluster manager left behind makes a job hang or
fail with "Invalid NCCL_COMM_ID". So the names of the cluster occur in the marked block and nowhere else. A file that
is sound without a block, because somebody else wrote the right entries, stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.entries import (
    HostEntry,
    parse_address,
    read_line,
)
from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.faults import (
    Fault,
    find_faults,
    is_managed_alias,
    managed_aliases,
)

SHOWN_LINES = 20
"""A change is told by at most this many lines that went, and that came; the diff has them all."""


@dataclass(frozen=True)
class EtcHostsPlan:
    """The text that /etc/hosts must have, what was wrong, and the lines outside the block that had to be corrected."""

    content: str
    repaired: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def plan_etc_hosts(current: str, entries: list[HostEntry], marker: str, own: str = "") -> EtcHostsPlan:
    """Plan the content of /etc/hosts for the node ``own`` from its current text, the wanted entries and the marker.

    The block keeps its place; a new one goes to the end. Either moves up in front of a line of somebody else's for an
    address of the cluster, because the first line for an address decides what a reverse look-up answers.
    """
    begin, end = f"# BEGIN {marker}", f"# END {marker}"
    lines = current.splitlines()
    outside, place = _without_block(lines, begin, end)
    faults = find_faults([read_line(line) for line in lines], entries, own)
    if not faults and len(outside) == len(lines):
        return EtcHostsPlan(current)
    cluster = _ClusterNames(entries)
    kept: list[str] = []
    repaired: list[str] = []
    position: int | None = None
    for index, line in enumerate(outside):
        if index == place and position is None:
            position = len(kept)
        cleaned = _clean(line, cluster.owns)
        if cleaned != line:
            repaired.append(line)
        if cleaned is None:
            continue
        if position is None and cluster.claims_address(cleaned):
            position = len(kept)
        kept.append(cleaned)
    if position is None:
        position = len(kept)
    block = [begin, *_block_lines(entries), end]
    return EtcHostsPlan(_text([*kept[:position], *block, *kept[position:]]), repaired, faults)


def plan_strip_alias(current: str) -> EtcHostsPlan:
    """Plan the content of /etc/hosts without any name under .pcluster; all else stays as it is."""
    lines = current.splitlines()
    faults = managed_aliases(read_line(line) for line in lines)
    if not faults:
        return EtcHostsPlan(current)
    cleaned = [_clean(line, lambda name, _loopback: is_managed_alias(name)) for line in lines]
    repaired = [line for line, new in zip(lines, cleaned) if new != line]
    return EtcHostsPlan(_text([line for line in cleaned if line is not None]), repaired, faults)


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that go and the lines that come, each at most SHOWN_LINES and then how many more there are."""
    old, new = before.splitlines(), after.splitlines()
    return _shown(_surplus(old, new)), _shown(_surplus(new, old))


def _surplus(these: list[str], those: list[str]) -> list[str]:
    known = Counter(those)
    surplus = []
    for line in these:
        if known[line]:
            known[line] -= 1
        else:
            surplus.append(line)
    return surplus


def _shown(lines: list[str]) -> list[str]:
    if len(lines) <= SHOWN_LINES:
        return lines
    return [*lines[:SHOWN_LINES], f"... and {len(lines) - SHOWN_LINES} more"]


def _block_lines(entries: list[HostEntry]) -> list[str]:
    lines = []
    for entry in entries:
        lines.append(f"{entry.address} {' '.join(entry.names)}")
        if entry.long_names:
            lines.append(f"{entry.address} {' '.join(entry.long_names)}")
    return lines


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _clean(line: str, unwanted: Callable[[str, bool], bool]) -> str | None:
    """The line without unwanted names: itself when it has none, None when no name is left."""
    data, sign, comment = line.partition("#")
    words = data.split()
    address = parse_address(words[0]) if words else None
    if address is None:
        return line
    left = [name for name in words[1:] if not unwanted(name.lower(), address.is_loopback)]
    if len(left) == len(words) - 1:
        return line
    if not left:
        return None
    return " ".join([words[0], *left]) + (f" {sign}{comment}" if sign else "")


class _ClusterNames:
    """Which names and addresses belong to the cluster, as sets: each line of a file costs the same on any cluster."""

    def __init__(self, entries: list[HostEntry]) -> None:
        self.names = frozenset(name for entry in entries for name in entry.all_names)
        self.short = frozenset(name.partition(".")[0] for name in self.names)
        self.addresses = frozenset(parse_address(entry.address) for entry in entries)

    def claims_address(self, line: str) -> bool:
        """Whether the line gives a name to an address of the cluster."""
        return read_line(line).address in self.addresses

    def owns(self, name: str, loopback: bool) -> bool:
        """Whether the name belongs to a node; under a foreign domain only an alias or a loopback name does."""
        if name in self.names:
            return True
        return name.partition(".")[0] in self.short and (loopback or is_managed_alias(name))


def _without_block(lines: list[str], begin: str, end: str) -> tuple[list[str], int | None]:
    """The lines outside the block, and the index among them where the block stood (None: there was none).

    A begin without an end (a file that was cut off, or edited) loses only the marker line, never what follows it.
    """
    outside: list[str] = []
    inside: list[str] | None = None
    place: int | None = None
    for line in lines:
        if line.strip() == begin:
            outside += inside or []
            inside = []
            place = len(outside) if place is None else place
        elif line.strip() == end:
            inside = None
        else:
            (outside if inside is None else inside).append(line)
    return outside + (inside or []), place
