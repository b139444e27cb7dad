# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the holder of a claim still lives. Pure functions.

A claim is a file with a name that is never used again, in a folder that hosts may share. It says who made it, and its
maker touches it now and then. It holds while it is the only claim of a living holder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# A holder touches its claim this often, and one that did not for LEASE_SECONDS is dead. The clients of shared file
# systems may show an old time for up to a minute.
TOUCH_SECONDS = 5.0
LEASE_SECONDS = 90.0


class Seen(NamedTuple):
    """A claim as somebody else sees it.

    ``holder`` is what it says: ``host`` (which kernel and process namespace), ``pid``, ``started`` (the process' start
    time) and ``name`` (of the host). ``unchanged`` is how many seconds, by the watcher's own clock, it was not touched.
    """

    holder: Mapping[str, Any]
    unchanged: float


def is_dead(seen: Seen, my_host: str, started: str) -> bool:
    """Whether the holder of a claim can not come back.

    Args:
        my_host: the host of the watcher, as in ``holder``.
        started: start time of the process that has the holder's pid here now, '' for none. It only counts on my host.
    """
    if seen.holder.get("host") == my_host:
        return not started or started != str(seen.holder.get("started"))
    return seen.unchanged >= LEASE_SECONDS
