"""What this process has open."""

from __future__ import annotations

import contextlib
import os


def descriptors() -> int:
    """How many, with sockets and pipes."""
    return len(os.listdir("/proc/self/fd"))


def open_paths() -> list[str]:
    """The files and folders.

    Without sockets and pipes: a server that a test runs beside it closes its own when it comes to it.
    """
    found = []
    for number in os.listdir("/proc/self/fd"):
        # The listing's own descriptor is closed by now.
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(path for path in found if path.startswith("/"))
