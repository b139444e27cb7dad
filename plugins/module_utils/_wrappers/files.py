# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Small files that this host keeps: records as JSON, and the ends of logs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def read_record(path: str | Path) -> dict[str, Any] | None:
    """The dictionary in a JSON file; None where there is none that can be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def tail(path: str, size: int) -> str:
    """The last ``size`` bytes of a file as text. Raises OSError, and ValueError for what is no path."""
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read().decode("utf-8", "replace")
