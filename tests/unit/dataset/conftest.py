"""A server and a host for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.dataset.answering import Server
from tests.unit.dataset.host import host

__all__ = ["host", "server"]


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()
