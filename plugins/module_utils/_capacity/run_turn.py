# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One after the other on this machine: a play of many hosts without run_once runs the same module for each at once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError, one_line


def lock_file(*of: str) -> Path:
    """The same for the same words and user; what other users write in this folder is not followed."""
    digest = hashlib.sha256("/".join(of).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"trainium-{os.getuid()}-{digest}.lock"


@contextmanager
def alone(*of: str) -> Iterator[None]:
    """Wait until no other process of the user is in here for the same words. It ends with the process."""
    path = lock_file(*of)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TrainiumError(f"{path} cannot be locked: {one_line(error)}; remove it, or set TMPDIR") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
