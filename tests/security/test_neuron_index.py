"""Dependency confusion: Neuron's packages come from Neuron's index, whatever somebody publishes elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomllib
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[2] / "roles" / "neuron_venv"
NEURON = "https://pip.repos.neuron.amazonaws.com"


def evaluated(text: str, **given: Any) -> Any:
    variables: dict[str, Any] = {}
    for file in ("defaults/main.yml", "vars/main.yml"):
        variables.update(yaml.safe_load((ROLE / file).read_text(encoding="utf-8")))
    variables = {
        name: trust_as_template(value) if isinstance(value, str) else value for name, value in variables.items()
    }
    asked = ["torch-neuronx==2.9.0.2.15", "neuronx-cc==2.26", "Neuronx_Distributed>=0.15", "optimum-neuron", "h5py"]
    variables.update(__neuron_venv_requirements=asked, neuron_venv_sdk_version="2.29.1")
    return Templar(loader=DataLoader(), variables={**variables, **given}).template(trust_as_template(text))


def test_names_are_bound_to_their_index() -> None:
    project = tomllib.loads(evaluated("{{ __neuron_venv_bound_text }}"))
    bound = ["torch-neuronx", "neuronx-cc", "neuronx-distributed", "libneuronxla"]
    assert project["project"]["dependencies"] == bound
    assert project["tool"]["uv"]["sources"] == {name: {"index": "neuron"} for name in bound}
    assert project["tool"]["uv"]["index"] == [{"name": "neuron", "url": NEURON, "explicit": True}]
    assert [word for word in evaluated("{{ __neuron_venv_uv }}") if word.endswith("/pyproject.toml")]


def test_all_names_of_a_release_are_bound() -> None:
    """What "Release Content" of Neuron's manual has of Python packages for SDK 2.28 to 2.31, as users write them."""
    asked = ["jax_neuronx[stable]", "libneuronxla", "neuron_agentic_development", "neuronx-cc-stubs==2.24.*", "nki"]
    asked += ["tensorboard-plugin-neuronx", "neuronx_distributed_inference", "neuronx_distributed_training"]
    project = tomllib.loads(evaluated("{{ __neuron_venv_bound_text }}", __neuron_venv_requirements=asked))
    assert len(project["tool"]["uv"]["sources"]) == len(asked)


@pytest.mark.parametrize(
    "given",
    [
        {"neuron_venv_index_url": "https://mirror.example.com/simple"},
        {"neuron_venv_lock_file": "/requirements.lock"},
        {"neuron_venv_extra_index_urls": ["https://pip.repos.neuron.amazonaws.com.example.com"]},
    ],
)
def test_one_index_or_hashes_need_no_binding(given: dict[str, Any]) -> None:
    assert evaluated("{{ __neuron_venv_bound }}", **given) == []
    assert not [word for word in evaluated("{{ __neuron_venv_uv }}", **given) if word.endswith("/pyproject.toml")]
