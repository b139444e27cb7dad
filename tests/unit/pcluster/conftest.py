"""What holds for all tests of ParallelCluster's modules."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import waiting
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import run_stack

from tests.unit.passing_time import Clock


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Nothing is waited for in earnest, and a busy machine does not count."""
    made = Clock()
    made.governs(monkeypatch, waiting, run_stack)
    return made
