# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the kernel says is mounted -> whether it is what a unit asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mounted:
    """One line of /proc/self/mountinfo. ``root`` is the directory of the file system that is shown."""

    device: str
    root: str
    fstype: str
    source: str


def parse_mountinfo(text: str) -> dict[str, Mounted]:
    """What is on top at every mount point."""
    found: dict[str, Mounted] = {}
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        if separator and len(fields) >= 6 and len(tail) >= 2:
            found[_plain(fields[4])] = Mounted(fields[2], _plain(fields[3]), tail[0], _plain(tail[1]))
    return found


def is_sound(there: Mounted, source: str, fstype: str, same_directory: bool) -> bool:
    """Whether a mount is the wanted one; ``same_directory`` says that a bind mount shows its source."""
    if fstype == "none":
        return same_directory
    if fstype.startswith("nfs"):
        return there.fstype in ("nfs", "nfs4") and there.source.rstrip("/") == source.rstrip("/")
    if fstype == "lustre":
        # The kernel shows the server's address in place of its name.
        return there.fstype == "lustre" and there.source.partition(":/")[2] == source.partition(":/")[2]
    return there.fstype == fstype and there.source == source


def _plain(text: str) -> str:
    """A path without the octal escapes of the kernel."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)
