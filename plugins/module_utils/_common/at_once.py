# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Several calls at the same time, as each is mostly waiting, and no more of them in a second than AWS takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# A client of botocore keeps ten connections.
AT_ONCE = 8


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """What each gives, in their order. Of those that fail, the first one's error is raised, when all have ended."""
    if len(works) < 2:
        return [work() for work in works]
    with ThreadPoolExecutor(min(len(works), AT_ONCE)) as pool:
        futures = [pool.submit(work) for work in works]
    return [future.result() for future in futures]


class Bucket:
    """Lets ``size`` calls begin at any time and all further ones at ``rate`` a second: a token bucket as AWS has."""

    def __init__(
        self,
        size: int,
        rate: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._burst, self._pause = size / rate, 1 / rate
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        # When the bucket is full again.
        self._full = clock()

    def take(self) -> None:
        """Wait until there is a token, and take it."""
        with self._lock:
            now = self._clock()
            self._full = max(self._full, now) + self._pause
            wait = self._full - now - self._burst
        if wait > 0:
            self._sleep(wait)
