"""The stand-in of ParallelCluster's cookbook, which is no package of this project but a folder of the nodes' image."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from sandbox.parallelcluster import ROOTFS


@pytest.fixture
def cookbook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module of the cookbook, and forgets all of them afterwards."""
    monkeypatch.syspath_prepend(str(Path(ROOTFS) / "usr/local/lib/sandbox"))
    yield lambda name: importlib.import_module(f"cookbook.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "cookbook"]:
        del sys.modules[name]
