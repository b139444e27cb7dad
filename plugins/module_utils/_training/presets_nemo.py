# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPT-3 and Llama 2 as Neuron's NeMo-Megatron trains them. Pure."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.sources import (
    ENVIRONMENT,
    NEMO,
    Definition,
    fetched,
    started,
)

_NEMO_FETCH = [
    fetched(NEMO, path, checksum, path)
    for path, checksum in (
        ("megatron_gpt_pretraining.py", "232d5de1ae0eecef6588973b71a16411c3084c9e9e0421c0f44e011f0df23f03"),
        ("lightning_neuron_patch.py", "e3f64dbb50e6cbac7515b6b7ae83f04234d950df3d8937b03ac1fdc8f0446792"),
        ("conf/megatron_gpt_config.yaml", "3af563ad43e2114c3d7119ba0df8c98c1fdb344bd0ccdb97644d45b8b8cac2ea"),
        ("conf/megatron_llama_config.yaml", "a202b3bee8ad533859af4d24625114bb7cb1a0b443aa1624d0744e2818df4e56"),
        ("conf/megatron_llama_70b_config.yaml", "2088677df8d0d0b439fd90e18b7c492edf62cc70be153ca4eb53099a227015c2"),
        (
            "checkpoint_conversion/convert_nemo_checkpoint_to_hf.py",
            "b0283963a4cfca72023e7b09a867ee09255ca3e133f689ccba002df1279191a4",
        ),
        (
            "checkpoint_conversion/convert_nemo_checkpoint_to_hf_llama.py",
            "5b45cf3073c39ea2e5fd5fef3830f764d5acce1bd1c650fecff42b85f7d0e021",
        ),
        (
            "checkpoint_conversion/convert_nemo_checkpoint_to_hf_neox.py",
            "deb53a37ffee30f74cb1763ab4019a83d4b0dabfb8a16dda4ca779aa81bcb28e",
        ),
    )
]


def _nemo(name: str, nodes: int, config: str, steps: int, sizes: tuple[int, ...], **more: Any) -> Definition:
    """A job of NeMo-Megatron. ``sizes``: tensor and pipeline parallel, global batch, sequence, hidden, layers, heads.

    NeMo goes on from its own newest checkpoint, which it writes by the hour. The global batch is the whole job's.
    """
    tensor, pipeline, batch, sequence, hidden, layers, heads = sizes
    args = {
        "start_style": "hydra",
        "config-path": "{folder}/conf",
        "config-name": config,
        "trainer.max_steps": steps,
        "trainer.val_check_interval": steps + 1,
        "trainer.log_every_n_steps": 1,
        "trainer.limit_val_batches": 1,
        "trainer.limit_test_batches": 1,
        "trainer.precision": 32,
        "model.micro_batch_size": 1,
        "model.global_batch_size": batch,
        "model.tensor_model_parallel_size": tensor,
        "model.pipeline_model_parallel_size": pipeline,
        "model.max_position_embeddings": sequence,
        "model.encoder_seq_length": sequence,
        "model.data.seq_length": sequence,
        "model.data.num_workers": 1,
        "model.hidden_size": hidden,
        "model.num_layers": layers,
        "model.num_attention_heads": heads,
        "model.optim.name": "adamw",
        "model.optim.capturable": "True",
        "model.optim.betas": "[0.9,0.95]",
        "model.optim.sched.name": "CosineAnnealing",
        "model.sequence_parallel": "True",
        "model.activations_checkpoint_method": "uniform",
        "model.activations_checkpoint_num_layers": 1,
        "model.save_xser": "True",
        "model.load_xser": "True",
        "model.use_cpu_initialization": "True",
        "exp_manager.explicit_log_dir": f"{{directory}}/output/{name}",
        "exp_manager.resume_if_exists": "True",
        "exp_manager.resume_ignore_no_checkpoint": "True",
        "exp_manager.create_checkpoint_callback": "True",
        "exp_manager.checkpoint_callback_params.train_time_interval": 3600,
        **more,
    }
    begun = started("megatron_gpt_pretraining.py", **args)
    return {
        **begun,
        "name": name,
        "fetch": _NEMO_FETCH,
        # Both are built from the project's own repository.
        "requirements": ["nemo-toolkit==1.14.0", "apex", "transformers==4.31.0", "pytorch-lightning==1.8.6"],
        "steps": steps,
        "nodes": nodes,
        "processes_per_node": "32",
        "time_limit": "14-00:00:00",
        "compile": {
            "enabled": True,
            "steps": 4,
            "steps_argument": "trainer.max_steps",
            "args": {
                "trainer.val_check_interval": 5,
                "exp_manager.create_tensorboard_logger": "False",
                "exp_manager.create_checkpoint_callback": "False",
                "exp_manager.resume_if_exists": "False",
            },
            "time_limit": "12:00:00",
        },
        "env": {
            **ENVIRONMENT,
            "BUCKET_CAP_MB": "1024",
            "HYDRA_FULL_ERROR": "1",
            "MALLOC_ARENA_MAX": "128",
            "NEURON_CC_FLAGS": (
                "--model-type transformer --distribution-strategy=llm-training --enable-mixed-precision-accumulation"
            ),
            "NEURON_FUSE_SOFTMAX": "1",
            "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS": "5",
            "NEURON_RT_STOCHASTIC_ROUNDING_EN": "1",
            "TF_NUM_INTEROP_THREADS": "1024",
            "XLA_IO_THREAD_POOL_SIZE": "4",
            "XLA_THREAD_POOL_SIZE": "4",
            # This project's PyTorch is older than the torch-xla that deprecates it.
            "XLA_USE_BF16": "1",
        },
    }


def _gpt(size: str, nodes: int, sizes: tuple[int, ...], granularity: str, rate: str = "0.00015") -> Definition:
    hidden = sizes[4]
    return _nemo(
        f"gpt3-{size}",
        nodes,
        "megatron_gpt_config",
        300000,
        sizes,
        **{
            "model.ffn_hidden_size": 4 * hidden,
            "model.init_method_std": "0.021",
            "model.hidden_dropout": "0.1",
            "model.layernorm_epsilon": "1e-5",
            "model.activations_checkpoint_granularity": granularity,
            "model.tokenizer.vocab_file": "{directory}/data/gpt2/gpt2-vocab.json",
            "model.tokenizer.merge_file": "{directory}/data/gpt2/gpt2-merges.txt",
            "model.data.data_prefix": "[1.0,{directory}/data/gpt2/my-gpt2_text_document]",
            "model.optim.lr": rate,
            "model.optim.weight_decay": "0.01",
            "model.optim.sched.warmup_steps": 750,
            "model.optim.sched.constant_steps": 80000,
            "model.optim.sched.min_lr": "1.0e-5",
        },
    )


def _llama2(size: str, nodes: int, steps: int, sizes: tuple[int, ...], ffn: int, **more: Any) -> Definition:
    config = "megatron_llama_70b_config" if size == "70b" else "megatron_llama_config"
    return _nemo(
        f"llama2-{size}",
        nodes,
        config,
        steps,
        sizes,
        **{
            "model.ffn_hidden_size": ffn,
            "model.hidden_dropout": 0,
            "model.activations_checkpoint_granularity": "full",
            "model.tokenizer.type": f"{{directory}}/data/llama2-{size}-hf",
            "model.data.data_prefix": "[1.0,{directory}/data/llama2/book.jsonl-processed_text_document]",
            "model.optim.lr": "3.0e-4",
            "model.optim.weight_decay": "0.1",
            "model.optim.sched.warmup_steps": 2000,
            "model.optim.sched.constant_steps": 0,
            "model.optim.sched.min_lr": "3.0e-5",
            **more,
        },
    )


GPT_AND_LLAMA2: dict[str, Definition] = {
    "gpt3-6.7b": _gpt("6.7b", 4, (8, 1, 128, 2048, 4096, 32, 32), "full"),
    "gpt3-23b": _gpt("23b", 4, (8, 4, 128, 2048, 8192, 28, 64), "selective"),
    "gpt3-46b": _gpt("46b", 8, (8, 8, 256, 2048, 8192, 56, 64), "full"),
    "gpt3-175b": _gpt("175b", 8, (32, 8, 64, 2048, 12288, 96, 96), "selective", "5e-5"),
    "llama2-7b": _llama2(
        "7b",
        4,
        10000,
        (8, 1, 256, 4096, 4096, 32, 32),
        11008,
        **{"model.init_method_std": "0.021", "model.layernorm_epsilon": "1e-5"},
    ),
    "llama2-13b": _llama2(
        "13b",
        4,
        400000,
        (8, 4, 1024, 4096, 5120, 40, 40),
        13824,
        **{"model.init_method_std": "0.02", "model.layernorm_epsilon": "1e-6"},
    ),
    "llama2-70b": _llama2(
        "70b",
        32,
        20000,
        (8, 16, 512, 4096, 8192, 80, 64),
        28672,
        **{"model.init_method_std": "0.02", "model.layernorm_epsilon": "1e-5", "model.num_kv_heads": 8},
    ),
}
