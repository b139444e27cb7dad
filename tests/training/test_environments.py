"""The environments of the tests beside this one, which `make test` makes while hosts are waited for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize(("fixture", "module"), [("python", "torch"), ("xla_python", "torch_xla")])
def test_an_environment_has_its_pytorch(request: pytest.FixtureRequest, fixture: str, module: str) -> None:
    python: Path = request.getfixturevalue(fixture)
    shown = [str(python), "-c", f"import {module}, sys; print({module}.__version__, sys.executable)"]
    version, where = subprocess.run(shown, check=True, capture_output=True, text=True).stdout.split(maxsplit=1)
    assert version.startswith("2.") and where.strip() == str(python)
