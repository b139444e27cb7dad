# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""BERT pretraining with masked language modelling and next sentence prediction, data-parallel under torchrun.

Runs on XLA devices where torch_xla can be imported, and on CPUs with gloo otherwise. The first process logs every
step in the line format of the Neuron BERT tutorial and writes a checkpoint at the end.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import torch
import torch.distributed as dist
from transformers import BertConfig, BertForPreTraining

IGNORED = -100  # label of a token that is not masked


class CpuBackend:
    """Processes on CPUs: gloo, and DistributedDataParallel for the gradients."""

    def __init__(self) -> None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        dist.init_process_group("gloo")
        self.device = torch.device("cpu")

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        return torch.nn.parallel.DistributedDataParallel(model)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        optimizer.step()

    def save(self, state: dict, path: Path) -> None:
        if dist.get_rank() == 0:
            torch.save(state, path)


class XlaBackend:
    """Processes on NeuronCores: the xla process group, gradients reduced by the optimizer step."""

    def __init__(self) -> None:
        import torch_xla.core.xla_model as xm
        import torch_xla.distributed.xla_backend  # noqa: F401  # registers the process group

        dist.init_process_group("xla")
        self.xm = xm
        self.device = xm.xla_device()

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        return model

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.xm.optimizer_step(optimizer)
        self.xm.mark_step()

    def save(self, state: dict, path: Path) -> None:
        self.xm.save(state, path)


def load_examples(folder: Path) -> dict[str, np.ndarray]:
    """All shards of a folder, joined. Raises SystemExit where there are none."""
    files = sorted(folder.glob("*.hdf5"))
    if not files:
        raise SystemExit(f"{folder} holds no HDF5 shards: make them first, for example with bert_prepare.py.")
    parts: dict[str, list[np.ndarray]] = {}
    for path in files:
        with h5py.File(path) as file:
            for name in file:
                parts.setdefault(name, []).append(file[name][:])
    return {name: np.concatenate(values) for name, values in parts.items()}


def batches(
    examples: dict[str, np.ndarray], batch_size: int, seed: int
) -> Iterator[tuple[int, dict[str, torch.Tensor]]]:
    """(epoch, batch) without end. Every process has the same order and takes its own part of it."""
    rank, world = dist.get_rank(), dist.get_world_size()
    count = len(examples["input_ids"])
    if count < batch_size * world:
        raise SystemExit(f"The dataset has {count} examples, one step needs {batch_size * world}: use more text.")
    epoch = 0
    while True:
        order = np.random.default_rng(seed + epoch).permutation(count)[rank::world]
        for start in range(0, len(order) - batch_size + 1, batch_size):
            yield epoch, make_batch(examples, order[start : start + batch_size])
        epoch += 1


def make_batch(examples: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, torch.Tensor]:
    """Arguments of the model for these examples; a padded prediction has id 0 and is no label."""
    ids = torch.from_numpy(examples["input_ids"][rows]).long()
    labels = torch.full_like(ids, IGNORED)
    places = torch.from_numpy(examples["masked_lm_positions"][rows]).long()
    wanted = torch.from_numpy(examples["masked_lm_ids"][rows]).long()
    row, column = torch.nonzero(wanted, as_tuple=True)
    labels[row, places[row, column]] = wanted[row, column]
    return {
        "input_ids": ids,
        "attention_mask": torch.from_numpy(examples["input_mask"][rows]).long(),
        "token_type_ids": torch.from_numpy(examples["segment_ids"][rows]).long(),
        "labels": labels,
        "next_sentence_label": torch.from_numpy(examples["next_sentence_labels"][rows]).long(),
    }


def make_model(options: argparse.Namespace, examples: dict[str, np.ndarray]) -> BertForPreTraining:
    """A BERT of the asked size, with the same weights in every process."""
    torch.manual_seed(options.seed)
    vocabulary = options.vocabulary_size or int(examples["input_ids"].max()) + 1
    config = BertConfig(
        # A multiple of 8 fits the matrix units.
        vocab_size=-(-vocabulary // 8) * 8,
        hidden_size=options.hidden_size,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        intermediate_size=4 * options.hidden_size,
        max_position_embeddings=max(512, examples["input_ids"].shape[1]),
    )
    return BertForPreTraining(config)


def train(options: argparse.Namespace) -> None:
    backend = XlaBackend() if importlib.util.find_spec("torch_xla") else CpuBackend()
    rank, world = dist.get_rank(), dist.get_world_size()
    examples = load_examples(options.data_dir)
    model = backend.wrap(make_model(options, examples).to(backend.device))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / options.warmup_steps))
    if rank == 0:
        print(f"training: {world} processes on {backend.device}, {len(examples['input_ids'])} examples", flush=True)
    source = batches(examples, options.batch_size, options.seed)
    times: deque[float] = deque([time.monotonic()], maxlen=11)
    for step in range(1, options.steps_this_run + 1):
        optimizer.zero_grad()
        total = torch.zeros(1, device=backend.device)
        for _micro_step in range(options.grad_accum_usteps):
            epoch, batch = next(source)
            output = model(**{name: value.to(backend.device) for name, value in batch.items()})
            loss = output.loss / options.grad_accum_usteps
            loss.backward()
            total += loss.detach()
        rate = schedule.get_last_lr()[0]
        backend.step(optimizer)
        schedule.step()
        dist.all_reduce(total)
        times.append(time.monotonic())
        if rank == 0:
            done = options.batch_size * options.grad_accum_usteps * world * (len(times) - 1)
            log_step(epoch, step, total.item() / world, rate, done / (times[-1] - times[0]))
    save(options, backend, model, optimizer)
    dist.destroy_process_group()


def log_step(epoch: int, step: int, loss: float, rate: float, throughput: float) -> None:
    """One line in the format that tools for the tutorial's log know; throughput in examples a second."""
    now = time.strftime("%a %b %d %H:%M:%S %Y")
    values = f"step_loss : {loss:.4f} learning_rate : {rate:.2e} throughput : {throughput:.2f}"
    print(f"LOG {now} - ({epoch}, {step}) {values}", flush=True)


def save(
    options: argparse.Namespace,
    backend: CpuBackend | XlaBackend,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Write the checkpoint under another name first, so that only whole ones bear the right one."""
    options.output_dir.mkdir(parents=True, exist_ok=True)
    path = options.output_dir / f"ckpt_{options.steps_this_run}.pt"
    inner = getattr(model, "module", model)
    state = {"model": inner.state_dict(), "optimizer": optimizer.state_dict(), "step": options.steps_this_run}
    part = path.with_suffix(".part")
    backend.save(state, part)
    if dist.get_rank() == 0:
        part.rename(path)
        (options.output_dir / "config.json").write_text(
            json.dumps(inner.config.to_dict(), default=str), encoding="utf-8"
        )
        print(f"training: checkpoint {path}", flush=True)
    dist.barrier()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="BERT pretraining under torchrun.")
    parser.add_argument("--data_dir", type=Path, required=True, help="folder with the HDF5 shards")
    parser.add_argument("--output_dir", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument("--steps_this_run", type=int, default=100)
    parser.add_argument("--batch_size", type=int, default=8, help="examples a process and micro-step")
    parser.add_argument("--grad_accum_usteps", type=int, default=1, help="micro-steps a step")
    parser.add_argument("--lr", type=float, default=4e-4)
    parser.add_argument("--warmup_steps", type=int, default=20)
    parser.add_argument("--hidden_size", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--vocabulary_size", type=int, default=0, help="default: the largest token id of the data")
    parser.add_argument("--seed", type=int, default=12345)
    return parser.parse_args()


if __name__ == "__main__":
    train(parse_arguments())
