"""Which files of the collection are opened meanwhile, by whatever process: inotify over folders."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from pathlib import Path

IN_OPEN, IN_ISDIR, IN_NONBLOCK = 0x20, 0x40000000, os.O_NONBLOCK
FOLDERS = ("plugins", "roles", "playbooks", "tests")
_EVENT = struct.Struct("iIII")
_CACHED = re.compile(r"__pycache__/([^/.]+)\.[^/]*\.pyc(?:\.\d+)?$")


class Opened:
    """What has been opened since it was asked last, as paths from the root; of a cached Python file, its source."""

    def __init__(self, root: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._watch = libc.inotify_init1(IN_NONBLOCK)
        self._names: dict[int, str] = {}
        for folder in FOLDERS:
            for place in {source.parent for source in (root / folder).rglob("*.py")}:
                # Where the first test had it made, those after it would read there unseen.
                (place / "__pycache__").mkdir(exist_ok=True)
            for path in (root / folder, *(one for one in (root / folder).rglob("*") if one.is_dir())):
                number = libc.inotify_add_watch(self._watch, os.fsencode(path), IN_OPEN)
                self._names[number] = str(path.relative_to(root))

    def since(self) -> set[str]:
        found: set[str] = set()
        while True:
            try:
                data = os.read(self._watch, 1 << 20)
            except BlockingIOError:
                return found
            offset = 0
            while offset < len(data):
                number, mask, _cookie, length = _EVENT.unpack_from(data, offset)
                name = data[offset + _EVENT.size : offset + _EVENT.size + length].rstrip(b"\0").decode()
                offset += _EVENT.size + length
                if name and not mask & IN_ISDIR:
                    found.add(_CACHED.sub(r"\1.py", f"{self._names.get(number, '')}/{name}"))
