"""An API server in memory, and environments of programs whose requirements do not go with ours.

Without these their tests are left out.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.calls import Api

from tests.contract.kubernetes.api import Cluster


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """One in which whoever asks may do all, and where nothing is waited for."""
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    made = Cluster(tmp_path)
    made.namespaces.add("trainium")
    made.admin = True
    yield made
    made.stop()


@pytest.fixture
def api(cluster: Cluster) -> Api:
    return Api(str(cluster.kubeconfig), None, "trainium")


def _python(variable: str, module: str) -> Path:
    """The interpreter that ``variable`` names, or ours where it has the module."""
    named = os.environ.get(variable)
    if named:
        return Path(named)
    if importlib.util.find_spec(module):
        return Path(sys.executable)
    pytest.skip(f"{module} is not installed; make kubernetes-manifests has it")


@pytest.fixture
def validator() -> Path:
    return _python("TRAINIUM_VALIDATE_PYTHON", "kubernetes_validate")


@pytest.fixture
def torchx() -> Path:
    return _python("TRAINIUM_TORCHX_PYTHON", "torchx")
