"""What the tutorial's script reads, small: shards of one batch each, and a BERT in the place of bert-large-uncased.

    prepare.py FOLDER SHARDS COMMIT

Runs in the environment of the training. The script draws the order of the examples in a shard anew after a resume; in a
shard of one batch the order does not matter.
"""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np
from transformers import BertConfig, BertForPreTraining

BATCH, LENGTH, MASKED, MASK = 8, 32, 5, 3


def write_shard(path: Path, chance: np.random.Generator) -> None:
    """Examples with some order in them: each token follows from the one before."""
    ids = chance.integers(10, 190, (BATCH, 1))
    while ids.shape[1] < LENGTH:
        ids = np.concatenate([ids, 10 + (ids[:, -1:] * 7 + 3) % 180], axis=1)
    places = np.sort(np.stack([chance.choice(np.arange(1, LENGTH), MASKED, replace=False) for _row in range(BATCH)]))
    rows = np.arange(BATCH)[:, None]
    hidden = ids.copy()
    hidden[rows, places] = MASK
    with h5py.File(path, "w") as file:
        file["input_ids"] = hidden.astype(np.int32)
        file["input_mask"] = np.ones((BATCH, LENGTH), np.int8)
        file["segment_ids"] = (np.arange(LENGTH) >= LENGTH // 2).astype(np.int8)[None].repeat(BATCH, axis=0)
        file["masked_lm_positions"] = places.astype(np.int32)
        file["masked_lm_ids"] = ids[rows, places].astype(np.int32)
        file["next_sentence_labels"] = chance.integers(0, 2, BATCH).astype(np.int8)


def write_model(cache: Path, commit: str) -> None:
    """As prepare_upstream.py leaves the Hugging Face Hub's cache: a model by its commit, found by its name."""
    home = cache / "hub" / "models--bert-large-uncased"
    config = BertConfig(
        vocab_size=200,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
    )
    BertForPreTraining(config).save_pretrained(home / "snapshots" / commit, safe_serialization=False)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit, encoding="utf-8")


def main() -> None:
    folder, shards = Path(sys.argv[1]), int(sys.argv[2])
    (folder / "shards").mkdir(parents=True)
    chance = np.random.default_rng(1)
    for shard in range(shards):
        write_shard(folder / "shards" / f"wikicorpus_training_{shard:03d}.hdf5", chance)
    write_model(folder / "hf", sys.argv[3])


if __name__ == "__main__":
    main()
