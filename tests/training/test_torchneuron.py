"""The training script with TorchNeuron, as far as it can be told without hardware: a stand-in notes the calls."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.training.conftest import SCRIPTS, Train, free_port

STANDINS = Path(__file__).with_name("standins")
# Sums of floats in another order; the log has four digits.
NOISE = 2e-3
CODE = """\
import torch, bert_backend

class Model(torch.nn.Linear):
    def forward(self, given):
        return super().forward(given)

shared, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
other.weight = shared.weight
bert_backend.move(torch.nn.ModuleList([shared, other]), torch.device("meta"))
assert other.weight is shared.weight and other.weight.device.type == "meta"
if bert_backend.is_native():
    backend = bert_backend.make_backend()
    model = backend.place(Model(2, 2))
    model(**backend.send({"given": torch.ones(3, 2)})).sum().backward()
    torch.distributed.destroy_process_group()
"""


def installed(folder: Path, version: str) -> dict[str, str]:
    """The variables that make a torch-neuronx of this version be found."""
    record = folder / f"torch_neuronx-{version}.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch-neuronx\nVersion: {version}\n")
    return {"PYTHONPATH": f"{STANDINS}:{folder}", "TRAINIUM_TEST_CALLS": str(folder / "calls")}


def test_learns_what_it_does_on_cpus(train: Train, tmp_path: Path) -> None:
    """Two processes on the device "neuron"."""
    reference = train(tmp_path / "gloo", "--steps_this_run=4", processes=2)
    variables = installed(tmp_path / "site", "2.14.3.0.17+3c2a")
    run = train(tmp_path / "neuron", "--steps_this_run=4", processes=2, as_command=True, **variables)
    assert run.code == 0, run.text
    assert "training: 2 processes on neuron, " in run.text
    assert run.losses == pytest.approx(reference.losses, abs=NOISE)
    assert len(run.losses) == 4
    noted = Counter(Path(variables["TRAINIUM_TEST_CALLS"]).read_text(encoding="utf-8").splitlines())
    for rank in range(2):
        assert noted[f"{rank} group {rank} of 2"] == 1
        assert noted[f"{rank} seed"] >= 4
        # Of each step the tokens, their kinds and labels, and once the embeddings of the places.
        assert (noted[f"{rank} to (8, 32)"], noted[f"{rank} to (512, 32)"]) == (3 * 4, 1)
    assert not [call for call in noted if call.endswith("compile")]


@pytest.mark.parametrize(
    ("version", "calls"),
    [
        ("2.9.0.2.13.26312+0c9a", []),
        ("2.14.3.0.17", ["0 group 0 of 1", "0 to (2, 2)", "0 to (2,)", "0 to (3, 2)", "0 compile"]),
    ],
)
def test_by_version_compiled_and_with_its_weights_shared(
    python: Path, tmp_path: Path, version: str, calls: list[str]
) -> None:
    """2.9 and older are over PyTorch/XLA. A move to a device of another kind makes two weights of a shared one."""
    variables = installed(tmp_path, version)
    place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    path = f"{SCRIPTS}:{variables['PYTHONPATH']}"
    environment = {**os.environ, **variables, **place, "PYTHONPATH": path, "TRAINIUM_TORCH_COMPILE": "1"}
    subprocess.run([python, "-c", CODE], env={**environment, "GLOO_SOCKET_IFNAME": "lo"}, check=True)
    noted = tmp_path / "calls"
    assert (noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []) == calls
