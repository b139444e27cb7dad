"""Where the role neuron_venv lets the installers look for PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[4] / "roles" / "neuron_venv"


def arguments(installer: str, **given: Any) -> list[str]:
    """The installer's command, of the role's variables and those that a user gives."""
    variables = {}
    for file in ("defaults/main.yml", "vars/main.yml"):
        variables.update(yaml.safe_load((ROLE / file).read_text()))
    trusted = {name: trust_as_template(value) if isinstance(value, str) else value for name, value in variables.items()}
    templar = Templar(loader=DataLoader(), variables={**trusted, "__neuron_venv_requirements": [], **given})
    found: list[str] = templar.template(trust_as_template("{{ __neuron_venv_" + installer + " }}"))
    return found


def test_pytorch_comes_without_cuda() -> None:
    assert "--torch-backend=cpu" in arguments("uv")
    assert "--extra-index-url=https://download.pytorch.org/whl/cpu" in arguments("pip")
    assert "--extra-index-url https://pip.repos.neuron.amazonaws.com" in arguments("index")


@pytest.mark.parametrize(
    "given",
    [
        {"neuron_venv_torch_builds": "default"},
        {"neuron_venv_index_url": "http://mirror/simple/"},
        {"neuron_venv_lock_file": "/requirements.lock"},
    ],
)
def test_an_index_or_a_lock_file_of_ones_own_tells_it(given: dict[str, str]) -> None:
    # A lock file has the hashes of one build, and a mirror may be all that can be reached.
    for installer in ("uv", "pip"):
        assert not [argument for argument in arguments(installer, **given) if "cpu" in argument]
