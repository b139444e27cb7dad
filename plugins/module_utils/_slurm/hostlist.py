# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Slurm hostlists: ``node[1-3,7]`` to names and back. Pure.

The syntax is that of slurm.conf(5) and ``scontrol show hostnames``: names separated by commas, each with any number
of bracketed sets of numbers and ranges. A range keeps the width of its lower bound: ``n[08-10]`` is n08, n09, n10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

# Slurm's own limit on one expression (MAX_RANGE); a slip such as n[1-100000000] must not eat the memory.
MAX_HOSTS = 65536

# The last run of digits before the first dot, as in ip-10-0-0-7.us-west-2.compute.internal.
_NAME = re.compile(r"(?P<prefix>[^.]*?)(?P<number>[0-9]{1,18})(?P<suffix>[^0-9.]*(?:\..*)?)", re.DOTALL)
_RANGE = re.compile(r"(?P<low>[0-9]{1,18})(?:-(?P<high>[0-9]{1,18}))?")
_FORBIDDEN = re.compile(r"[\[\],\s]")


class HostlistError(ValueError):
    """The text is not a hostlist, or a name cannot be part of one; the message is one sentence."""


class _Name(NamedTuple):
    """A host name cut at its last number; ``value`` is -1 and ``digits`` empty where it has none. Sorts naturally."""

    prefix: str
    suffix: str
    value: int
    digits: str

    @property
    def text(self) -> str:
        return f"{self.prefix}{self.digits}{self.suffix}"


def _cut(name: str) -> _Name:
    match = _NAME.fullmatch(name)
    if match is None:
        return _Name(name, "", -1, "")
    return _Name(match["prefix"], match["suffix"], int(match["number"]), match["number"])


def sort_hosts(names: Iterable[str]) -> list[str]:
    """The unique names in natural order: by prefix and suffix, then by number (n2 before n10)."""
    return [name.text for name in sorted({_cut(name) for name in names})]


def compress(names: Iterable[str]) -> str:
    """Names as one hostlist, unique and in the order of sort_hosts; no names give ''.

    Raises HostlistError for a name that is empty or holds a bracket, a comma or white space.
    """
    cut: list[_Name] = []
    for name in set(names):
        if not name or _FORBIDDEN.search(name):
            raise HostlistError(f"{name!r} cannot be in a hostlist: it is empty or holds a bracket, a comma or a space")
        cut.append(_cut(name))
    families: dict[tuple[str, str], list[_Name]] = {}
    for item in sorted(cut):
        families.setdefault((item.prefix, item.suffix), []).append(item)
    return ",".join(_family(members) for members in families.values())


def _family(members: list[_Name]) -> str:
    """One expression for names that differ in their number only."""
    # A name without a number sorts first in its family and stays as it is.
    plain = [member.text for member in members if not member.digits]
    numbered = [member for member in members if member.digits]
    if not numbered:
        return ",".join(plain)
    runs: list[tuple[str, str]] = []
    value = -1
    for member in numbered:
        # The next name belongs to the run if expanding the run would spell it the same way.
        if runs and member.value == value + 1 and str(member.value).zfill(len(runs[-1][0])) == member.digits:
            runs[-1] = (runs[-1][0], member.digits)
        else:
            runs.append((member.digits, member.digits))
        value = member.value
    ranges = [low if low == high else f"{low}-{high}" for low, high in runs]
    inner = ranges[0] if len(numbered) == 1 else f"[{','.join(ranges)}]"
    return ",".join([*plain, f"{numbered[0].prefix}{inner}{numbered[0].suffix}"])


def expand(hostlist: str) -> list[str]:
    """The names of a hostlist, in its order, repetitions kept as Slurm keeps them; '' gives [].

    Raises HostlistError for unbalanced brackets, bad or reversed ranges, empty parts, and more than MAX_HOSTS names.
    """
    if not hostlist.strip():
        return []
    names: list[str] = []
    for part in _split(hostlist):
        names.extend(_expand_part(part, hostlist, MAX_HOSTS - len(names)))
    return names


def _split(hostlist: str) -> list[str]:
    """Cut at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(hostlist):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(hostlist[start:position].strip())
            start = position + 1
        if depth not in (0, 1):
            raise HostlistError(f"the brackets of hostlist {hostlist!r} do not match at character {position + 1}")
    if depth:
        raise HostlistError(f"hostlist {hostlist!r} lacks a closing bracket")
    parts.append(hostlist[start:].strip())
    return parts


def _expand_part(part: str, hostlist: str, room: int) -> list[str]:
    if not part or re.search(r"\s", part):
        raise HostlistError(f"hostlist {hostlist!r} has an empty name or a space in one; separate names by one comma")
    # With one group, re.split gives text at even places and the inside of brackets at odd ones.
    pieces = re.split(r"\[([^\]]*)\]", part)
    choices: list[list[str]] = []
    total = 1
    for place, piece in enumerate(pieces):
        choice = _numbers(piece, hostlist, room) if place % 2 else [piece]
        total *= len(choice)
        if total > room:
            raise HostlistError(f"hostlist {hostlist!r} names more than {MAX_HOSTS} hosts")
        choices.append(choice)
    return ["".join(chosen) for chosen in product(*choices)]


def _numbers(inside: str, hostlist: str, room: int) -> list[str]:
    """'08-10,12' -> ['08', '09', '10', '12']."""
    numbers: list[str] = []
    for item in inside.split(","):
        match = _RANGE.fullmatch(item.strip())
        if match is None:
            raise HostlistError(f"hostlist {hostlist!r} holds [{inside}], which is not a list of numbers and ranges")
        low, high = match["low"], match["high"] or match["low"]
        if int(high) < int(low):
            raise HostlistError(f"hostlist {hostlist!r} holds the range {low}-{high}, which runs backwards")
        if int(high) - int(low) + len(numbers) >= room:
            raise HostlistError(f"hostlist {hostlist!r} names more than {MAX_HOSTS} hosts")
        numbers.extend(str(number).zfill(len(low)) for number in range(int(low), int(high) + 1))
    return numbers
