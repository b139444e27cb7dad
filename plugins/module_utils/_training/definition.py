# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One definition of a training job and all that follows from it. Pure.

A definition names a preset and what differs from it. ``resolve`` completes it, refuses what cannot run with one
sentence, and adds what templates and tasks need: names, folder, commands, number of nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import numbers
from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import (
    RefusedError,
    arguments,
    check,
    check_partition,
    check_path,
    end_epoch,
    limit_seconds,
    shown,
)
from ansible_collections.trainium.cluster.plugins.module_utils._training.image import IN_PODS, container, sdk_of
from ansible_collections.trainium.cluster.plugins.module_utils._training.parallel import check_nodes

# What a key is where neither definition nor preset have it.
DEFAULTS: dict[str, Any] = {
    "name": "training",
    "files": [],
    "fetch": [],
    "packages": [],
    "requirements": [],
    "image": "",
    "prepare": {},
    "script": "",
    "mounts": [],
    "args": {},
    "steps": 0,
    "tensorboard": "",
    "nodes": 0,
    "min_nodes": 0,
    "processes_per_node": "auto",
    "time_limit": "24:00:00",
    "env": {},
    "secrets": {},
    "compile": {
        "enabled": False,
        "steps": 10,
        "command": ["neuron_parallel_compile"],
        "args": {},
        "steps_argument": "steps_this_run",
        # The second where the trial run has met no graph that was not in the cache (torch_neuronx, parallel_compile).
        "success": "Total failed compilations: 0|No todo hlos found",
        "time_limit": "6:00:00",
    },
    "checkpoint": {"steps": 0, "keep": 3, "resume": True, "shared": False},
    "requeue": True,
    "stop_before": 120,
    "stopped_by": "script",
    "ends_at": "",
    "cache": {
        # Where Neuron's compiler keeps it anyway.
        "directory": "/var/tmp/neuron-compile-cache",  # noqa: S108
        "clear_locks": True,
        "keep_days": 0,
    },
    "driver_reload": False,
    "reserved_port": 48620,
}
# A script of one's own has nothing to do with the preset's data and arguments.
OF_A_SCRIPT = (
    *("files", "fetch", "packages", "requirements", "prepare", "args", "env", "secrets", "compile", "steps"),
    *("checkpoint", "requeue", "stopped_by", "tensorboard", "needs", "dataset", "enough_nodes"),
)
# What presets say of the nodes; it is no part of the job.
OF_A_PRESET = ("needs", "dataset", "enough_nodes")
# Neuron's SDK from which on it has PyTorch's own kind of device in the place of PyTorch/XLA.
TORCH_NEURON = "2.33.0"
NONE = "none"
LAUNCHERS = ("slurm", "torchrun", *IN_PODS)
# The job's folder ends in so many digits of the definition and then in those of the number of nodes.
DEFINITION_DIGITS = 8
MOST_NODES = 0xFFFF


def resolve(
    definition: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]], context: Mapping[str, Any]
) -> dict[str, Any]:
    """The whole definition, and beside its keys what the role needs.

    ``context``: ``directory`` (folder for jobs, data and output), ``venv_path``, ``launcher``, ``usable`` (names of the
    nodes that take jobs), ``known`` (number of nodes there are, usable or not), ``checksums`` (file of the definition
    -> checksum of its content), ``active`` (scripts of the jobs in Slurm's queue), ``partition`` (of Slurm, or ''),
    ``shared`` (whether all nodes share ``directory``), ``mounts`` (folders with data), ``sdk`` (of the environment, or
    ''), ``block_ends_at`` (when the nodes are gone, or '') and ``unasked`` (whether nodes are started for the job, in a
    number that nobody has asked for).

    Added: ``digest``, ``folder``, ``log``, ``compile_log``, ``compile_name`` (of the job that compiles), ``count``
    (nodes wanted), ``least`` (nodes needed), ``nodes_option`` (as Slurm takes it), ``argv``, ``compile_argv`` and
    ``prepare_argv`` (arguments of the scripts), ``container`` (what its image makes of the job, or {}),
    ``cache_of_user`` (whether the user's id ends the cache's name), ``limit_seconds`` (0 for none) and
    ``ends_at_epoch`` (0 for never).

    Raises ValueError with one sentence for a definition that cannot be run.
    """
    check_path("training_job_directory", context["directory"])
    check_path("training_job_venv_path", context["venv_path"])
    check_partition(context.get("partition", ""))
    if context["launcher"] not in LAUNCHERS:
        raise ValueError(f"training_job_launcher is {shown(context['launcher'])}; use one of {', '.join(LAUNCHERS)}.")
    whole = complete(definition, presets)
    check(whole)
    if _is_for_xla(whole, sdk_of(whole["image"]) or str(context.get("sdk") or "")):
        _refuse_asked_for(definition)
        definition = merged(definition, {"compile": {"enabled": False}})
        whole = complete(definition, presets)
    made = container(whole, context)
    digest = _digest(whole, context)
    stem = f"{context['directory']}/jobs/{whole['name']}-{digest}"
    running = _running_count(stem, context.get("active") or ())
    count = running or _count(whole, context, enough_nodes(definition, presets))
    _check_resume(whole, max(count, context["known"]), bool(context.get("shared")))
    folder = f"{stem}{count:04x}"
    # Of a preset only: what a user writes is taken as it is.
    whole = complete(definition, presets, {"{directory}": context["directory"], "{folder}": folder})
    least = min(int(whole["min_nodes"]) or count, count)
    check_nodes(whole, count, least)
    if whole["tensorboard"] != "":
        check_path("tensorboard", whole["tensorboard"])
    # Not in the digest: one whose Capacity Block is extended stays the same job.
    ends_at = min(filter(None, (whole["ends_at"], context.get("block_ends_at"))), key=end_epoch, default="")
    compiling = whole["compile"]
    # The preset or the script has no such argument where it bears no name.
    limit = {compiling["steps_argument"]: int(compiling["steps"])} if compiling["steps_argument"] else {}
    limited = {**whole["args"], **limit, **compiling["args"]}
    whole.update(
        digest=f"{digest}{count:04x}",
        folder=folder,
        log=f"{folder}/train.log",
        compile_log=f"{folder}/compile.log",
        count=count,
        least=least,
        compile_name=f"{whole['name'][:56]}-compile",
        nodes_option=str(count) if least == count else f"{least}-{count}",
        argv=arguments(whole["args"]),
        compile_argv=arguments(limited, "compile.args"),
        prepare_argv=arguments(whole["prepare"].get("args", {}), "prepare.args"),
        container=made,
        env={name: str(value) for name, value in whole["env"].items()},
        limit_seconds=limit_seconds(whole["time_limit"]),
        ends_at_epoch=end_epoch(ends_at),
        ends_at=str(ends_at),
        # Programs for the device are taken from it: where nobody names one, each user of a node has their own.
        cache_of_user=whole["cache"]["directory"] == DEFAULTS["cache"]["directory"]
        and context["launcher"] not in IN_PODS,
    )
    return whole


def complete(
    definition: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]], tokens: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The definition over its preset, and that over the defaults. ``tokens`` are replaced in the preset's texts."""
    if not isinstance(definition, Mapping):
        raise ValueError(f"The definition of the training job is {shown(definition)}; write a dictionary.")
    name = definition.get("preset", "bert")
    if name != NONE and (not isinstance(name, str) or name not in presets):
        raise RefusedError("preset", name, f"use one of {', '.join([*sorted(presets), NONE])}")
    unknown = sorted(str(key) for key in definition if key not in DEFAULTS and key != "preset")
    if unknown:
        raise ValueError(f"The training job has no key {shown(unknown[0])}; use {', '.join(['preset', *DEFAULTS])}.")
    _check_shapes(definition)
    preset = {key: value for key, value in preset_of(definition, presets).items() if key not in OF_A_PRESET}
    whole = merged(merged(DEFAULTS, _replaced(preset, tokens or {})), definition)
    whole["preset"] = name
    return whole


def preset_of(definition: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the definition takes from its preset; nothing from one that does not exist."""
    preset = presets.get(str(definition.get("preset", "bert")), {})
    return {key: value for key, value in preset.items() if "script" not in definition or key not in OF_A_SCRIPT}


def enough_nodes(definition: Mapping[str, Any], presets: Mapping[str, Mapping[str, Any]]) -> int:
    """How many nodes the preset takes of those that would be started for it; 0 where it takes all."""
    return int(preset_of(definition, presets).get("enough_nodes", 0))


def _check_shapes(definition: Mapping[str, Any]) -> None:
    """What is merged key by key has to have keys, and none that nobody reads."""
    for key in ("compile", "checkpoint", "cache", "prepare"):
        value = definition.get(key, {})
        if not isinstance(value, Mapping):
            raise RefusedError(key, value, "use a dictionary")
        known = DEFAULTS[key] or ("script", "args")
        for name in value:
            if name not in known:
                raise RefusedError(f"a key of {key}", name, f"use {', '.join(known)}")


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid over ``base``, dictionaries within key by key."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def _replaced(value: Any, tokens: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for token, text in tokens.items():
            value = value.replace(token, text)
        return value
    if isinstance(value, Mapping):
        return {key: _replaced(one, tokens) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, tokens) for one in value]
    return value


def _is_for_xla(whole: Mapping[str, Any], sdk: str) -> bool:
    """Whether the step that compiles has nothing to run with: TorchNeuron of this SDK brings none for PyTorch/XLA."""
    compiling = whole["compile"]
    xla = compiling["enabled"] and compiling["command"][:1] == DEFAULTS["compile"]["command"]
    return bool(xla and sdk and numbers(sdk) >= numbers(TORCH_NEURON))


def _refuse_asked_for(definition: Mapping[str, Any]) -> None:
    if definition.get("compile", {}).get("enabled"):
        raise RefusedError(
            "compile.enabled",
            True,
            f"neuron_parallel_compile is for XLA, and Neuron SDK {TORCH_NEURON} has TorchNeuron, which compiles in the "
            "training: set it to false, or name a compile.command",
        )


def _digest(whole: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    """Everything that the job consists of, but its nodes: another file or argument makes another job."""
    parts = [whole, context["checksums"], context["venv_path"], context["launcher"]]
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=True)
    return sha256(text.encode()).hexdigest()[:DEFINITION_DIGITS]


def _check_resume(whole: Mapping[str, Any], nodes: int, shared: bool) -> None:
    """A checkpoint that one node has, or each a part of, is none for a job that may start again on other nodes."""
    checkpoint = whole["checkpoint"]
    if checkpoint["shared"] and nodes > 1 and not shared and (checkpoint["resume"] or whole["requeue"]):
        raise RefusedError(
            "checkpoint.resume" if checkpoint["resume"] else "requeue",
            True,
            f"the cluster's {nodes} nodes share no storage, so that each would go on from another step: set "
            "trainium_shared_storage to efs or fsx, or trainium_shared_dir to what shared_storage_mounts mount, or set "
            "checkpoint.resume and requeue to false",
        )


def _running_count(stem: str, active: Sequence[str]) -> int:
    """With how many nodes this definition is in the queue already; 0 where it is not.

    A node that is lost or gained while the job runs makes no second job of it.
    """
    for script in active:
        folder = str(PurePosixPath(script).parent)
        digits = folder[len(stem) :]
        if folder.startswith(stem) and len(digits) == 4 and all(one in "0123456789abcdef" for one in digits):
            return int(digits, 16)
    return 0


def _count(whole: Mapping[str, Any], context: Mapping[str, Any], enough: int) -> int:
    """How many nodes the job asks for."""
    usable, wanted, least = len(context["usable"]), int(whole["nodes"]), int(whole["min_nodes"])
    count = wanted or (min(usable, max(enough, least)) if enough and context.get("unasked") else usable)
    least = least or count
    known = context["known"]
    advice = f"{usable} of {known} nodes of the cluster take jobs; see sinfo for the others"
    if usable == known:
        advice = (
            f"the cluster has {known} nodes: raise trainium_node_count to {least}, or set nodes or min_nodes in "
            f"trainium_training to {known} or fewer"
        )
    if least > usable or not 1 <= count <= MOST_NODES:
        raise RefusedError(
            "min_nodes" if whole["min_nodes"] else "nodes", least if whole["min_nodes"] else count, advice
        )
    if least > count:
        raise RefusedError("min_nodes", least, f"use no more than the {count} nodes of the job")
    return count
