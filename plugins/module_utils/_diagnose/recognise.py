# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Faults that are recognised by what they leave in logs. Pure.

A log is told by its source: ``<node>:<path or command>``, or the name of a stream of ParallelCluster's log group,
``<host>.<instance id>.<log>``; any other text is a source without a node. Recognition looks for plain pieces of text,
so its time is linear in the lines, whatever they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._diagnose import faults as fault_table
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.faults import Fault
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.masks import masked
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import hostlist

# No known message begins later in its line.
LINE_LIMIT = 4000
SHOWN_LIMIT = 300
# More names than the nodes of a cluster are not written out.
NAMES_LIMIT = 5000
# A host name that resolvers take; with a longer one the name of the rendezvous cannot be looked up.
LONGEST_NAME = 63

_HEADER = re.compile(r"==> ([^<>]{1,300}) <==")
_LAST_WORD = re.compile(r"[^\s\"'&,;]*\Z")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")
_STREAM = re.compile(r"([^.:/\s]{1,64})\.i-[0-9a-f]{1,32}\.")
_SLURM_NAME = re.compile(
    r"(?<![a-z0-9-])[a-z][a-z0-9-]{0,40}-(?:st|dy)-[a-z][a-z0-9-]{0,40}-(?:\d{1,6}|\[[0-9,-]{1,100}\])"
)
_AFTER_NODE = re.compile(r"\b[Nn]odes? ([A-Za-z][A-Za-z0-9.-]{0,64}(?:\[[0-9,-]{1,100}\])?)")
_COMM_ID = re.compile(r"NCCL_COMM_ID \[([^\]]{1,300})\]", re.IGNORECASE)


class _Sighting(NamedTuple):
    """A line that shows a fault."""

    time: str
    source: str
    line: str


class _Found:
    """What was seen of one fault, ``first`` before all else."""

    def __init__(self, first: _Sighting) -> None:
        self.newest = first
        self.nodes: dict[str, None] = {}
        self.count = 0

    def add(self, sighting: _Sighting, nodes: Iterable[str]) -> None:
        self.count += 1
        self.nodes.update(dict.fromkeys(nodes))
        # Of the same time, the one that is read later.
        if sighting.time >= self.newest.time:
            self.newest = sighting


def sections(name: str, text: str) -> dict[str, list[str]]:
    """A text cut at its ``==> log <==`` lines, as ``{"name:log": lines}``; what stands before them is its own."""
    found: dict[str, list[str]] = {}
    source = name
    for line in text.splitlines():
        header = _HEADER.fullmatch(line.strip())
        if header:
            source = f"{name}:{header[1]}"
        else:
            found.setdefault(source, []).append(line)
    return found


def known_faults(logs: Mapping[str, Iterable[str]]) -> list[dict[str, Any]]:
    """The faults that the logs show, the nearest to a cause first.

    Each is ``{"fault", "cause", "remedy", "source", "line", "time", "node", "count"}``. ``line`` is the newest that
    shows it, cut and without secrets, ``time`` that line's or ''. ``node`` is a hostlist of all nodes that have it.
    Never raises, whatever the lines hold.
    """
    found: dict[str, _Found] = {}
    for source, lines in logs.items():
        time = ""
        for line in lines:
            line = line[:LINE_LIMIT]
            stamp = _TIME.search(line[:48])
            # A line without a time, as of a traceback, belongs to the one before it.
            time = f"{stamp[1]}T{stamp[2]}" if stamp else time
            for fault in _faults_of(line):
                sighting = _Sighting(time, source, line)
                found.setdefault(fault.name, _Found(sighting)).add(sighting, _nodes(fault, source, line))
    return [_told(fault, found[fault.name]) for fault in fault_table.FAULTS if fault.name in found]


def _faults_of(line: str) -> Iterable[Fault]:
    low = line.lower()
    for fault in fault_table.FAULTS:
        if any(all(piece in low for piece in pieces) for pieces in fault.signs):
            yield _by_length(fault, line)


def _by_length(fault: Fault, line: str) -> Fault:
    """The same words of NCCL stand for a wrong address and for a name that is too long."""
    if fault is not fault_table.COMM_ID_ADDRESS:
        return fault
    address = _COMM_ID.search(line)
    name = address[1].rpartition(":")[0] if address else ""
    return fault_table.COMM_ID_LENGTH if len(name) > LONGEST_NAME else fault


def node_of(source: str) -> str:
    """The node that wrote a log; '' where its source does not say."""
    stream = _STREAM.match(source)
    if stream:
        return stream[1]
    node, colon, _log = source.partition(":")
    return node if colon else ""


def _nodes(fault: Fault, source: str, line: str) -> list[str]:
    """Who has the fault: the nodes that the line names, where it is told of others, else the log's own."""
    named: list[str] = []
    if fault.names_nodes:
        named = _SLURM_NAME.findall(line)
        if not named and source.endswith(":sinfo -R"):
            named = line.split()[-1:]
        if not named:
            named = [name for name in _AFTER_NODE.findall(line) if name[-1].isdigit() or name[-1] == "]"]
    return named or [node for node in [node_of(source)] if node]


def _told(fault: Fault, found: _Found) -> dict[str, Any]:
    newest = found.newest
    return {
        "fault": fault.name,
        "cause": fault.cause,
        "remedy": fault.remedy,
        "source": newest.source,
        "line": _shown(newest.line),
        "time": newest.time,
        "node": _hostlist(found.nodes),
        "count": found.count,
    }


def _shown(line: str) -> str:
    """A line without secrets. The last word of one that was cut may be half of one, which looks like none."""
    whole = _LAST_WORD.sub("", line) if len(line) == LINE_LIMIT else line
    return masked(whole.strip())[:SHOWN_LIMIT]


def _hostlist(texts: Iterable[str]) -> str:
    """Names and hostlists as one hostlist, however odd they are."""
    names: set[str] = set()
    odd: list[str] = []
    room = NAMES_LIMIT
    for text in texts:
        try:
            # A few words of a log may not stand for millions of names.
            expanded = hostlist.expand(text) if room > 0 else [text]
            room -= len(expanded)
            hostlist.compress(expanded[:1])
            names.update(expanded)
        except hostlist.HostlistError:
            odd.append(text)
    try:
        parts = [hostlist.compress(names)] if names else []
    except hostlist.HostlistError:
        parts = sorted(names)
    return ",".join([*parts, *sorted(odd)])
