# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the training scripts of other projects come from, and how they are started. Pure.

What other projects wrote is fetched in one version, by commit and checksum.
"""

from __future__ import annotations

from typing import Any

Definition = dict[str, Any]

# Repository -> commit and folder that files are fetched from.
SAMPLES = ("aws-neuron/aws-neuron-samples", "2015d650cd89e4c671ae5bd1b5f1d4499d94d4dd", "torch-neuronx/training")
NXD = ("aws-neuron/neuronx-distributed", "fbac349b61a3adbb123c2983835af692840ff62f", "examples/training/llama")
NEMO = (
    "aws-neuron/neuronx-nemo-megatron",
    "f4743cef5a1c8dc9eeb6b3d128e01693e041a9be",
    "nemo/examples/nlp/language_modeling",
)
OPTIMUM = ("huggingface/optimum-neuron", "abf5985828e56167ab2e48c4d5e14a83e40b6370", "examples/training/llama")


def fetched(source: tuple[str, str, str], path: str, checksum: str, dest: str = "") -> dict[str, str]:
    repository, commit, folder = source
    return {
        "url": f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}/{path}",
        "checksum": f"sha256:{checksum}",
        "dest": dest or path.rsplit("/", 1)[-1],
    }


# The environment that all of Neuron's own scripts set.
ENVIRONMENT = {
    "NEURON_RT_EXEC_TIMEOUT": "600",
    "NEURON_RT_STOCHASTIC_ROUNDING_SEED": "0",
    "MALLOC_ARENA_MAX": "64",
    "HF_HOME": "/tmp/hf_cache",  # noqa: S108  # not the shared home
    # Configurations of models and tokenizers come from Hugging Face.
    "HF_HUB_OFFLINE": "0",
}
START = "upstream/start_upstream.py"


def started(script: str, **args: Any) -> Definition:
    """A script of another project, started by ours, which gives it what it needs to go on after a requeue.

    None of them sends a checkpoint to another node, or ends by itself before its nodes are gone.
    """
    started_by = {"files": [START], "script": "start_upstream.py", "args": {"start_script": script, **args}}
    return {**started_by, "checkpoint": {"shared": True}, "stopped_by": "job"}
