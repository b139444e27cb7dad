# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which examples belong to which step of the training.

The examples of a step follow from its number and the size of the global batch alone. A step is cut into micro-batches
that bear numbers, and these are dealt out to the processes there are. So a run that goes on with fewer processes, or
begins again in the middle, learns from the same examples in the same order.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import h5py
import numpy as np
import torch

IGNORED = -100  # label of a token that is not masked


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


def fingerprint(examples: dict[str, np.ndarray]) -> str:
    """Of the number of examples and of some of them, spread over the whole."""
    count = len(examples["input_ids"])
    rows = np.linspace(0, count - 1, num=min(count, 1000), dtype=np.int64)
    return hashlib.sha256(str(count).encode() + examples["input_ids"][rows].tobytes()).hexdigest()


class Steps:
    """The examples of each step.

    ``batch`` is the global batch: examples a step, over all processes. ``micro_batch`` is what one process takes at
    once. Raises SystemExit with one sentence where these do not fit.
    """

    def __init__(self, examples: dict[str, np.ndarray], batch: int, micro_batch: int, world: int, seed: int) -> None:
        self.examples, self.batch, self.micro_batch, self.world, self.seed = examples, batch, micro_batch, world, seed
        self.count = len(examples["input_ids"])
        if batch % micro_batch:
            raise SystemExit(
                f"A step of this training has {batch} examples, which cannot be divided into micro-steps of "
                f"{micro_batch}: give a --batch_size that divides {batch}."
            )
        if self.count < batch:
            raise SystemExit(f"The dataset has {self.count} examples, one step needs {batch}: use more text.")
        # With fewer processes more micro-steps; those left over at the end count nothing.
        self.micro_steps = -(-batch // (micro_batch * world))
        self.steps_an_epoch = self.count // batch
        self._order: tuple[int, np.ndarray] | None = None

    def epoch(self, step: int) -> int:
        """The epoch of a step; both are counted from 0."""
        return step // self.steps_an_epoch

    def rows(self, step: int) -> np.ndarray:
        """The examples of a step in their order."""
        epoch, place = divmod(step, self.steps_an_epoch)
        if self._order is None or self._order[0] != epoch:
            self._order = (epoch, np.random.default_rng(self.seed + epoch).permutation(self.count))
        return self._order[1][place * self.batch : (place + 1) * self.batch]

    def micro_batches(self, step: int, rank: int) -> list[tuple[int, float, dict[str, torch.Tensor]]]:
        """What one process does in a step: for each micro-step a seed, its weight (1 or 0) and its examples."""
        rows = self.rows(step)
        found = []
        for micro_step in range(self.micro_steps):
            number = micro_step * self.world + rank
            weight = 1.0 if number * self.micro_batch < self.batch else 0.0
            # A process with nothing left to do computes on the first examples: all take part in every exchange.
            start = number * self.micro_batch if weight else 0
            chance = np.random.SeedSequence([self.seed, step, number]).generate_state(1)
            batch = make_batch(self.examples, rows[start : start + self.micro_batch])
            found.append((int(chance[0]), weight, batch))
        return found

    def labels(self, step: int) -> int:
        """The number of masked tokens in a step, at least 1."""
        return max(1, int(np.count_nonzero(self.examples["masked_lm_ids"][self.rows(step)])))


def make_batch(examples: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, torch.Tensor]:
    """Inputs and labels of these examples; a padded prediction has id 0 and is no label."""
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
