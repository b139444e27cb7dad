# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Training jobs that need only a name: the collection's own small BERT, and jobs of other projects. Pure.

In texts ``{directory}`` stands for the folder on the nodes for jobs, data and output, ``{folder}`` for that of the job.
A preset brings its ``requirements`` into the environment, its ``dataset``, as trainium_dataset takes one, to where its
``args`` look for it, and with ``prepare`` what is fetched or made on the nodes. ``needs`` is what they have to have:
``sdk`` and ``python`` from the first to the last, ``systems`` (any that the SDK supports where there are none),
``shared`` storage for more than one node, and ``checkpoint_gb`` for each of its checkpoints, where these are large.
``enough_nodes`` is how many it takes of those that would be started for it, where nobody has said a number.
``secrets`` are environment variables that the user gives in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.presets_gpt_llama2 import GPT_AND_LLAMA2
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets_llama3 import LLAMA3
from ansible_collections.trainium.cluster.plugins.module_utils._training.sources import (
    COMPILE,
    ENVIRONMENT,
    SAMPLES,
    Definition,
    fetched,
    pinned,
    started,
)

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
        "args": {"corpus": "/usr/share/debian-reference/debian-reference.en.txt.gz", "output": "{directory}/data/bert"},
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
    "compile": COMPILE,
    "checkpoint": {"steps": 20},
    # It shows that a cluster works; nodes that are started for it cost what those of any other training do.
    "enough_nodes": 2,
}

_HDF5 = "bert_pretrain_wikicorpus_tokenized_hdf5"
_BERT_LARGE: Definition = {
    "fetch": [
        fetched(SAMPLES, f"dp_bert_hf_pretrain/{name}", checksum)
        for name, checksum in (
            ("dp_bert_large_hf_pretrain_hdf5.py", "8cb9bd61592d3a8c0db3844f53a01415c6ac09eab9f33f0dbbc6de5a7891cc43"),
            ("adamw_fp32_optim_params.py", "0706c68035c3f9a66315ea9097dc79d28a0c94b67a6e05a9c9f1060cfca6fbae"),
            ("adamw_fp32_params_copy.py", "49a2ffff9636f8367f63fc4ca600b63500f511a5bed4180771bf3a61c355c6c9"),
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
    # torch_xla.runtime of PyTorch 2.5 at least; sentencepiece 0.2.0 has no wheel for Python 3.13.
    "needs": {"sdk": ("2.22.0", "2.29.1"), "python": ("3.10", "3.12")},
    "compile": COMPILE,
    "env": {**ENVIRONMENT, "BUCKET_CAP_MB": "512", "XLA_TRANSFER_SEED_ASYNC": "1"},
    "time_limit": "3-00:00:00",
}


# Its optimizer (adamw_fp32_params_copy.py) copies the weights before the script loads a checkpoint, keeps the copy out
# of checkpoints, and writes it over what was loaded at its first step: it can neither go on nor train phase 2.
_COPIED = "-fp32paramscopy"
# Mode of the tutorial's scripts -> how much less a core holds at once, and arguments. The first is without a name.
_MODES: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "": (1, {}),
    "-amp": (1, {"enable_pt_autocast": True}),
    _COPIED: (1, {"optimizer": "AdamW_FP32ParamsCopy"}),
    "-fp32": (2, {"optimizer": "AdamW", "enable_fp32": True}),
}


def _bert_large(name: str, mode: str, steps: int, length: int, sizes: tuple[int, int], **args: Any) -> Definition:
    """``length`` of sequences, ``sizes``: batch of a core and micro-steps of one node.

    The script casts the model to bfloat16 by itself: XLA_USE_BF16 of older tutorials is deprecated. The model's own
    weights are not used, but loaded (get_model). start_keep_batch is false for the batch of tutorials that leave the
    number of micro-steps with more nodes.
    """
    less, more = _MODES[mode]
    output, data = f"{{directory}}/output/{name}{mode}", f"{_HDF5}_seqlen{length}"
    begun = started(
        "dp_bert_large_hf_pretrain_hdf5.py",
        {"model": [pinned("bert-large-uncased")], "only": ["config.json", "pytorch_model.bin"]},
        start_checkpoints=output,
        start_resume="bert",
        start_keep_batch="grad_accum_usteps",
        output_dir=output,
        metrics_file=f"{output}/results.json",
        num_ckpts_to_keep=3,
        data_dir=f"{{directory}}/data/{data}",
        batch_size=sizes[0] // less,
        grad_accum_usteps=sizes[1] * less,
        max_steps=steps,
        steps_this_run=steps,
        **{**more, **args},
    )
    dataset = {"source": f"s3://neuron-s3/training_datasets/{_HDF5}/{data}.tar", "signed": False}
    alone = {"requeue": False, "checkpoint": {"resume": False}} if mode == _COPIED else {}
    about = {"name": f"{name}{mode}", "steps": steps, "dataset": dataset, "tensorboard": output}
    return {**_BERT_LARGE, **begun, **alone, **about}


def _phase2(name: str, mode: str, end: int, **args: Any) -> Definition:
    """From the last checkpoint of phase 1. The script counts its checkpoints on from there."""
    before = name.replace("phase2", "phase1") + mode
    return _bert_large(
        name,
        mode,
        1563,
        512,
        (2, 512),
        max_pred_len=80,
        warmup_steps=781,
        phase2=True,
        resume_ckpt=True,
        resume_ckpt_path=f"{{directory}}/output/{before}/ckpt_{end}.pt",
        phase1_end_step=end,
        **args,
    )


_LAMB = {"optimizer": "LAMB"}
_PHASES = [
    made
    for mode in _MODES
    for made in (
        _bert_large("bert-large-phase1", mode, 28125, 128, (16, 32), lr="4e-4", warmup_steps=2000),
        _bert_large("bert-large-phase1-lamb", mode, 7032, 128, (16, 128), lr="6e-3", warmup_steps=2000, **_LAMB),
        _phase2("bert-large-phase2", mode, 28125, lr="2.8e-4"),
        _phase2("bert-large-phase2-lamb", mode, 7032, lr="4e-3", **_LAMB),
    )
    if mode != _COPIED or made["name"] == f"bert-large-phase1{_COPIED}"
]

PRESETS: Mapping[str, Definition] = {
    "bert": _BERT,
    **{made["name"]: made for made in _PHASES},
    **GPT_AND_LLAMA2,
    **LLAMA3,
}
