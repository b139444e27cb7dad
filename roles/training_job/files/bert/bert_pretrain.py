# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""BERT pretraining with masked language modelling and next sentence prediction, data-parallel under torchrun.

Runs on NeuronCores with TorchNeuron or torch_xla, where one is installed, and on CPUs with gloo otherwise. The first
process logs every step in the line format of the Neuron BERT tutorial.

The environment says what the cluster wants, so that the same command is started again after a requeue:

TRAINIUM_CHECKPOINT_STEPS  a checkpoint every so many steps; 0 for one at the end
TRAINIUM_CHECKPOINT_KEEP   how many are kept
TRAINIUM_RESUME            1 to go on from the newest whole one
TRAINIUM_STOP_AT           seconds since 1970 at which the training must have stopped
TRAINIUM_COMPILE, NEURON_EXTRACT_GRAPHS_ONLY   1 for a compile run, which leaves checkpoints alone

A run that stops before its time ends with code 85. torchrun ends with 1 then, as for every other code, and names it in
a line ``exitcode : 85``. At SIGTERM to any process, as of a node that shuts down, all stop after the step they are at,
with a checkpoint and the same code. A torchrun that is given the signal passes it on, kills what is not gone after 30
seconds (TORCH_ELASTIC_SHUTDOWN_TIMEOUT in newer releases) and names no code.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
import transformers
from bert_backend import make_backend, say
from bert_checkpoint import Nodes, Store, on_cpu
from bert_data import IGNORED, Steps, fingerprint, load_examples
from bert_optimizer import Optimizer, learning_rate
from transformers import BertConfig, BertForPreTraining

STOPPED = 85  # the batch script requeues a job that ends with it
# Arguments that may differ between the runs of one training.
FREE = ("data_dir", "output_dir", "steps_this_run", "batch_size", "grad_accum_usteps")


def number(name: str, default: float) -> float:
    """A number from the environment. Raises SystemExit with one sentence where it is none."""
    text = os.environ.get(name) or str(default)
    try:
        return float(text)
    except ValueError:
        raise SystemExit(f"The environment variable {name} is '{text}'; give a number.") from None


def is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


class Stop:
    """Whether it is time to stop: by the first process's clock, or by a signal to any process."""

    def __init__(self) -> None:
        self.at = number("TRAINIUM_STOP_AT", 0)
        self.signalled = False
        self.steps: deque[float] = deque(maxlen=10)
        self.done = 0
        self.longest_save = 0.0
        self._last = time.monotonic()
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self.signalled = True

    def step_done(self) -> None:
        now = time.monotonic()
        self.done += 1
        if self.done == 2:
            # The first step, with its compilations, says nothing about the others.
            self.steps.clear()
        self.steps.append(now - self._last)
        self._last = now

    def save_done(self) -> None:
        now = time.monotonic()
        self.longest_save = max(self.longest_save, now - self._last)
        self._last = now

    def wanted(self) -> bool:
        """Whether another step and a checkpoint may no longer fit in."""
        # How long the first checkpoint takes is not known; as long as a step, say.
        longest = max(self.steps)
        late = self.at and time.time() + longest + max(longest, self.longest_save) >= self.at
        return self.signalled or bool(late and dist.get_rank() == 0)


class Trainer:
    """A model, its optimizer and its place in the data."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.backend = make_backend()
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.examples = load_examples(options.data_dir)
        self.model = make_model(options, self.examples)
        if options.bf16:
            self.model.to(torch.bfloat16)
        self.wrapped = self.backend.place(self.model)
        self.optimizer = Optimizer(self.model, options.optimizer)
        self.total = torch.zeros(1).to(self.backend.device)
        self.step = 0
        self.batch = options.batch_size * options.grad_accum_usteps * self.world

    def identity(self) -> str:
        """What makes a training this one: its arguments and its data."""
        fixed = {key: str(value) for key, value in vars(self.options).items() if key not in FREE}
        text = json.dumps([fixed, fingerprint(self.examples)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def state(self) -> dict[str, Any]:
        """All that the rest of the training follows from. Chance follows from the seed and the step."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {**on_cpu(state), "step": self.step, "batch": self.batch, "seed": self.options.seed}

    def load(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.batch = state["step"], state["batch"]

    def make_steps(self) -> Steps:
        return Steps(self.examples, self.batch, self.options.batch_size, self.world, self.options.seed)

    def rate(self) -> float:
        options = self.options
        return learning_rate(self.step, options.lr, options.warmup_steps, options.max_steps, options.decay_power)

    def do_step(self, steps: Steps) -> torch.Tensor:
        """One step of the optimizer; its loss, of all processes.

        An XLA device sees two graphs: a micro-step, and the exchange with the optimizer's step.
        """
        labels = torch.tensor([float(steps.labels(self.step))])
        parts = steps.micro_batches(self.step, self.rank)
        for place, (seed, weight, batch) in enumerate(parts):
            self.backend.seed(seed)
            mask = attention(batch.pop("attention_mask"), self.model.dtype)
            sent = {**batch, "attention_mask": mask, "words": labels, "weight": torch.tensor([weight])}
            with self.backend.accumulate(self.wrapped, last=place == len(parts) - 1):
                loss = self.loss(self.backend.send(sent))
                (loss * self.backend.factor).backward()
            self.total += loss.detach()
            self.backend.mark()
        self.backend.reduce(self.optimizer.gradients(), self.total)
        self.optimizer.step(self.rate())
        total = self.total.clone()
        self.total.zero_()
        self.backend.mark()
        self.step += 1
        return total

    def loss(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """These examples' part of the step's loss.

        It is divided by what the whole step has, so the sum is the same however the step is cut into parts.
        """
        wanted, following, count, weight = (
            inputs.pop(name) for name in ("labels", "next_sentence_label", "words", "weight")
        )
        output = self.wrapped(**inputs)
        words, pairs = output.prediction_logits.float(), output.seq_relationship_logits.float()
        entropy = torch.nn.functional.cross_entropy
        masked = entropy(words.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED, reduction="sum")
        return (masked / count + entropy(pairs, following, reduction="sum") / self.batch) * weight


def attention(tokens: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The mask of tokens (1) and padding (0) in the shape that the model takes as it is.

    Of one with two dimensions transformers asks whether there is padding at all: on an XLA device a wait in every
    micro-step, and another graph. Its release 5 takes four dimensions, as what is added to the scores
    (masking_utils.py, _preprocess_mask_arguments), those before three (get_extended_attention_mask).
    """
    if int(transformers.__version__.split(".")[0]) < 5:
        return tokens[:, None, :]
    return (1 - tokens[:, None, None, :]).to(dtype) * torch.finfo(dtype).min


def make_model(options: argparse.Namespace, examples: dict[str, Any]) -> BertForPreTraining:
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


def resume(trainer: Trainer, nodes: Nodes) -> None:
    """Go on from the newest whole checkpoint, if there is one and it is wanted."""
    step = nodes.newest() if is_set("TRAINIUM_RESUME") else 0
    # One that has run to its end is not what a new job is for, unless it was lost in its last second. All decide alike,
    # though a pod counts by itself.
    again = nodes.any(number("SLURM_RESTART_COUNT", 0) > 0)
    ended = step >= trainer.options.steps_this_run and not again
    if not step or ended:
        if ended and trainer.rank == 0:
            say(f"training: the run that ended at step {step} is left aside, this one begins anew")
        nodes.set_aside()
        return
    trainer.load(nodes.store.read(step))
    if trainer.rank == 0:
        say(f"training: resumed from step {step}")


def train(trainer: Trainer) -> int:
    """Train to the last step, or until it is time to stop. The exit code."""
    options = trainer.options
    compiling = is_set("TRAINIUM_COMPILE") or is_set("NEURON_EXTRACT_GRAPHS_ONLY")
    keep, every = int(number("TRAINIUM_CHECKPOINT_KEEP", 3)), int(number("TRAINIUM_CHECKPOINT_STEPS", 0))
    nodes = Nodes(Store(options.output_dir, trainer.identity(), keep), trainer.backend.control, writes=not compiling)
    if not compiling:
        resume(trainer, nodes)
    steps = trainer.make_steps()
    if trainer.rank == 0:
        count = len(trainer.examples["input_ids"])
        where = f"{trainer.world} processes on {trainer.backend.device}"
        say(f"training: {where}, {count} examples, {trainer.batch} a step")
    stop = Stop()
    log = Log(trainer)
    stopping, saved = False, True
    while trainer.step < options.steps_this_run and not stopping:
        rate, epoch = trainer.rate(), steps.epoch(trainer.step)
        total = trainer.do_step(steps)
        log.add(epoch, total, rate)
        stop.step_done()
        stopping = nodes.any(stop.wanted())
        last = stopping or trainer.step == options.steps_this_run
        saving = not compiling and (last or bool(every and trainer.step % every == 0))
        if last or saving:
            log.flush()
        if saving:
            saved = save(trainer, nodes)
            stop.save_done()
    if stopping and trainer.step < options.steps_this_run:
        if trainer.rank == 0:
            say(f"training: stopped before the time limit at step {trainer.step}")
        if saved:
            return STOPPED
    # Of a checkpoint on the way the next one takes the place, of the last one none.
    return 0 if saved else 1


def save(trainer: Trainer, nodes: Nodes) -> bool:
    """Write the checkpoint, and the model's configuration beside it. Whether that could be done."""
    saved = nodes.save(trainer.step, trainer.state() if nodes.writes else {})
    if saved and trainer.rank == 0:
        config = json.dumps(trainer.model.config.to_dict(), default=str)
        (nodes.store.folder / "config.json").write_text(config, encoding="utf-8")
        say(f"training: checkpoint {nodes.store.path(trainer.step)}")
    return saved


class Log:
    """The first process's lines about the steps, each as soon as its loss costs no waiting."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.waiting: deque[tuple[int, int, torch.Tensor, float]] = deque()
        self.times: deque[float] = deque([time.monotonic()], maxlen=11)

    def add(self, epoch: int, total: torch.Tensor, rate: float) -> None:
        """Note the step that was made, and write what is due."""
        if self.trainer.rank == 0:
            self.waiting.append((epoch, self.trainer.step, total, rate))
            self._write(self.trainer.backend.lag)

    def flush(self) -> None:
        self._write(0)

    def _write(self, left: int) -> None:
        """One line a step in the format that tools for the tutorial's log know; throughput in examples a second."""
        while len(self.waiting) > left:
            epoch, step, total, rate = self.waiting.popleft()
            loss = total.item()
            self.times.append(time.monotonic())
            throughput = self.trainer.batch * (len(self.times) - 1) / (self.times[-1] - self.times[0])
            now = time.strftime("%a %b %d %H:%M:%S %Y")
            values = f"step_loss : {loss:.4f} learning_rate : {rate:.2e} throughput : {throughput:.2f}"
            say(f"LOG {now} - ({epoch}, {step}) {values}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="BERT pretraining under torchrun.")
    parser.add_argument("--data_dir", type=Path, required=True, help="folder with the HDF5 shards")
    parser.add_argument("--output_dir", type=Path, required=True, help="folder for the checkpoints")
    parser.add_argument("--steps_this_run", type=int, default=100, help="the step to end at")
    parser.add_argument("--max_steps", type=int, default=0, help="step at which the rate is 0; 0: it stays at the peak")
    parser.add_argument("--batch_size", type=int, default=8, help="examples a process and micro-step")
    parser.add_argument("--grad_accum_usteps", type=int, default=1, help="micro-steps a step, with all processes there")
    parser.add_argument("--optimizer", choices=["adamw", "lamb"], default="adamw")
    parser.add_argument("--lr", type=float, default=4e-4, help="peak of the learning rate")
    parser.add_argument("--warmup_steps", type=int, default=20)
    parser.add_argument("--decay_power", type=float, default=1.0, help="of the polynomial from the peak to 0")
    parser.add_argument("--bf16", action="store_true", help="weights in 16 bits, the optimizer's copies in 32")
    parser.add_argument("--hidden_size", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--vocabulary_size", type=int, default=0, help="default: the largest token id of the data")
    parser.add_argument("--seed", type=int, default=12345)
    return parser.parse_args()


def main() -> int:
    trainer = Trainer(parse_arguments())
    code = train(trainer)
    # No process may be gone while another still speaks to it. A barrier of the xla process group does nothing.
    dist.barrier(group=trainer.backend.control)
    # DistributedDataParallel's reducer must not be the last to hold the process group: it would end it with Python's
    # lock in its hand, and wait for ever for a thread of gloo that wants the lock to free the tensors of the barrier.
    del trainer
    gc.collect()
    dist.destroy_process_group()
    return code


if __name__ == "__main__":
    sys.exit(main())
