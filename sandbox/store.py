"""What is expensive to make and the same for all checkouts of a machine, in the user's cache folder.

An entry is a folder whose name has a digest of its recipe. The packages of the distribution and of PyPI that go into it
change without that, so that no entry becomes older than `DAYS`.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

DAYS = 30


def root() -> Path:
    """The folder (XDG Base Directory Specification), outside of any checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainium-sandbox"


def entry(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder ``KIND/KEY``, which ``make`` fills where there is none; two who want it wait for each other.

    What is made goes to another name first: an entry is whole.
    """
    folder = root() / kind
    folder.mkdir(parents=True, exist_ok=True)
    wanted, unfinished = folder / f"{key}-{platform.machine()}", folder / "unfinished"
    with (folder / "lock").open("w") as lock:
        _wait_for(lock, kind)
        _forget(folder)
        if not wanted.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(wanted)
    return wanted


def _wait_for(lock: IO[str], kind: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"sandbox: another sandbox of this machine makes its {kind}, which this one waits for", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def _forget(folder: Path) -> None:
    """Delete entries that are too old: the oldest packages of a distribution are not its safest."""
    oldest = time.time() - DAYS * 24 * 3600
    for one in folder.iterdir():
        if one.is_dir() and one.stat().st_mtime < oldest:
            shutil.rmtree(one)


def link(source: Path, target: Path) -> None:
    """Put the files of an entry's folder into a checkout: links where that is one file system, else copies."""
    target.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        place = target / file.name
        place.unlink(missing_ok=True)
        try:
            place.hardlink_to(file)
        except OSError:
            shutil.copyfile(file, place)
