"""A time that only pauses take: nothing is waited for in earnest, and a busy machine does not count."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import waiting

LOOKS = waiting.looks


class Clock:
    """``now`` is in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def governs(self, patch: pytest.MonkeyPatch, *modules: ModuleType, pace: waiting.Pace | None = None) -> None:
        """What waits in these modules goes by it; with ``pace``, by that where none is given."""

        def looks(timeout: float, given: waiting.Pace | None = None, *_clocks: object) -> Iterator[float]:
            return LOOKS(timeout, given or pace, lambda: self.now, self.sleep)

        for module in modules:
            patch.setattr(module, "looks", looks)
