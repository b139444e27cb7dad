# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which members of an archive may be unpacked, and where. Pure functions; they know nothing of tar and zip.

A member may only name what lies below the folder. A symbolic link may climb only at the start of its target, where the
folders above it are no links, and what follows leads through links that are inside themselves; so no chain leads out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

KINDS = ("file", "directory", "symlink", "hardlink")


class Member(NamedTuple):
    """One member: ``name`` and ``target`` of a link as the archive has them, ``kind`` of KINDS or 'other', bytes."""

    name: str
    kind: str
    size: int
    mode: int
    target: str = ""


class UnsafeMemberError(ValueError):
    """A member that would leave the folder, or is none that a dataset needs; the text is the sentence for the user."""


def inside(name: str) -> str:
    """The normal form of a member's name; '' is the folder itself. Raises UnsafeMemberError.

    >>> inside("./a//b/")
    'a/b'
    """
    if "\0" in name or name.startswith("/"):
        raise UnsafeMemberError(f"the member {name!r} has an absolute path")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UnsafeMemberError(f"the member {name!r} leads out of the folder")
    return "/".join(parts)


def _check_symlink(path: str, target: str) -> None:
    if not target or "\0" in target or target.startswith("/"):
        raise UnsafeMemberError(f"the link {path!r} has the target {target!r}, which is no relative path")
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = 0
    while climbs < len(parts) and parts[climbs] == "..":
        climbs += 1
    if ".." in parts[climbs:] or climbs > path.count("/"):
        raise UnsafeMemberError(f"the link {path!r} leads out of the folder, to {target!r}")


class Guard:
    """Admits the members of one archive in their order; what it has admitted decides over what comes later."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}

    def admit(self, member: Member) -> str:
        """The path of the member below the folder, '' for the folder itself. Raises UnsafeMemberError."""
        path = inside(member.name)
        if member.kind not in KINDS:
            raise UnsafeMemberError(f"the member {member.name!r} is neither file, directory nor link")
        if not path:
            if member.kind != "directory":
                raise UnsafeMemberError(f"the member {member.name!r} has no name")
            return path
        parent = path.rpartition("/")[0]
        while parent:
            if self._kinds.setdefault(parent, "directory") != "directory":
                raise UnsafeMemberError(f"the member {path!r} lies below {parent!r}, which is no directory")
            parent = parent.rpartition("/")[0]
        if member.kind == "symlink":
            _check_symlink(path, member.target)
        if member.kind == "hardlink" and self._kinds.get(inside(member.target)) != "file":
            raise UnsafeMemberError(f"the hard link {path!r} is to {member.target!r}, which is no file before it")
        kind = "file" if member.kind == "hardlink" else member.kind
        if self._kinds.setdefault(path, kind) != kind:
            raise UnsafeMemberError(f"the member {path!r} is there twice, as {self._kinds[path]} and as {kind}")
        return path


def safe_mode(mode: int) -> int:
    """Permissions for a file: its owner reads and writes, others never write, and no bit but these of rwx.

    >>> oct(safe_mode(0o4777))
    '0o755'
    """
    return (mode & 0o755) | 0o600


def total_size(members: Iterable[Member]) -> int:
    """Bytes that the files take on the disk."""
    return sum(member.size for member in members if member.kind == "file")
