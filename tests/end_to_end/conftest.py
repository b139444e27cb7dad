"""The real playbooks, run as a user runs them, against a running sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox_driver import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox that was started afresh; it is stopped at the end."""
    Sandbox.command("down")
    running = Sandbox()
    yield running
    Sandbox.command("down")
