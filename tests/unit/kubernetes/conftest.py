"""Environments of programs whose requirements do not go with ours; without them their tests are left out."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest


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
