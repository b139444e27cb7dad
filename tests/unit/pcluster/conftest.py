"""What holds for all tests of ParallelCluster's modules."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import waiting
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import run_stack


class Clock:
    """A time that only pauses take."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Nothing is waited for in earnest, and a busy machine does not count."""
    made = Clock()
    looks = partial(waiting.looks, clock=lambda: made.now, sleep=made.sleep)
    for module in (waiting, run_stack):
        monkeypatch.setattr(module, "looks", looks)
    return made
