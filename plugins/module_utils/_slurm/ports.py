# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Try to reach TCP ports, many at once."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

AT_ONCE = 64

Target = tuple[str, int]


def _error(target: Target, timeout: float) -> str | None:
    try:
        with socket.create_connection(target, timeout=timeout):
            return None
    except socket.timeout:
        return "no answer"
    except OSError as error:
        return (error.strerror or str(error)).lower()


def reach(targets: Iterable[Target], timeout: float) -> dict[Target, str | None]:
    """None for each target that took a connection, else why it did not."""
    wanted = list(dict.fromkeys(targets))
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return dict(zip(wanted, pool.map(lambda target: _error(target, timeout), wanted)))
