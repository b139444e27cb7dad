"""Presets of large models: figures of NeuronX Distributed's tutorials, and what follows from the models themselves."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import limit_seconds
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import DEFAULTS
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

LLAMA = [name for name in PRESETS if name.startswith("llama") and not name.endswith("lora")]
LARGE = [*LLAMA, *(name for name in PRESETS if name.startswith("gpt-neox"))]
# Heads of keys and values where they are fewer than those of queries (the models' config.json).
KEY_HEADS = {"llama2-70b": 8, "llama3-8b": 8, "llama3-70b": 8}
PIPELINED = [name for name in LLAMA if "pipeline_parallel_size" in PRESETS[name]["args"]]


@pytest.mark.parametrize(
    ("name", "length", "steps", "rate", "warmup"),
    [
        ("llama2-7b", 4096, 10000, 3e-4, 100),
        ("llama2-13b", 4096, 30000, 1.5e-4, 2000),
        ("llama2-70b", 4096, 30000, 1.5e-4, 2000),
        ("llama3-8b", 8192, 10000, 1.5e-4, 100),
        ("llama3-70b", 8192, 30000, 1.5e-5, 2000),
        ("gpt-neox-6.9b", None, 1550, 1.2e-4, 15),
        ("gpt-neox-20b", None, 10000, 0.97e-5, 100),
    ],
)
def test_how_long_and_how_fast_they_learn(name: str, length: int | None, steps: int, rate: float, warmup: int) -> None:
    preset = PRESETS[name]
    args = preset["args"]
    assert (args.get("seq_len"), args["warmup_steps"], float(args["lr"])) == (length, warmup, rate)
    # The script ends where the job's report expects it.
    assert preset["steps"] == args["max_steps"] == args.get("steps_this_run", steps) == steps


@pytest.mark.parametrize("name", LARGE)
def test_compiling_a_large_model_may_take_longer_than_others(name: str) -> None:
    preset = PRESETS[name]
    compiling = preset["compile"]
    assert compiling["enabled"]
    assert limit_seconds(compiling["time_limit"]) == 2 * limit_seconds(DEFAULTS["compile"]["time_limit"])
    assert limit_seconds(preset["time_limit"]) == 14 * 86400
    # Its graphs are all met in the first steps, and a run of these leaves no checkpoint to go on from.
    assert compiling["steps"] <= 10
    assert compiling.get("args", {}) == ({"checkpoint_freq": -1} if name in PIPELINED else {})


@pytest.mark.parametrize("name", LLAMA)
def test_heads_of_keys_are_copied_to_all_cores_of_a_tensor(name: str) -> None:
    args = PRESETS[name]["args"]
    heads = KEY_HEADS.get(name)
    assert bool(args["qkv_linear"]) == (heads is not None)
    assert args["kv_replicator"] == (args["tensor_parallel_size"] // heads if heads else False)


@pytest.mark.parametrize("name", LLAMA)
def test_llama_saves_often_enough_to_go_on_and_keeps_some(name: str) -> None:
    preset = PRESETS[name]
    args = preset["args"]
    assert (args["checkpoint_freq"], args["num_kept_checkpoint"], args["start_resume"]) == (500, 3, "nxd")
    output = f"{{directory}}/output/{name}"
    assert args["checkpoint_dir"] == output
    assert args["metrics_file"] == f"{output}/results.json"
    assert preset["checkpoint"]["shared"] and preset["stopped_by"] == "job"
    assert preset["tensorboard"] == output


@pytest.mark.parametrize("name", LLAMA)
def test_llama_has_the_switches_of_its_script(name: str) -> None:
    """Memory is saved by ZeRO-1 and by computing activations again, wherever a model is too large for a node."""
    args, env = PRESETS[name]["args"], PRESETS[name]["env"]
    flash = 1 if name.startswith("llama3") else False
    assert args["use_flash_attention"] == flash
    precise = {"llama2-7b": False, "llama2-70b": 1, "llama3-8b": 1}
    assert args.get("use_gpu_compatible_precision") == precise.get(name)
    assert args.get("num_layers") == {"llama2-7b": False, "llama3-8b": 32}.get(name)
    if name in PIPELINED:
        on = ("use_zero1_optimizer", "use_selective_checkpoint", "use_meta_device_init", "save_load_xser")
        assert [args[key] for key in on] == [1] * 4
        assert args["pretrained_weight"] == args["constant_steps"] == 0
        assert (args["beta1"], args["beta2"], args["weight_decay"]) == ("0.9", "0.95", "0.1")
        assert float(args["min_lr"]) == (1e-6 if name == "llama3-70b" else 1e-5)
        assert (args["tb_dir"], args["start_tensorboard"]) == (f"{args['checkpoint_dir']}/tensorboard", "tb_dir")
        assert (env["MALLOC_ARENA_MAX"], env["XLA_DOWNCAST_BF16"], env["XLA_DISABLE_FUNCTIONALIZATION"]) == (
            "128",
            "1",
            "0",
        )
    else:
        on = ("use_zero_1", "use_mix_precision", "sequence_parallel_enabled", "selective_checkpoint_enabled")
        assert all(args[key] is True for key in on)
        assert (args["batch_size"], args["logging_interval"]) == (1, 1)
        # In 16 bits by its own mixed precision, which a cast of everything would make worthless.
        assert "XLA_DOWNCAST_BF16" not in env
    assert env["NEURON_FUSE_SOFTMAX"] == "1"
    assert "--model-type" in env["NEURON_CC_FLAGS"] and "transformer" in env["NEURON_CC_FLAGS"]
    assert int(env["NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS"]) == (7 if name in PIPELINED else 3)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("gpt-neox")])
def test_neox_is_rounded_at_random_and_begins_anew(name: str) -> None:
    preset = PRESETS[name]
    env = preset["env"]
    assert (env["NEURON_RT_STOCHASTIC_ROUNDING_EN"], env["XLA_DOWNCAST_BF16"]) == ("1", "1")
    # It saves at its end alone.
    assert (preset["requeue"], preset["checkpoint"]["resume"]) == (False, False)
    assert preset["args"]["metrics_file"].startswith(preset["args"]["output_dir"])


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "bert"])
def test_what_other_projects_wrote_waits_ten_minutes_for_the_other_nodes(name: str) -> None:
    env = PRESETS[name]["env"]
    assert (env["NEURON_RT_EXEC_TIMEOUT"], env["NEURON_RT_STOCHASTIC_ROUNDING_SEED"]) == ("600", "0")
    assert int(env["MALLOC_ARENA_MAX"]) in (64, 128)


def test_lora_is_one_node_that_learns_answers_three_times_over() -> None:
    preset: dict[str, Any] = PRESETS["llama3-8b-lora"]
    args = preset["args"]
    assert (preset["nodes"], args["num_train_epochs"], args["max_steps"], args["do_train"]) == (1, 3, -1, True)
    # 32 processes are 4 copies of 8: a global batch of 64.
    copies = int(preset["processes_per_node"]) // args["tensor_parallel_size"]
    assert copies * args["per_device_train_batch_size"] * args["gradient_accumulation_steps"] == 64
    assert (float(args["learning_rate"]), args["bf16"], args["async_save"]) == (1e-4, True, True)
    assert (args["warmup_steps"], args["logging_steps"], preset["compile"]["steps"]) == (5, 1, 5)
    assert (preset["checkpoint"]["resume"], preset["requeue"]) == (False, False)
    assert args["output_dir"] == preset["tensorboard"]


def test_bert_is_small_enough_for_processors() -> None:
    args = PRESETS["bert"]["args"]
    assert (args["hidden_size"] % args["heads"], args["steps_this_run"]) == (0, PRESETS["bert"]["steps"])
    parameters = 12 * args["layers"] * args["hidden_size"] ** 2
    assert parameters < 1e6 and args["batch_size"] < 16
    assert 0 < args["warmup_steps"] <= args["steps_this_run"] // 10
    # It can be killed and go on in the middle.
    assert 0 < PRESETS["bert"]["checkpoint"]["steps"] < args["steps_this_run"] / 2


@pytest.mark.parametrize("name", [name for name in PRESETS if "-phase" in name])
def test_bert_large_warms_up_and_keeps_few_checkpoints(name: str) -> None:
    args = PRESETS[name]["args"]
    assert args["num_ckpts_to_keep"] == 3
    if "phase2" in name:
        assert (args["phase2"], args["resume_ckpt"]) == (True, True)
        assert (args["max_pred_len"], args["warmup_steps"]) == (80, PRESETS[name]["steps"] // 2)
        assert args["data_dir"].endswith("seqlen512")
    else:
        assert args["warmup_steps"] == 2000
        assert args["data_dir"].endswith("seqlen128")
    assert args["start_checkpoints"] == args["output_dir"] == PRESETS[name]["tensorboard"]
    assert (args["start_resume"], args["metrics_file"]) == ("bert", f"{args['output_dir']}/results.json")
    env = PRESETS[name]["env"]
    assert (env["BUCKET_CAP_MB"], env["XLA_TRANSFER_SEED_ASYNC"]) == ("512", "1")
    assert limit_seconds(PRESETS[name]["time_limit"]) == 3 * 86400
