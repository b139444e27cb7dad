"""cfn-signal of the sandbox takes the words that ParallelCluster gives it, in either order."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

HANDLE = "http://aws.example/wait-conditions/1234?stack"
SERVICE = ["--region", "us-west-2", "--url", "https://cloudformation.us-west-2.amazonaws.com"]


@pytest.fixture
def cfn(cookbook: Callable[[str], ModuleType]) -> ModuleType:
    return cookbook("cfn")


@pytest.mark.parametrize(
    "words",
    [
        ["--exit-code=1", "--reason=Update failed", *SERVICE, HANDLE],
        ["--exit-code=1", "--reason=Update failed", HANDLE, *SERVICE],
    ],
)
def test_the_handle_is_found_before_and_after_the_service(cfn: ModuleType, words: list[str]) -> None:
    known = cfn.parse_signal(words)
    assert (known.handle, known.exit_code, known.reason) == (HANDLE, 1, "Update failed")
