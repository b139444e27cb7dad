# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which members of the archives of a source may be unpacked, and where. Pure; it knows nothing of tar and zip.

A member may only name what lies below the folder of its archive. A symbolic link may climb only at the start of its
target, where the folders above it are no links, and what follows leads through links that are inside themselves; so no
chain leads out. That holds for all archives of a source together, since one guard admits the members of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import HIDDEN, human, space_problem

KINDS = ("file", "directory", "symlink", "hardlink")
# Files and folders of a source; each is kept in memory, with some 300 bytes.
MOST_PATHS = 5_000_000
# As Linux has them (limits.h), in bytes. Deeper folders than this are in no dataset, and each may be an open file.
LONGEST_PATH = 4095
LONGEST_NAME = 255
MOST_FOLDERS = 100
# What a file takes at least on common file systems, in bytes; of links and empty files it is their inode.
BLOCK = 4096
INODE = 512


class Member(NamedTuple):
    """One member: ``name`` and ``target`` of a link as the archive has them, ``kind`` of KINDS or 'other', bytes."""

    name: str
    kind: str
    size: int
    mode: int
    target: str = ""


class UnsafeMemberError(ValueError):
    """A member that would leave the folder, or is none that a dataset needs; the text is the sentence for the user."""


class Known(NamedTuple):
    """What lies at a path: its kind, the archive it is of, and what must be the same in another archive."""

    kind: str
    archive: str
    content: str


def inside(name: str) -> str:
    """The normal form of a member's name; '' is the folder itself. Raises UnsafeMemberError.

    >>> inside("./a//b/")
    'a/b'
    """
    if "\0" in name or name.startswith("/"):
        raise UnsafeMemberError(f"the member {_short(name)} has an absolute path")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UnsafeMemberError(f"the member {_short(name)} leads out of the folder")
    path = "/".join(parts)
    if _length(path) > LONGEST_PATH or len(parts) > MOST_FOLDERS or any(_length(part) > LONGEST_NAME for part in parts):
        raise UnsafeMemberError(f"the member {_short(name)} has a longer name than file systems take")
    return path


def below(archive: str, path: str) -> str:
    """Where the path of a member lies below the destination.

    >>> below("sub/a.tar", "x"), below("a.tar", "x")
    ('sub/x', 'x')
    """
    folder = archive.rpartition("/")[0]
    return inside(f"{folder}/{path}") if folder else path


def _length(name: str) -> int:
    try:
        return len(name.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise UnsafeMemberError(f"the member {_short(name)} has a name that no file can have") from None


def _short(name: str) -> str:
    return repr(name if len(name) <= 200 else f"{name[:200]}...")


def _check_symlink(path: str, target: str) -> None:
    if not target or "\0" in target or target.startswith("/") or len(target) > LONGEST_PATH:
        raise UnsafeMemberError(f"the link {path!r} has the target {_short(target)}, which is no relative path")
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = 0
    while climbs < len(parts) and parts[climbs] == "..":
        climbs += 1
    if ".." in parts[climbs:] or climbs > path.count("/"):
        raise UnsafeMemberError(f"the link {path!r} leads out of the folder, to {target!r}")


class Guard:
    """Admits the members of all archives of a source; what it has admitted decides over what comes later."""

    def __init__(self, most: int = 0) -> None:
        """``most``: files and folders that the file system can take, 0 where it does not say."""
        self._known: dict[str, Known] = {}
        # Hard links and what they are to, with their archives.
        self._linked: set[tuple[str, str]] = set()
        self._most = most

    def plain(self, path: str, size: int, archive: bool) -> None:
        """A file of the source, before any member: it is put in place itself, or is an ``archive`` for its folder."""
        self._folders(path, "")
        if not archive:
            self._note(path, Known("file", "", str(size)))

    def admit(self, member: Member, archive: str = "") -> str:
        """The path of the member below the destination, '' for the destination itself. Raises UnsafeMemberError.

        Args:
            archive: path of the archive below the destination; its members go to the folder in which it lies.
        """
        own = inside(member.name)
        if member.kind not in KINDS:
            raise UnsafeMemberError(f"the member {_short(member.name)} is neither file, directory nor link")
        if member.size < 0:
            raise UnsafeMemberError(f"the member {_short(member.name)} has a size below zero")
        path = below(archive, own)
        if not own:
            if member.kind != "directory":
                raise UnsafeMemberError(f"the member {_short(member.name)} has no name")
            return path
        if HIDDEN in path.split("/"):
            raise UnsafeMemberError(f"the member {_short(member.name)} lies in {HIDDEN}, which is for transfers")
        self._folders(path, archive)
        kind, content = member.kind, str(member.size)
        if kind == "symlink":
            _check_symlink(own, member.target)
            content = member.target
        elif kind == "hardlink":
            target = below(archive, inside(member.target))
            found = self._known.get(target)
            if found is None or found.kind != "file":
                raise UnsafeMemberError(f"the hard link {own!r} is to {member.target!r}, which is no file before it")
            kind, content = "file", found.content
            self._linked |= {(archive, path), (archive, target)}
        elif kind == "file" and (archive, path) in self._linked:
            # Links are made when all files are there, so that it would have another content than with tar.
            raise UnsafeMemberError(f"the file {own!r} comes again behind a hard link of it, pack it anew")
        self._note(path, Known(kind, archive, "" if kind == "directory" else content))
        return path

    def _folders(self, path: str, archive: str) -> None:
        parent = path.rpartition("/")[0]
        while parent:
            found = self._known.get(parent)
            if found is None:
                self._note(parent, Known("directory", archive, ""))
            elif found.kind != "directory":
                raise UnsafeMemberError(f"the member {path!r} lies below {parent!r}, which is no directory")
            parent = parent.rpartition("/")[0]

    def _note(self, path: str, new: Known) -> None:
        old = self._known.get(path)
        if old is None:
            if len(self._known) >= MOST_PATHS:
                raise UnsafeMemberError(f"the dataset has more than {MOST_PATHS} files and folders")
            if self._most and len(self._known) >= self._most:
                raise UnsafeMemberError(
                    f"its file system takes no more than {self._most} further files and folders, "
                    "make room or take a larger volume"
                )
        elif old.kind != new.kind:
            raise UnsafeMemberError(f"the member {path!r} is there twice, as {old.kind} and as {new.kind}")
        elif old.archive != new.archive and old.content != new.content:
            raise UnsafeMemberError(f"the member {path!r} is there twice in the source, and not the same")
        self._known[path] = new


class Budget:
    """What all archives of a source may take on the disk, in bytes."""

    def __init__(self, size: int, where: str) -> None:
        """``size`` is free in ``where``, beside what an earlier run has unpacked already."""
        self._left, self._where = size, where

    def take(self, members: Iterable[Member], archive: str) -> str:
        """Set the space of members aside. The sentence for the user where there is too little, else ''."""
        needed = sum(disk_size(member.size if member.kind == "file" else 0) for member in members)
        problem = space_problem(needed, self._left, self._where, f"The content of {archive} ({human(needed)} or more)")
        if not problem:
            self._left -= needed
        return problem


def safe_mode(mode: int) -> int:
    """Permissions for a file: its owner reads and writes, others never write, and no bit but these of rwx.

    >>> oct(safe_mode(0o4777))
    '0o755'
    """
    return (mode & 0o755) | 0o600


def disk_size(size: int) -> int:
    """Bytes that a file of this size takes on the disk.

    >>> disk_size(0), disk_size(1), disk_size(4097)
    (512, 4608, 8704)
    """
    return INODE + -(-size // BLOCK) * BLOCK
