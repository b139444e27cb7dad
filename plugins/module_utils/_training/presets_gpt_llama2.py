# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPT-NeoX and Llama 2 as NeuronX Distributed trains them. Pure.

Neuron's NeMo-Megatron, which trained GPT-3 and Llama 2, is on no index and not supported since SDK 2.23
(announce-no-support-nemo-megatron of the Neuron documentation).
"""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.presets_llama3 import LLAMA3, nxd_files
from ansible_collections.trainium.cluster.plugins.module_utils._training.sources import (
    ENVIRONMENT,
    NXD,
    Definition,
    fetched,
    pinned,
    started,
    tokenized,
)

_CONFIGURATIONS = {
    "7b": {"7B_config_llama2/config.json": "f6e92eec757b4c6fd64de729a5816f77a443b1eb3e6011391385d2c03f538e4e"},
    "13b": {"13B_config_llama2/config.json": "21c8e9fa3ec74d8e5550dfb7632cd41c5e4d7fcbe7dfeadf428ed12f19058c44"},
    "70b": {"70B_config_llama2/config.json": "3d92ef26e850320852b35d524a743395bf765e6402fd27dc780883a3555d7ea6"},
}


def _llama2(size: str, like: str, folder: str, **args: Any) -> Definition:
    """Llama 3 with what the scripts of Llama 2 have instead; an argument that is false is not given."""
    base = LLAMA3[like]
    name, data = (
        f"llama2-{size}",
        tokenized("meta-llama/Llama-2-7b-hf", "wikicorpus_llama2_tokenized_4k", **{"llama-version": 2}),
    )
    key = "data_dir" if "data_dir" in base["args"] else "training_dir"
    kept = {one: value.replace(like, name) if isinstance(value, str) else value for one, value in base["args"].items()}
    return {
        **base,
        "needs": {one: value for one, value in base["needs"].items() if one != "checkpoint_gb" or like.endswith(size)},
        "name": name,
        "fetch": nxd_files(folder, _CONFIGURATIONS[size]),
        "args": {**kept, key: data["data"], "seq_len": 4096, **args},
        "prepare": {**base["prepare"], "args": data},
        "tensorboard": base["tensorboard"].replace(like, name),
    }


_NEOX = "tp_dp_gpt_neox_hf_pretrain"
_NEOX_FILES = (
    ("common/adamw_fp32_optim_params.py", "85ad07c8232554b6db260d54ddcbb1d5118a2b54923a3d845e96d1f521518201"),
    ("common/get_dataset.py", "4ad8fffde815e1d1cfc30d9feb53cb58c61441102b57729f44643eac63a48d94"),
    (
        "tp_dp_gpt_neox_20b_hf_pretrain/modeling_gpt_neox_nxd.py",
        "c3df9e5511de5c25a1385c37093200588172bcb01b520fc40ab0e86ea6ccb7cb",
    ),
    ("tp_dp_gpt_neox_20b_hf_pretrain/utils.py", "6a45340ecd3e1056f99f01928e0fc05c1b3dccf3b36cd8711b606e9d13993159"),
)


def _neox(size: str, checksum: str, model: str, steps: int, tensor: int, warmup: int, rate: str) -> Definition:
    """``model``: whose configuration the script asks Hugging Face for; the tokenizer is that of the largest."""
    script, data = f"tp_dp_gpt_neox_{size}_hf_pretrain", "wikicorpus_gpt_neox_tokenized_2k"
    files = (*_NEOX_FILES, (f"{script}/{script}.py", checksum))
    prepared = {
        **tokenized("EleutherAI/gpt-neox-20b", data),
        "model": list(dict.fromkeys(map(pinned, ("EleutherAI/gpt-neox-20b", model)))),
        "only": ["*.json", "*.txt"],
    }
    return {
        **started(
            f"{script}.py",
            prepared,
            data_dir=prepared["data"],
            output_dir=f"{{directory}}/output/gpt-neox-{size}",
            metrics_file=f"{{directory}}/output/gpt-neox-{size}/results.json",
            tensor_parallel_size=tensor,
            batch_size=1,
            steps_this_run=steps,
            max_steps=steps,
            warmup_steps=warmup,
            lr=rate,
            # A global batch of 256.
            grad_accum_usteps=256 * tensor // 32,
            start_keep_batch="grad_accum_usteps",
        ),
        "name": f"gpt-neox-{size}",
        "fetch": [fetched(NXD, f"{_NEOX}/{path}", one) for path, one in files],
        # transformers 4.26.0 of the examples has no tokenizers for Python 3.12, and is older than NumPy 2.
        "requirements": [
            *("neuronx-distributed==0.18.*", "transformers==4.26.0", "datasets<=3.6.0", "numpy<2"),
            *("tensorboard", "sentencepiece", "regex", "tenacity", "s3transfer", "awscrt"),
        ],
        "needs": {
            "sdk": ("2.29.1", "2.29.1"),
            "python": ("3.10", "3.11"),
            "systems": ("Ubuntu 24.04", "Ubuntu 22.04"),
            "shared": True,
        },
        "steps": steps,
        "tensorboard": f"{{directory}}/output/gpt-neox-{size}",
        "nodes": 4,
        "processes_per_node": "32",
        "time_limit": "14-00:00:00",
        # The scripts save at their end alone.
        "requeue": False,
        "checkpoint": {"resume": False},
        "compile": {"enabled": True, "steps": 6, "steps_argument": "steps_this_run", "time_limit": "12:00:00"},
        "env": {
            **ENVIRONMENT,
            "NEURON_CC_FLAGS": "--model-type=transformer -O1 --enable-saturate-infinity",
            "NEURON_FUSE_SOFTMAX": "1",
            "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS": "3",
            "NEURON_RT_STOCHASTIC_ROUNDING_EN": "1",
            # The scripts have no other way to 16 bits yet.
            "XLA_DOWNCAST_BF16": "1",
        },
    }


_NO_GQA = {"qkv_linear": False, "kv_replicator": False, "use_flash_attention": False}
_RATES = {"lr": "0.00015", "min_lr": "1e-05"}
GPT_AND_LLAMA2: dict[str, Definition] = {
    "gpt-neox-6.9b": _neox(
        "6.9b",
        "79c9b60ff7e94caf77c0798ef109058e96464ae9acc88ec281c8c7cb92660ae4",
        *("EleutherAI/pythia-6.9b", 1550, 8, 15, "1.2e-4"),
    ),
    "gpt-neox-20b": _neox(
        "20b",
        "e05af8f88e37d249f1ef41447de6900ab16af7a78f68c19dfa249bb9a1118ba3",
        *("EleutherAI/gpt-neox-20b", 10000, 32, 100, "0.97e-5"),
    ),
    # A global batch of 1024, where a node holds four replicas of 8 cores.
    "llama2-7b": _llama2(
        "7b",
        "llama3-8b",
        "tp_zero1_llama_hf_pretrain",
        **{**_NO_GQA, "tensor_parallel_size": 8, "lr": "3.0e-4", "grad_accum_usteps": 256},
        use_gpu_compatible_precision=False,
        num_layers=False,
    ),
    # Where it holds one of 8 times 4.
    "llama2-13b": _llama2(
        "13b",
        "llama3-70b",
        "tp_pp_llama_hf_pretrain",
        **{**_NO_GQA, **_RATES, "tensor_parallel_size": 8, "pipeline_parallel_size": 4},
        train_batch_size=1024,
        num_microbatches=1024,
    ),
    "llama2-70b": _llama2(
        "70b",
        "llama3-70b",
        "tp_pp_llama_hf_pretrain",
        **_RATES,
        use_flash_attention=False,
        use_gpu_compatible_precision=1,
    ),
}
