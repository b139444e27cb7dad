"""Whose claims still hold."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import LEASE_SECONDS, is_dead


@pytest.mark.parametrize(
    ("host", "unchanged", "started", "dead"),
    [
        ("here", 0.0, "7", False),
        # However long it says nothing: its process is there.
        ("here", 10 * LEASE_SECONDS, "7", False),
        ("here", 0.0, "", True),
        # Another process got its number.
        ("here", 0.0, "8", True),
        # A process of my host with the same number says nothing of another host's.
        ("elsewhere", 0.0, "", False),
        ("elsewhere", LEASE_SECONDS - 1, "", False),
        ("elsewhere", LEASE_SECONDS, "7", True),
    ],
)
def test_dead_holders(host: str, unchanged: float, started: str, dead: bool) -> None:
    assert is_dead({"host": host, "pid": 1, "started": "7"}, unchanged, "here", started) is dead


def test_a_claim_that_says_nothing_dies_with_its_lease() -> None:
    assert not is_dead({}, 0.0, "here", "")
    assert is_dead({}, LEASE_SECONDS, "here", "")
