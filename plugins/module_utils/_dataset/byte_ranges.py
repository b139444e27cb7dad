# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which bytes of a file are still to be fetched, and the log from which a later run knows it. Pure functions.

The log is a text file beside the file: its first line says of which version the bytes are (size, ETag, piece, as JSON),
every further one the first byte of a piece that is whole on the disk. Half a line at its end is of no piece.
"""

from __future__ import annotations

import json
from typing import NamedTuple

# Less is not worth a request.
SMALLEST_PIECE = 64 * 1024


class Version(NamedTuple):
    """Which content the bytes are of: ``size`` in bytes, ``tag`` the server's ETag or '', ``piece`` in bytes."""

    size: int
    tag: str
    piece: int


class Log(NamedTuple):
    """A log as it was read; ``version`` is None where there is none, ``done`` holds the first bytes of whole pieces."""

    version: Version | None
    done: frozenset[int]


def piece_size(chunk: int, connections: int) -> int:
    """Bytes that one connection asks for at a time, so that all of them together lose one ``chunk`` when they are cut.

    >>> piece_size(64 * 1024 * 1024, 8)
    8388608
    """
    return max(chunk // max(connections, 1), SMALLEST_PIECE)


def head_line(version: Version) -> str:
    """The first line of a log."""
    return json.dumps([version.size, version.tag, version.piece]) + "\n"


def read_log(text: str) -> Log:
    """What a log says; a log that is none says nothing."""
    lines = text.split("\n")[:-1]
    try:
        size, tag, piece = json.loads(lines[0])
        version = Version(int(size), str(tag), int(piece))
    except (IndexError, TypeError, ValueError):
        return Log(None, frozenset())
    done = frozenset(int(line) for line in lines[1:] if line.isdigit())
    return Log(version, frozenset(start for start in done if start < version.size and start % version.piece == 0))


def same_content(known: Version | None, now: Version) -> bool:
    """Whether bytes of ``known`` are still bytes of ``now``."""
    return known is not None and known.size == now.size and known.tag == now.tag


def missing(version: Version, done: frozenset[int]) -> list[tuple[int, int]]:
    """The pieces that are not done, as (first byte, byte after the last), in order.

    >>> missing(Version(10, "", 4), frozenset({4}))
    [(0, 4), (8, 10)]
    """
    return [
        (start, min(start + version.piece, version.size))
        for start in range(0, version.size, version.piece)
        if start not in done
    ]


def bytes_done(version: Version, done: frozenset[int]) -> int:
    """How many bytes are on the disk.

    >>> bytes_done(Version(10, "", 4), frozenset({4, 8}))
    6
    """
    return version.size - sum(end - start for start, end in missing(version, done))
