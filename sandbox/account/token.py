"""The token of the control API: a random word in a file that only the sandbox's user reads."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

HEADER = "X-Sandbox-Token"


def renew(path: Path) -> str:
    """Write a new token in place of an old one."""
    path.unlink(missing_ok=True)
    return make(path)


def make(path: Path) -> str:
    """The token of the file, which is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Never through a link, and never readable by others, not even before the token is in it.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    word = secrets.token_urlsafe(32)
    with os.fdopen(file, "w", encoding="ascii") as text:
        text.write(f"{word}\n")
    return word
