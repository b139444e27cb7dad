"""The API of FSx for the tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def api() -> Iterator[Any]:
    # Not above: which tests import a source is told by files of tests, see tests/mutants.
    from tests.unit.fsx.stubbed import answering

    with answering() as api:
        yield api
