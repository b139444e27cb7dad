# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Training jobs that need only a name: the collection's own small BERT, and jobs of other projects. Pure.

In texts ``{directory}`` stands for the folder on the nodes for jobs, data and output, ``{folder}`` for that of the job.
Data and weights are the user's to bring; each preset says in ``args`` where it looks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.presets_llama3 import LLAMA3
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets_nemo import GPT_AND_LLAMA2
from ansible_collections.trainium.cluster.plugins.module_utils._training.sources import (
    ENVIRONMENT,
    SAMPLES,
    Definition,
    fetched,
    started,
)

_COMPILE: Definition = {"enabled": True, "steps": 10, "steps_argument": "steps_this_run"}

# A text that Debian and Ubuntu ship, and a model that learns it on CPUs within a minute.
_BERT: Definition = {
    "name": "bert",
    "files": [
        "bert/bert_pretrain.py",
        "bert/bert_backend.py",
        "bert/bert_checkpoint.py",
        "bert/bert_data.py",
        "bert/bert_optimizer.py",
        "bert/bert_prepare.py",
    ],
    "packages": ["debian-reference-en"],
    "prepare": {
        "script": "bert_prepare.py",
        "args": {
            "corpus": "/usr/share/debian-reference/debian-reference.en.txt.gz",
            "output": "{directory}/data/bert",
        },
    },
    "script": "bert_pretrain.py",
    "args": {
        "data_dir": "{directory}/data/bert",
        "output_dir": "{folder}/output",
        "steps_this_run": 100,
        "batch_size": 8,
        "lr": 0.002,
        "warmup_steps": 10,
        "hidden_size": 128,
        "layers": 2,
        "heads": 2,
    },
    "steps": 100,
    "compile": _COMPILE,
    "checkpoint": {"steps": 20},
}

_HDF5 = "{directory}/data/bert_pretrain_wikicorpus_tokenized_hdf5_seqlen"
_BERT_LARGE: Definition = {
    "fetch": [
        fetched(SAMPLES, f"dp_bert_hf_pretrain/{name}", checksum)
        for name, checksum in (
            (
                "dp_bert_large_hf_pretrain_hdf5.py",
                "8cb9bd61592d3a8c0db3844f53a01415c6ac09eab9f33f0dbbc6de5a7891cc43",
            ),
            ("adamw_fp32_optim_params.py", "0706c68035c3f9a66315ea9097dc79d28a0c94b67a6e05a9c9f1060cfca6fbae"),
            ("lamb.py", "fdd5e1c9efaaa6bda2b3b5d0a1556da07bed42c887c9732b898a8ef4590fe0d0"),
            ("requirements.txt", "ce8f6601e59aaac2346200715ba95ba47eb50e4b33d32956ad8cdd32e64094eb"),
        )
    ],
    "requirements": [
        "transformers==4.44.0",
        "tensorboard==2.14",
        "datasets==2.19.1",
        "sentencepiece==0.2.0",
        "requests==2.31.0",
        "huggingface-hub==0.24.5",
        "h5py",
    ],
    "compile": _COMPILE,
    "env": {**ENVIRONMENT, "BUCKET_CAP_MB": "512", "XLA_TRANSFER_SEED_ASYNC": "1"},
    "time_limit": "3-00:00:00",
}


def _bert_large(name: str, steps: int, **args: Any) -> Definition:
    """The script casts the model to bfloat16 by itself: XLA_USE_BF16 of older tutorials is deprecated.

    ``grad_accum_usteps`` is that of one node, and of the tutorials that leave it with more; divide it by the number of
    nodes to keep the global batch.
    """
    output = f"{{directory}}/output/{name}"
    begun = started(
        "dp_bert_large_hf_pretrain_hdf5.py",
        start_checkpoints=output,
        start_resume="bert",
        output_dir=output,
        metrics_file=f"{output}/results.json",
        num_ckpts_to_keep=3,
        max_steps=steps,
        steps_this_run=steps,
        **args,
    )
    return {**_BERT_LARGE, **begun, "name": name, "steps": steps}


def _phase1(name: str, steps: int, **args: Any) -> Definition:
    return _bert_large(name, steps, batch_size=16, data_dir=f"{_HDF5}128", **args)


def _phase2(name: str, before: str, end: int, **args: Any) -> Definition:
    """From the last checkpoint of phase 1. The script counts its checkpoints on from there."""
    return _bert_large(
        name,
        1563,
        batch_size=2,
        grad_accum_usteps=512,
        max_pred_len=80,
        warmup_steps=781,
        data_dir=f"{_HDF5}512",
        phase2=True,
        resume_ckpt=True,
        resume_ckpt_path=f"{{directory}}/output/{before}/ckpt_{end}.pt",
        phase1_end_step=end,
        **args,
    )


PRESETS: Mapping[str, Definition] = {
    "bert": _BERT,
    "bert-large-phase1": _phase1("bert-large-phase1", 28125, grad_accum_usteps=32, lr="4e-4", warmup_steps=2000),
    "bert-large-phase1-lamb": _phase1(
        "bert-large-phase1-lamb", 7032, grad_accum_usteps=128, lr="6e-3", warmup_steps=2000, optimizer="LAMB"
    ),
    "bert-large-phase2": _phase2("bert-large-phase2", "bert-large-phase1", 28125, lr="2.8e-4"),
    "bert-large-phase2-lamb": _phase2(
        "bert-large-phase2-lamb", "bert-large-phase1-lamb", 7032, lr="4e-3", optimizer="LAMB"
    ),
    **GPT_AND_LLAMA2,
    **LLAMA3,
}
