# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Small files that this host keeps: records as JSON, the ends of logs, and what is to replace a file in one step."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError


def read_record(path: str | Path) -> dict[str, Any] | None:
    """The dictionary in a JSON file; None where there is none that can be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_record(path: str | Path, record: dict[str, Any]) -> None:
    """A JSON file with that dictionary, in its folder. Raises TrainiumError."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace(path, json.dumps(record, sort_keys=True).encode())
    except OSError as error:
        raise TrainiumError(f"{path} cannot be written ({error.strerror}); look at its disk") from error


def tail(path: str, size: int) -> str:
    """The last ``size`` bytes of a file as text. Raises OSError, and ValueError for what is no path."""
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read().decode("utf-8", "replace")


def replace(path: str | Path, content: bytes, mode: int = 0o644) -> None:
    """Put a file in place in one step, so that nobody reads half of it. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def staged(module: Any, content: bytes) -> str:
    """A file with that content, which only we can read, for ``module.atomic_move``. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    return temporary


def read_text(path: str | Path) -> str:
    """A file's text; empty where it is not there or may not be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def difference(path: str | Path, before: str, after: str) -> dict[str, str]:
    """What changes in a file, for a module's diff mode."""
    return {"before": before, "after": after, "before_header": str(path), "after_header": str(path)}
