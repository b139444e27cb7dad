"""cfn-signal of the sandbox takes the words that ParallelCluster gives it, in either order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from sandbox.parallelcluster import ROOTFS

HANDLE = "http://aws.example/wait-conditions/1234?stack"
SERVICE = ["--region", "us-west-2", "--url", "https://cloudformation.us-west-2.amazonaws.com"]


@pytest.fixture
def cfn(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(Path(ROOTFS) / "usr/local/lib/sandbox"))
    from cookbook import cfn as module

    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == "cookbook"]:
        del sys.modules[name]


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
