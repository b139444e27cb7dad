# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What differs between processes on CPUs and on NeuronCores, and how the processes of one job talk.

Words between processes, such as "stop now", go over gloo in all cases: on NeuronCores each would be compiled.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.metadata
import importlib.util
import os
import socket
import sys
from typing import Any

import torch
import torch.distributed as dist

NEURON_DEVICES = "/dev/neuron[0-9]*"


def say(text: str) -> None:
    """A line for the log; nothing where its reader is gone, ended by the same signal as the job."""
    try:
        print(text, flush=True)
    except OSError:
        # Or Python would fail over what it could not write, at its end.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the process ends


class CpuBackend:
    """Processes on CPUs: gloo, and DistributedDataParallel for the gradients."""

    lag = 0  # how many steps later a loss is asked for

    def __init__(self) -> None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        self.begin()
        # DistributedDataParallel averages; wanted is the sum.
        self.factor = dist.get_world_size()

    def begin(self) -> None:
        """Find the other processes, and the device."""
        dist.init_process_group("gloo")
        self.control = dist.group.WORLD
        self.device = torch.device("cpu")

    def place(self, model: torch.nn.Module) -> torch.nn.Module:
        return torch.nn.parallel.DistributedDataParallel(model.train())

    def send(self, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The same on the device."""
        return values

    def seed(self, value: int) -> None:
        """Let all chance from here on follow from ``value``."""
        torch.manual_seed(value)

    def accumulate(self, model: torch.nn.Module, last: bool) -> contextlib.AbstractContextManager[None]:
        """Around a micro-step; only the last one of a step exchanges gradients."""
        return contextlib.nullcontext() if last else model.no_sync()

    def reduce(self, gradients: list[torch.Tensor], total: torch.Tensor) -> None:
        """Sum up the loss; DistributedDataParallel did it for the gradients in the last micro-step."""
        dist.all_reduce(total)

    def mark(self) -> None:
        """Nothing is put off."""


class NeuronBackend(CpuBackend):
    """Processes on NeuronCores of trn2 and trn3 with TorchNeuron: PyTorch's own kind of device, and DDP as on CPUs.

    Names are those of Neuron's documentation of SDK 2.33 ("How to use torch.distributed on Neuron", "torch.compile on
    Neuron"): the device ``neuron``, of which each process has one, the process group ``neuron``, and the compiler
    ``neuron``. Random numbers follow from torch.manual_seed, which seeds all devices.
    """

    # A step is put into the device's queue; asking for its loss would wait for all of it.
    lag = 1

    def begin(self) -> None:
        import torch_neuronx  # noqa: F401  # registers device and process group

        dist.init_process_group("neuron")
        self.control = dist.new_group(backend="gloo")
        self.device = torch.device("neuron")

    def place(self, model: torch.nn.Module) -> torch.nn.Module:
        """Without compilation each operation runs by itself, and a change of the script costs none."""
        move(model, self.device)
        if os.environ.get("TRAINIUM_TORCH_COMPILE", "0") not in ("", "0"):
            model.compile(backend="neuron")
        return super().place(model)

    def send(self, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: value.to(self.device) for name, value in values.items()}


class XlaBackend:
    """Processes on NeuronCores: the xla process group, gradients summed before the optimizer's step.

    What runs on the device between two marks is one graph, which is compiled when it is first met. Two things make
    another graph of it, and stay out of the step: a value that the host asks for, and a number of exactly 0 or 1 in a
    tensor without dimensions, which becomes a constant (torch_xla/csrc/tensor.cpp, GetIrValueForTensor).
    """

    # The host traces the next step while the device computes this one.
    lag = 1
    factor = 1

    def __init__(self) -> None:
        import torch_xla.core.xla_model as xm
        import torch_xla.distributed.xla_backend  # noqa: F401  # registers the process group
        import torch_xla.runtime as xr

        dist.init_process_group("xla")
        self.control = dist.new_group(backend="gloo")
        self.xm = xm
        self.device = xm.xla_device()
        # Every process would train alone, on its part of the examples.
        if xr.world_size() != dist.get_world_size():
            raise SystemExit(
                f"torch_xla sees {xr.world_size()} devices in all, torchrun has started {dist.get_world_size()} "
                f"processes on device type {xr.device_type()}: install torch-neuronx in this environment, and start "
                "as many processes as there are NeuronCores for them."
            )
        # The name and the number are those of torch_xla 2.9 (core/xla_model.py, _internal/neuron.py).
        self.bucket = int(os.environ.get("ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB") or "50")

    def place(self, model: torch.nn.Module) -> torch.nn.Module:
        move(model, self.device)
        return model.train()

    def send(self, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """All in one transfer."""
        sent: dict[str, torch.Tensor] = self.xm.send_cpu_data_to_device(values, self.device)
        return sent

    def seed(self, value: int) -> None:
        """The seed is an input of the graph, so another value needs no compilation."""
        torch.manual_seed(value)
        self.xm.set_rng_state(value, str(self.device))

    def accumulate(self, model: torch.nn.Module, last: bool) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def reduce(self, gradients: list[torch.Tensor], total: torch.Tensor) -> None:
        """Sum up loss and gradients, last layers first, in buckets.

        All with pinned layout: a graph that has collectives with and without it is refused, and torch.distributed's
        have none.
        """
        tensors = [total, *reversed(gradients)]
        if self.bucket:
            self.xm.all_reduce_bucketized_gradients(tensors, 1.0, None, True, bucket_cap_mb=self.bucket)
        else:
            self.xm.all_reduce("sum", tensors)

    def mark(self) -> None:
        """Run what was put off until now as one graph."""
        self.xm.mark_step()


def move(model: torch.nn.Module, device: torch.device) -> None:
    """Move a model to a device.

    The move makes two weights of one that two modules share, where the devices' tensors are of different kinds. They
    are made one again here: tie_weights() of transformers would compute with them, which is another graph for XLA.
    """
    places: dict[int, list[tuple[dict[str, Any], str]]] = {}
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False, remove_duplicate=False):
            places.setdefault(id(weight), []).append((module._parameters, name))
    model.to(device)
    for (first, name), *others in places.values():
        for owner, also in others:
            owner[also] = first[name]


def is_native() -> bool:
    """Whether torch-neuronx is TorchNeuron: 2.9 was the last one over PyTorch/XLA."""
    try:
        major, minor = importlib.metadata.version("torch-neuronx").split(".")[:2]
    except importlib.metadata.PackageNotFoundError:
        return False
    return (int(major), int(minor)) > (2, 9)


def make_backend() -> Any:
    """TorchNeuron or XLA where one is installed, else CPUs. Raises SystemExit where these would be used for nothing."""
    if is_native() and os.environ.get("PJRT_DEVICE") != "CPU":
        return NeuronBackend()
    if importlib.util.find_spec("torch_xla"):
        return XlaBackend()
    if glob.glob(NEURON_DEVICES) and os.environ.get("PJRT_DEVICE") != "CPU":
        raise SystemExit(
            f"{socket.gethostname()} has Neuron devices, but the environment in {sys.prefix} has neither torch_xla nor "
            "TorchNeuron: install torch-neuronx there, or set PJRT_DEVICE=CPU to train on the CPU."
        )
    return CpuBackend()
