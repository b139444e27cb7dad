# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What differs between processes on CPUs and on NeuronCores, and how the processes of one job talk.

Words between processes, such as "stop now", go over gloo in both cases: on an XLA device each would be a graph to
compile.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from typing import Any

import torch
import torch.distributed as dist


def say(text: str) -> None:
    """A line for the log; nothing where its reader is gone, ended by the same signal as the job."""
    try:
        print(text, flush=True)
    except OSError:
        # Or Python would fail over what it could not write, at its end.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the process ends


class CpuBackend:
    """Processes on CPUs: gloo, and DistributedDataParallel for the gradients."""

    def __init__(self) -> None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        dist.init_process_group("gloo")
        self.control = dist.group.WORLD
        self.device = torch.device("cpu")

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        return torch.nn.parallel.DistributedDataParallel(model)

    def seed(self, value: int) -> None:
        """Let all chance from here on follow from ``value``."""
        torch.manual_seed(value)

    def accumulate(self, model: torch.nn.Module, last: bool) -> contextlib.AbstractContextManager[None]:
        """Around a micro-step; only the last one of a step exchanges gradients."""
        return contextlib.nullcontext() if last else model.no_sync()

    def reduce_gradients(self, model: torch.nn.Module) -> None:
        """DistributedDataParallel did it in the backward pass of the last micro-step."""

    def mark(self) -> None:
        """Nothing is put off on a CPU."""


class XlaBackend:
    """Processes on NeuronCores: the xla process group, gradients averaged before the optimizer's step."""

    def __init__(self) -> None:
        import torch_xla.core.xla_model as xm
        import torch_xla.distributed.xla_backend  # noqa: F401  # registers the process group

        dist.init_process_group("xla")
        self.control = dist.new_group(backend="gloo")
        self.xm = xm
        self.device = xm.xla_device()

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        return model

    def seed(self, value: int) -> None:
        """The seed is an input of the graph, so another value needs no compilation."""
        torch.manual_seed(value)
        self.xm.set_rng_state(value, str(self.device))

    def accumulate(self, model: torch.nn.Module, last: bool) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def reduce_gradients(self, model: torch.nn.Module) -> None:
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        self.xm.all_reduce("sum", gradients, scale=1.0 / dist.get_world_size())

    def mark(self) -> None:
        """Run what was put off until now as one graph."""
        self.xm.mark_step()


def make_backend() -> Any:
    """XLA where torch_xla is installed, CPUs otherwise."""
    return XlaBackend() if importlib.util.find_spec("torch_xla") else CpuBackend()
