"""TorchNeuron for machines without NeuronCores: nothing of the real package is in it, and nothing here is hardware.

It brings what Neuron's documentation of SDK 2.33 says that ``import torch_neuronx`` brings: the device, the process
group and the compiler named ``neuron``. Tensors "on the device" are on the CPU, collectives are gloo's, and nothing is
compiled. What was asked for is noted in the file that TRAINIUM_TEST_CALLS names.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch._dynamo import register_backend

_moved = torch.Tensor.to


def _note(text: str) -> None:
    with Path(os.environ["TRAINIUM_TEST_CALLS"]).open("a", encoding="utf-8") as file:
        file.write(f"{os.environ['RANK']} {text}\n")


def _to(tensor: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
    if given and isinstance(given[0], torch.device) and given[0].type == "neuron":
        _note(f"to {tuple(tensor.shape)}")
        return tensor.clone()
    return _moved(tensor, *given, **named)


def _group(store: Any, rank: int, size: int, timeout: Any) -> Any:
    _note(f"group {rank} of {size}")
    return dist.ProcessGroupGloo(store, rank, size, timeout)


@register_backend(name="neuron")
def _compile(graph: torch.fx.GraphModule, _inputs: list[Any]) -> Any:
    _note("compile")
    return graph.forward


torch.utils.rename_privateuse1_backend("neuron")
# Asked for by a barrier; a real device registers itself in C++.
torch._C._get_accelerator = lambda: torch.device("cpu")
torch._register_device_module(
    "neuron",
    SimpleNamespace(
        is_available=lambda: False, _is_in_bad_fork=lambda: False, manual_seed_all=lambda _seed: _note("seed")
    ),
)
torch.Tensor.to = _to
dist.Backend.register_backend("neuron", _group, devices=["cpu"])
