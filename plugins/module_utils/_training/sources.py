# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the training scripts of other projects come from, and how they are started. Pure.

What other projects wrote is fetched in one version, by commit and checksum.
"""

from __future__ import annotations

from typing import Any

Definition = dict[str, Any]

# Repository -> commit and folder that files are fetched from.
SAMPLES = ("aws-neuron/aws-neuron-samples", "2015d650cd89e4c671ae5bd1b5f1d4499d94d4dd", "torch-neuronx/training")
NXD = ("aws-neuron/neuronx-distributed", "fbac349b61a3adbb123c2983835af692840ff62f", "examples/training")
OPTIMUM = ("huggingface/optimum-neuron", "abf5985828e56167ab2e48c4d5e14a83e40b6370", "examples/training/llama")


def fetched(source: tuple[str, str, str], path: str, checksum: str) -> dict[str, str]:
    repository, commit, folder = source
    return {
        "url": f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}/{path}",
        "checksum": f"sha256:{checksum}",
        "dest": path.rsplit("/", 1)[-1],
    }


# The environment that all of Neuron's own scripts set.
ENVIRONMENT: dict[str, str] = {
    "NEURON_RT_EXEC_TIMEOUT": "600",
    "NEURON_RT_STOCHASTIC_ROUNDING_SEED": "0",
    "MALLOC_ARENA_MAX": "64",
    # Filled before the training, once for all processes, which then read it offline.
    "HF_HOME": "{directory}/huggingface",
}
COMPILE: Definition = {"enabled": True, "steps": 10, "steps_argument": "steps_this_run"}
# Models and datasets of Hugging Face -> commit. Each was seen as the name of a folder in caches of the hub
# (snapshots/), in two public repositories at least that have nothing to do with each other; the hub itself could not be
# asked.
HUB: dict[str, str] = {
    "bert-large-uncased": "6da4b6a26a1877e173fca3225479512db81a5e5b",
    "EleutherAI/gpt-neox-20b": "c292233c833e336628618a88a648727eb3dff0a7",
    "meta-llama/Llama-2-7b-hf": "01c7f73d771dfac7d292323805ebc428287df4f9",
    "meta-llama/Meta-Llama-3-8B": "8cde5ca8380496c9a6cc7ef3a8b46a0372a1d920",
    "meta-llama/Llama-3.1-8B": "d04e592bb4f6aa9cfee91e2e20afa771667e1d4b",
    "databricks/databricks-dolly-15k": "bdd27f4d94b9c1f951818a7da7fd7aeea5dbff1a",
}
START = "upstream/start_upstream.py"
PREPARE = "upstream/prepare_upstream.py"
# Models of Meta are given to those who have agreed to its licence, by their token.
TOKEN = {"HF_TOKEN": ""}


def pinned(name: str) -> str:
    """The name with its commit, as prepare_upstream.py takes it; alone where none is known."""
    return f"{name}@{HUB[name]}" if name in HUB else name


def started(script: str, prepare: Definition, **args: Any) -> Definition:
    """A script of another project, started by ours, which gives it what it needs to go on after a requeue.

    ``prepare``: what ours fetches and makes before. None of the scripts sends a checkpoint to another node, or ends by
    itself before its nodes are gone.
    """
    return {
        "files": [START, PREPARE],
        "script": "start_upstream.py",
        "args": {"start_script": script, **args},
        "checkpoint": {"shared": True},
        "stopped_by": "job",
        "prepare": {"script": "prepare_upstream.py", "args": prepare},
    }


def tokenized(model: str, name: str, **args: Any) -> Definition:
    """The preparation of Wikipedia's text by the model's tokenizer, as Neuron's get_dataset.py does it."""
    return {
        "model": [pinned(model)],
        "only": ["tokenizer*", "special_tokens_map.json"],
        "script": "get_dataset.py",
        "makes": name,
        # Of the text's dataset no commit is known, which is on the hub alone.
        "corpus_revision": "main",
        "data": f"{{directory}}/data/{name}",
        **args,
    }
