# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Llama 3 as NeuronX Distributed trains it, and as Optimum Neuron fine-tunes it with LoRA. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.sources import (
    COMPILE,
    ENVIRONMENT,
    NXD,
    OPTIMUM,
    TOKEN,
    Definition,
    fetched,
    pinned,
    started,
    tokenized,
)

_NXD_COMMON = {
    "modeling_llama_nxd.py": "182a0c12bffa603a57131a81ba482a840e529c67ea714181123890d16cb01301",
    "training_utils.py": "7672fe025e572f2a0012587f2e6fff21068cb95f3c32376e4407dd93749ad80b",
    "lr.py": "e587743a0235ff0c550b02ffa6e74287c7f6aa478dde8e5404d633b476183c51",
    "requirements.txt": "5051f5bfd9321b777c8cd0a132bea2112998688671d94eab70af69ea6a6ba929",
    "get_dataset.py": "d755dbba8abcff06ba1eafee442217132f7e4496bc5559d217aab64ad629a2fb",
}
# The commit of the examples is that of SDK 2.29, to which neuronx-distributed 0.18.27753 belongs (n2-manifest.json of
# the Neuron documentation).
_NXD_NEEDS: Definition = {
    "sdk": ("2.29.1", "2.29.1"),
    "python": ("3.10", "3.12"),
    "systems": ("Ubuntu 24.04", "Ubuntu 22.04"),
    "shared": True,
}
# By the folder of the example: the script, which is the first, and what else it needs there.
_NXD_SCRIPTS = {
    "tp_zero1_llama_hf_pretrain": {
        "tp_zero1_llama_hf_pretrain.py": "c127461bacaf910c72dcb52cb7d4498b832a04922cb1565fc221f653c829815d",
        "logger.py": "1d97f3c7cfc757ec51cf1ea951a65119205443c002bd08fa7f7124f2a8ff4e8d",
    },
    "tp_pp_llama_hf_pretrain": {
        "run_llama_nxd.py": "f03952a7573db4405f22a992dddfb3565911d3e2da28792964c69a04e4735d19",
        "logger.py": "1565e44e2e61cf06ca521b3280971d6cd0a728f8f87ad7ece66e11c1a852201b",
        "activation_checkpoint.py": "f21e4bc22f961bcf8572774a933b32f4af184988fa52c2aac8a1f4f21af6d848",
    },
}


def nxd_files(folder: str, configuration: Mapping[str, str]) -> list[dict[str, str]]:
    """What an example takes, with the model's ``configuration`` in its folder."""
    own = {f"{folder}/{name}": checksum for name, checksum in {**_NXD_SCRIPTS[folder], **configuration}.items()}
    return [fetched(NXD, f"llama/{path}", checksum) for path, checksum in {**own, **_NXD_COMMON}.items()]


def _nxd(name: str, folder: str, configuration: Mapping[str, str], **more: Any) -> Definition:
    """With a token for the tokenizer alone: the weights begin at random."""
    data = tokenized("meta-llama/Meta-Llama-3-8B", "wikicorpus_llama3_tokenized_8k", **{"llama-version": 3})
    return {
        "name": name,
        "fetch": nxd_files(folder, configuration),
        # requirements.txt of the examples, and NxD itself.
        "requirements": [
            "neuronx-distributed==0.18.*",
            "transformers==4.48.0",
            "datasets<=3.6.0",
            *("tensorboard", "sentencepiece", "regex", "tenacity", "s3transfer", "awscrt", "huggingface-hub>=0.27.1"),
        ],
        "needs": _NXD_NEEDS,
        "secrets": TOKEN,
        "processes_per_node": "32",
        "tensorboard": f"{{directory}}/output/{name}",
        "time_limit": "14-00:00:00",
        **started(next(iter(_NXD_SCRIPTS[folder])), data, **more.pop("args")),
        **more,
    }


_LLAMA3_8B = _nxd(
    "llama3-8b",
    "tp_zero1_llama_hf_pretrain",
    {"8B_config_llama3/config.json": "9ddc1e9f006fd18bb19c0beaef59b71042414fc28431ba8cdadec239796eec85"},
    nodes=4,
    steps=10000,
    compile={**COMPILE, "steps": 2, "time_limit": "12:00:00"},
    env={
        **ENVIRONMENT,
        "NEURON_CC_FLAGS": "--model-type transformer",
        "NEURON_FUSE_SOFTMAX": "1",
        "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS": "3",
    },
    args={
        "model_path": "{folder}",
        "data_dir": "{directory}/data/wikicorpus_llama3_tokenized_8k",
        "metrics_file": "{directory}/output/llama3-8b/results.json",
        "checkpoint_dir": "{directory}/output/llama3-8b",
        "output_dir": "{directory}/output/llama3-8b",
        "checkpoint_freq": 500,
        "num_kept_checkpoint": 3,
        "start_resume": "nxd",
        "tensor_parallel_size": 32,
        "batch_size": 1,
        "max_steps": 10000,
        "steps_this_run": 10000,
        "warmup_steps": 100,
        "lr": "1.5e-4",
        # A global batch of 1024: there are as many replicas of 32 cores as nodes.
        "grad_accum_usteps": 1024,
        "start_keep_batch": "grad_accum_usteps",
        "seq_len": 8192,
        "sequence_parallel_enabled": True,
        "selective_checkpoint_enabled": True,
        "logging_interval": 1,
        "qkv_linear": True,
        "kv_replicator": 4,
        "use_flash_attention": 1,
        "use_gpu_compatible_precision": 1,
        "num_layers": 32,
        "use_mix_precision": True,
        "use_zero_1": True,
    },
)

_LLAMA3_70B = _nxd(
    "llama3-70b",
    "tp_pp_llama_hf_pretrain",
    {"70B_config_llama3/config.json": "501c63ac553f79eca61be2c33d70d2ef9c6b4e124a5710c79067e521bb56178c"},
    nodes=32,
    steps=30000,
    needs={**_NXD_NEEDS, "checkpoint_gb": 850},
    compile={
        "enabled": True,
        "steps": 10,
        "steps_argument": "max_steps",
        "args": {"checkpoint_freq": -1},
        "time_limit": "12:00:00",
    },
    env={
        **ENVIRONMENT,
        "MALLOC_ARENA_MAX": "128",
        "NEURON_CC_FLAGS": "--model-type=transformer",
        "NEURON_FUSE_SOFTMAX": "1",
        "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS": "7",
        "XLA_DISABLE_FUNCTIONALIZATION": "0",
        # The script has no other way to 16 bits yet.
        "XLA_DOWNCAST_BF16": "1",
    },
    args={
        # A global batch of 1024: 8 nodes hold a replica of 32 times 8 cores.
        "train_batch_size": 8192,
        "num_microbatches": 8192,
        "start_keep_batch": ["train_batch_size", "num_microbatches"],
        "use_meta_device_init": 1,
        "training_dir": "{directory}/data/wikicorpus_llama3_tokenized_8k",
        "training_config": "{folder}",
        "metrics_file": "{directory}/output/llama3-70b/results.json",
        "max_steps": 30000,
        "seq_len": 8192,
        "pipeline_parallel_size": 8,
        "tensor_parallel_size": 32,
        "lr": "0.000015",
        "min_lr": "1e-06",
        "beta1": "0.9",
        "beta2": "0.95",
        "weight_decay": "0.1",
        "warmup_steps": 2000,
        "constant_steps": 0,
        "use_zero1_optimizer": 1,
        "use_selective_checkpoint": 1,
        "use_flash_attention": 1,
        "qkv_linear": 1,
        "kv_replicator": 4,
        "pretrained_weight": 0,
        "save_load_xser": 1,
        "checkpoint_dir": "{directory}/output/llama3-70b",
        "checkpoint_freq": 500,
        "num_kept_checkpoint": 3,
        "start_resume": "nxd",
        "tb_dir": "{directory}/output/llama3-70b/tensorboard",
        "start_tensorboard": "tb_dir",
    },
)

_LORA: Definition = {
    **started(
        "finetune_llama.py",
        {
            "model": [pinned("meta-llama/Llama-3.1-8B")],
            # Not Meta's own format of the same weights.
            "only": ["*.json", "*.safetensors"],
            "dataset": [pinned("databricks/databricks-dolly-15k")],
        },
        model_id="meta-llama/Llama-3.1-8B",
        output_dir="{directory}/output/llama3-8b-lora",
        num_train_epochs=3,
        do_train=True,
        max_steps=-1,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=16,
        learning_rate="1e-4",
        bf16=True,
        tensor_parallel_size=8,
        async_save=True,
        warmup_steps=5,
        logging_steps=1,
    ),
    "name": "llama3-8b-lora",
    "tensorboard": "{directory}/output/llama3-8b-lora",
    # Optimum Neuron's Trainer refuses resume_from_checkpoint (trainers/transformers.py): it would begin anew.
    "checkpoint": {"resume": False},
    "requeue": False,
    "fetch": [
        fetched(OPTIMUM, "finetune_llama.py", "2ccf3760fd1bb02703e6f6f3223c4f6201b65aecb320767d4f3710250db25151")
    ],
    # Its extra "neuronx" pins what SDK 2.26.1 has, as the main branch of 2026-08 still does, so there is no pin to move
    # to; "training" pins trl, peft and accelerate (pyproject.toml, with requires-python >=3.10,<3.12).
    # What it pins of Neuron's is named here, so that neuron_venv takes it from Neuron's index alone.
    "requirements": ["optimum-neuron[neuronx,training]==0.4.5", "neuronx-distributed==0.15.22404"],
    "needs": {"sdk": ("2.26.1", "2.26.1"), "python": ("3.10", "3.11"), "systems": ("Ubuntu 22.04",)},
    "secrets": TOKEN,
    "nodes": 1,
    "processes_per_node": "32",
    "compile": {"enabled": True, "steps": 5, "steps_argument": "max_steps"},
    "env": {
        **ENVIRONMENT,
        "NEURON_CC_FLAGS": "--model-type transformer --retry_failed_compilation",
        "NEURON_FUSE_SOFTMAX": "1",
        "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS": "3",
    },
}

LLAMA3: dict[str, Definition] = {"llama3-8b": _LLAMA3_8B, "llama3-70b": _LLAMA3_70B, "llama3-8b-lora": _LORA}
