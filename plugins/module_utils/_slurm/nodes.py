# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Nodes as sinfo(1) shows them, and which of them a cluster still waits for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

USABLE = frozenset({"idle", "allocated", "mixed", "completing", "planned", "reserved"})
BUSY = frozenset({"allocated", "mixed", "completing"})
_DRAINED = frozenset({"drained", "draining", "drain"})
# Sinfo shows these before a drain, and whatever runs there: it registered with less than slurm.conf says, or fails.
_FAULTY = frozenset({"inval", "fail", "failing", "error"})
# What sinfo appends to a state; a star means that the node does not answer.
_MARKS = "~#!%$@^-+*"
# Powered off, on its way up or down, or to be booted again.
_ASLEEP = frozenset("~#!%@^")
# The reason is the last, so that it can hold the separator.
SINFO_FORMAT = "%N|%T|%u|%f|%E"
NAMED = 5


@dataclass(frozen=True)
class SlurmNode:
    """A node with its state in the long form (``%T``), and why and by whom it was taken out of service."""

    state: str
    reason: str = "none"
    user: str = ""
    features: frozenset[str] = frozenset()

    @property
    def _base(self) -> str:
        return self.state.rstrip(_MARKS)

    @property
    def usable(self) -> bool:
        return self._base in USABLE and "*" not in self.state

    @property
    def drained(self) -> bool:
        return self._base in _DRAINED

    @property
    def busy(self) -> bool:
        return self._base in BUSY

    @property
    def out(self) -> bool:
        """Whether it is out of service until somebody does something about it."""
        return self.drained or self._base == "down" or self._base in _FAULTY

    @property
    def by_somebody(self) -> bool:
        """Whether it has a reason that is not Slurm's."""
        return self.reason not in ("", "none") and self.user not in ("", "slurm")

    @property
    def kept_out(self) -> bool:
        """Whether it stays out of service by itself; Slurm sets one down, or up, as it answers."""
        return self.out and (self._base != "down" or self.by_somebody)

    @property
    def comes_with_jobs(self) -> bool:
        """Whether it is there only while it is needed: ParallelCluster gives every node one of two features."""
        return "dynamic" in self.features

    @property
    def takes_jobs(self) -> bool:
        """Whether a job that it is given now runs. A node that is always there must be up for that: while Slurm has one
        that sleeps, ParallelCluster takes it down to replace it, and the job with it."""
        return self.usable and (self.comes_with_jobs or not _ASLEEP & set(self.state))

    @property
    def awaited(self) -> bool:
        """Whether it is to be there and is not. Somebody who drains a node means it; Slurm's own drain is a fault."""
        held = self.drained and self.user != "slurm"
        return not (self.takes_jobs or self.comes_with_jobs or held)


def parse_sinfo(text: str) -> dict[str, SlurmNode]:
    """``sinfo --Node --noheader --format=...``; a node in several partitions has several equal lines."""
    found: dict[str, SlurmNode] = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.strip().split("|", SINFO_FORMAT.count("|"))]
        if len(parts) == 5:
            name, state, user, features, reason = parts
            # sinfo(1): the name, and the number of the user in brackets in some releases.
            found[name] = SlurmNode(state, reason, user.partition("(")[0], frozenset(features.split(",")))
    return found


def nodes_of_partition(lines: Iterable[str], partition: str) -> dict[str, SlurmNode]:
    """Of lines with the partition (``%P``) before the rest, the nodes among which a job's are: Slurm takes all in one.

    Without a ``partition`` that is the default one, which sinfo(1) marks by a star; of several the one with most nodes.
    """
    found: dict[str, list[str]] = {}
    for line in lines:
        name, sign, rest = line.strip().partition("|")
        if sign and (name.rstrip("*") in partition.split(",") if partition else name.endswith("*")):
            found.setdefault(name, []).append(rest)
    most = sorted(found.values(), key=len)[-1:]
    return parse_sinfo("\n".join("\n".join(lines) for lines in most))


def described(name: str, node: SlurmNode) -> str:
    """``ip-192-0-2-10 (down*, Not responding)``."""
    return f"{name} ({', '.join(part for part in (node.state, node.reason) if part not in ('', 'none'))})"


def readiness(nodes: Mapping[str, SlurmNode]) -> str:
    """``3 of 4 nodes take jobs, waiting for ip-192-0-2-10 (down*, Not responding)``."""
    if not nodes:
        return "no node is known to Slurm"
    awaited = [described(name, node) for name, node in nodes.items() if node.awaited]
    text = f"{sum(node.takes_jobs for node in nodes.values())} of {len(nodes)} nodes take jobs"
    if awaited:
        more = f" and {len(awaited) - NAMED} more" if len(awaited) > NAMED else ""
        text += f", waiting for {', '.join(awaited[:NAMED])}{more}"
    return text
