# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Times as Slurm takes them (sbatch(1), --time), and as a reader does. Pure."""

from __future__ import annotations

import re

_TIME = re.compile(
    r"(?P<days>[0-9]+)-(?P<day_hours>[0-9]+)(?::(?P<day_minutes>[0-9]+))?(?::(?P<day_seconds>[0-9]+))?"
    r"|(?P<hours>[0-9]+):(?P<hour_minutes>[0-9]+):(?P<hour_seconds>[0-9]+)"
    r"|(?P<minutes>[0-9]+)(?::(?P<seconds>[0-9]+))?"
)


def is_unlimited(text: str) -> bool:
    """Whether a time limit is none."""
    return text.upper() in ("UNLIMITED", "INFINITE")


def seconds_of(text: str) -> int | None:
    """'90' (minutes), '2:30' (with seconds), '1:00:00', '2-12', '1-2:30:00' as seconds; None for anything else."""
    match = _TIME.fullmatch(text)
    if not match:
        return None
    part = {name: int(value or 0) for name, value in match.groupdict().items()}
    hours = part["days"] * 24 + part["day_hours"] + part["hours"]
    minutes = hours * 60 + part["day_minutes"] + part["hour_minutes"] + part["minutes"]
    return minutes * 60 + part["day_seconds"] + part["hour_seconds"] + part["seconds"]


def duration(seconds: float | None) -> str:
    """``4 d 3 h``, ``3 h 12 min``, ``3 min 18 s`` or ``18 s``; '' for none."""
    if seconds is None:
        return ""
    whole = int(min(seconds, 1e12))
    for size, name, part, part_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // part} {part_name}"
    return f"{whole} s"
