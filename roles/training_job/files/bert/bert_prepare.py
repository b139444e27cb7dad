# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Turn a text into HDF5 shards for BERT pretraining.

The shards have the fields of the wikicorpus dataset that the Neuron BERT tutorial trains on: input_ids, input_mask,
segment_ids (examples x sequence length), masked_lm_positions, masked_lm_ids (examples x predictions, zero-padded) and
next_sentence_labels (examples). The result depends on the arguments and the text alone, so every node of a cluster can
make its own copy. A marker is written last: a second run does nothing, a run that was killed begins again.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
import shutil
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
from tokenizers import BertWordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, CLS, SEP, MASK = 0, 2, 3, 4
WORD = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")


def read_sentences(path: Path) -> list[str]:
    """The sentences of a text file, gzipped or not, in lower case. Drawings of tables are left out."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", errors="ignore") as file:
        lines = [re.sub(r"[|+\-=_]{2,}|[|]", " ", line).strip() for line in file]
    text = re.sub(r"\s+", " ", " ".join(lines)).lower()
    text = text.encode("ascii", "ignore").decode()
    return [sentence for sentence in re.split(r"(?<=[.!?:;]) ", text) if len(sentence) > 20]


def make_vocabulary(sentences: list[str], size: int) -> list[str]:
    """The special tokens, every character whole and as a continuation, then the most frequent words.

    Ties go by the alphabet, so the order is the same on every machine.
    """
    words = Counter(word for sentence in sentences for word in WORD.findall(sentence))
    characters = sorted({character for word in words for character in word})
    vocabulary = SPECIAL + characters + ["##" + character for character in characters]
    for word, _count in sorted(words.items(), key=lambda item: (-item[1], item[0])):
        if len(vocabulary) >= size:
            break
        if len(word) > 1:
            vocabulary.append(word)
    return vocabulary


def make_examples(encoded: list[list[int]], options: argparse.Namespace, vocabulary_size: int) -> dict[str, np.ndarray]:
    """Pairs of neighbouring texts, half of them with a false neighbour, with 15 percent of the tokens masked."""
    chance = random.Random(options.seed)  # noqa: S311  # reproducible on purpose
    length, predictions = options.sequence_length, options.predictions
    half = (length - 3) // 2
    chunks: list[list[int]] = []
    current: list[int] = []
    for sentence in encoded:
        current += sentence
        while len(current) >= half:
            chunks.append(current[:half])
            current = current[half:]
    rows: dict[str, list] = {name: [] for name in ("ids", "mask", "segments", "positions", "labels", "next")}
    for index in range(len(chunks) - 1):
        false_neighbour = chance.random() < 0.5
        second = chunks[chance.randrange(len(chunks))] if false_neighbour else chunks[index + 1]
        tokens = [CLS, *chunks[index], SEP, *second, SEP]
        segments = [0] * (half + 2) + [1] * (half + 1)
        candidates = [place for place, token in enumerate(tokens) if token not in (CLS, SEP)]
        count = min(predictions, max(1, round(len(candidates) * 0.15)))
        places = sorted(chance.sample(candidates, count))
        labels = [tokens[place] for place in places]
        for place in places:
            dice = chance.random()
            if dice < 0.8:
                tokens[place] = MASK
            elif dice < 0.9:
                tokens[place] = chance.randrange(len(SPECIAL), vocabulary_size)
        padding = length - len(tokens)
        rows["ids"].append(tokens + [PAD] * padding)
        rows["mask"].append([1] * len(tokens) + [0] * padding)
        rows["segments"].append(segments + [0] * padding)
        rows["positions"].append(places + [0] * (predictions - count))
        rows["labels"].append(labels + [0] * (predictions - count))
        rows["next"].append(int(false_neighbour))
    return {
        "input_ids": np.array(rows["ids"], dtype="i4"),
        "input_mask": np.array(rows["mask"], dtype="i1"),
        "segment_ids": np.array(rows["segments"], dtype="i1"),
        "masked_lm_positions": np.array(rows["positions"], dtype="i4"),
        "masked_lm_ids": np.array(rows["labels"], dtype="i4"),
        "next_sentence_labels": np.array(rows["next"], dtype="i1"),
    }


def write_shards(examples: dict[str, np.ndarray], folder: Path, shards: int) -> None:
    """Deal the examples out over the shards."""
    for shard in range(shards):
        with h5py.File(folder / f"shard_{shard:03d}.hdf5", "w") as file:
            for name, values in examples.items():
                file.create_dataset(name, data=values[shard::shards], compression="gzip")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make HDF5 shards for BERT pretraining from a text.")
    parser.add_argument("--corpus", type=Path, required=True, help="text file, gzipped or not")
    parser.add_argument("--output", type=Path, required=True, help="folder for the shards")
    parser.add_argument("--vocabulary_size", type=int, default=2048)
    parser.add_argument("--sequence_length", type=int, default=64)
    parser.add_argument("--predictions", type=int, default=10, help="masked tokens an example at most")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    digest = hashlib.sha256(options.corpus.read_bytes() + repr(sorted(vars(options).items())).encode()).hexdigest()
    marker = options.output / "complete.json"
    if marker.exists() and json.loads(marker.read_text(encoding="utf-8"))["digest"] == digest:
        print(f"dataset: {options.output} is complete")
        return
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    sentences = read_sentences(options.corpus)
    vocabulary = make_vocabulary(sentences, options.vocabulary_size)
    file = options.output / "vocab.txt"
    file.write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    tokenizer = BertWordPieceTokenizer(str(file), lowercase=True)
    encoded = [tokenizer.encode(sentence, add_special_tokens=False).ids for sentence in sentences]
    examples = make_examples(encoded, options, len(vocabulary))
    write_shards(examples, options.output, options.shards)
    count = len(examples["input_ids"])
    summary = {"digest": digest, "examples": count, "vocabulary": len(vocabulary), "shards": options.shards}
    marker.write_text(json.dumps(summary) + "\n", encoding="utf-8")
    print(f"dataset: {count} examples of {options.sequence_length} tokens in {options.shards} shards, {options.output}")


if __name__ == "__main__":
    main()
