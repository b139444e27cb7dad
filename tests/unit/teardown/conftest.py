"""EC2 for the tests of this folder."""

from __future__ import annotations

import pytest

from tests.unit.teardown.account import Ec2


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Ec2:
    # Nothing waits here.
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return Ec2()
