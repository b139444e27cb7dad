"""Dependency confusion: Neuron's packages come from Neuron's index, whatever somebody publishes elsewhere."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
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


def test_pip_knows_no_binding_and_the_role_says_so() -> None:
    text = "{{ __neuron_venv_unbound }}"
    assert evaluated(text, neuron_venv_installer="pip") is True
    assert evaluated(text) is False
    for given in ("neuron_venv_index_url", "neuron_venv_lock_file"):
        assert evaluated(text, neuron_venv_installer="pip", **{given: "/mirror"}) is False


def publish(index: Path, name: str, version: str) -> None:
    """A package without anything in it, in a simple index (PEP 503)."""
    folder, info = index / name, f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(folder / file, "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    links = "".join(f'<a href="{found.name}">{found.name}</a>' for found in sorted(folder.glob("*.whl")))
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>", encoding="utf-8")


@pytest.mark.parametrize("bound", [True, False])
def test_uv_takes_no_higher_version_from_elsewhere(tmp_path: Path, bound: bool) -> None:
    """uv itself with the role's words: the binding is what keeps a false torch-neuronx out, and nothing else does."""
    neuron, others, environment = tmp_path / "neuron", tmp_path / "others", tmp_path / "environment"
    publish(neuron, "torch-neuronx", "2.9.0.2.15")
    publish(others, "torch-neuronx", "99.0")
    publish(others, "optimum-neuron", "0.4")
    venv.create(environment)
    (environment / "bin/uv").symlink_to(Path(sys.executable).with_name("uv"))
    given = {
        "neuron_venv_path": str(environment),
        "__neuron_venv_requirements": ["torch-neuronx", "optimum-neuron"],
        "__neuron_venv_neuron_names": ["torch-neuronx"],
        "__neuron_venv_neuron_index": neuron.as_uri() if bound else "",
        "__neuron_venv_index_file": str(tmp_path / "index.txt"),
    }
    (tmp_path / "index.txt").write_text(f"--index-url {others.as_uri()}\n--extra-index-url {neuron.as_uri()}\n")
    (tmp_path / "index").mkdir()
    (tmp_path / "index/pyproject.toml").write_text(evaluated("{{ __neuron_venv_bound_text }}", **given))
    command = evaluated("{{ __neuron_venv_uv + __neuron_venv_what }}", **given)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    installed = {path.name for path in environment.glob("lib/python*/site-packages/*.dist-info")}
    wanted = "torch_neuronx-2.9.0.2.15.dist-info" if bound else "torch_neuronx-99.0.dist-info"
    assert installed == {wanted, "optimum_neuron-0.4.dist-info"}
