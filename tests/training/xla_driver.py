"""Runs the training script on PJRT's CPU device, and writes after every step what was compiled and executed.

    xla_driver.py DEVICES bert_pretrain.py ARGUMENTS...

DEVICES is 1, 2 or "gloo" for the other backend. PJRT's CPU client offers several devices to the threads of one process
only, so with 2 each thread is what is a process on NeuronCores: what processes say to each other over gloo goes from
thread to thread then, collectives of the device are those of torch_xla. Nothing is dropped out, since chance on the two
kinds of device differs, unless TRAINIUM_TEST_DROPOUT says otherwise.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

COUNTERS = {"CompileTime": "graphs", "ExecuteTime": "executions"}


def counted() -> dict[str, int]:
    """What torch_xla has compiled and executed since the process began."""
    from torch_xla.debug import metrics

    return {short: (metrics.metric_data(name) or [0])[0] for name, short in COUNTERS.items()}


def prepare(script: Any, data: Any, devices: str) -> None:
    """Let the script do without dropout, mix examples with and without padding, and say what each step has cost."""
    config, do_step, make_batch = script.BertConfig, script.Trainer.do_step, data.make_batch
    # Step -> the number of updates that the optimizer believes to have made, for its corrections of the bias.
    updates = json.loads(os.environ.get("TRAINIUM_TEST_UPDATES", "{}"))

    def without_dropout(**given: Any) -> Any:
        share = float(os.environ.get("TRAINIUM_TEST_DROPOUT", "0"))
        return config(**given, hidden_dropout_prob=share, attention_probs_dropout_prob=share)

    def mixed(examples: Any, rows: Any) -> Any:
        batch = make_batch(examples, rows)
        if rows[0] % 2:
            batch["attention_mask"].fill_(1)
        return batch

    def counting(trainer: Any, steps: Any) -> Any:
        total = do_step(trainer, steps)
        for group in trainer.optimizer.inner.param_groups:
            group["step"] = updates.get(str(trainer.step), group["step"])
        if devices != "gloo" and trainer.rank == 0:
            trainer.backend.xm.wait_device_ops()
            found = counted()
            script.say(f"COUNT step={trainer.step} graphs={found['graphs']} executions={found['executions']}")
        return total

    script.BertConfig, script.Trainer.do_step, data.make_batch = without_dropout, counting, mixed


class Threads:
    """In the place of torch.distributed: the threads of one process, each with a device."""

    def __init__(self, count: int) -> None:
        import torch.distributed
        import torch_xla.core.xla_model as xm
        import torch_xla.runtime as xr

        self.ReduceOp, self.xm, self.xr, self.count = torch.distributed.ReduceOp, xm, xr, count
        self.meeting, self.values = threading.Barrier(count), [None] * count

    def init_process_group(self, backend: str) -> None:
        """There is nothing to look for."""

    def destroy_process_group(self) -> None:
        """Nor anything to leave."""

    def new_group(self, backend: str) -> str:
        return backend

    def get_rank(self) -> int:
        rank: int = self.xr.global_ordinal()
        return rank

    def get_world_size(self) -> int:
        return self.count

    def all_gather_object(self, found: list[Any], value: Any, group: str) -> None:
        self.values[self.get_rank()] = value
        self.meeting.wait()
        found[:] = self.values
        self.meeting.wait()

    def all_reduce(self, tensor: Any, op: Any = None, group: str = "") -> None:
        """As the process group of gloo does it, or that of XLA (torch_xla/distributed/xla_backend.py)."""
        if group != "gloo":
            self.xm.all_reduce("sum", [tensor], pin_layout=False)
            return
        found: list[Any] = []
        self.all_gather_object(found, tensor.clone(), group)
        tensor.fill_(max(value.item() for value in found))

    def barrier(self, group: str = "") -> None:
        """That of XLA's process group does nothing."""
        if group == "gloo":
            self.meeting.wait()


def run_in_threads(script: Any, modules: list[Any], count: int) -> None:
    """Run the script's main function in as many threads as there are devices."""
    import torch_xla.core.xla_model as xm
    from torch_xla._internal import pjrt

    threads = Threads(count)
    for module in modules:
        module.dist = threads
    script.signal.signal = lambda *_given: None  # only the main thread may
    make_model, mark, seeded = script.make_model, xm.mark_step, threading.Lock()
    launched = [threading.Semaphore(0) for _rank in range(count)]

    def make_alone(*given: Any) -> Any:
        with seeded:  # one generator of random numbers for all threads
            return make_model(*given)

    def mark_in_turn(*given: Any, **named: Any) -> None:
        """Devices meet in a collective only if they run the same compiled graph: the first one compiles it."""
        rank = threads.get_rank()
        if rank:
            launched[rank].acquire()
        mark(*given, **named)
        if rank + 1 < count:
            launched[rank + 1].release()

    script.make_model, xm.mark_step = make_alone, mark_in_turn

    def work() -> None:
        try:
            code = script.main()
        except BaseException:
            traceback.print_exc()
            code = 1
        if code:
            # The others would wait for it for ever.
            os._exit(code)

    pjrt._run_thread_per_device(0, 1, work, functools.partial(pjrt.initialize_multiprocess))


def main() -> int:
    devices, path = sys.argv[1], Path(sys.argv[2])
    sys.argv[:2] = []
    sys.path.insert(0, str(path.parent))
    if devices not in ("1", "gloo"):
        os.environ["CPU_NUM_DEVICES"] = devices
    names = ("pretrain", "backend", "checkpoint", "data")
    modules: list[Any] = [importlib.import_module(f"bert_{name}") for name in names]
    script, backend, checkpoint, data = modules
    prepare(script, data, devices)
    if devices == "gloo":
        script.make_backend = backend.CpuBackend
    if devices in ("1", "gloo"):
        code: int = script.main()
        return code
    run_in_threads(script, [script, backend, checkpoint], int(devices))
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Threads of PJRT may still run at the end of the process.
    os._exit(code)
