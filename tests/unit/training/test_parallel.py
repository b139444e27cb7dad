"""Numbers of nodes that hold whole copies of a model which is cut into parts, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import resolve
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

OWN: dict[str, Any] = {"preset": "none", "script": "a.py", "files": ["a.py"], "processes_per_node": 32}


def job(definition: dict[str, Any], nodes: int = 64) -> dict[str, Any]:
    context = {
        "directory": "/opt/trainium",
        "venv_path": "/opt/venv",
        "launcher": "slurm",
        "usable": [f"n{number}" for number in range(nodes)],
        "known": nodes,
        "checksums": {},
        "shared": True,
    }
    return resolve({"secrets": {"HF_TOKEN": "~/token"}, **definition}, PRESETS, context)


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        (
            {"preset": "llama3-70b", "nodes": 12},
            (
                "nodes of the training job is '12'; tensor_parallel_size 32 x pipeline_parallel_size 8 of its args "
                "takes 256 processes or a multiple, and a node has 32: use a multiple of 8 nodes."
            ),
        ),
        ({"preset": "llama2-13b", "nodes": 1, "processes_per_node": 8}, "use a multiple of 4 nodes."),
        ({"preset": "gpt-neox-20b", "nodes": 3, "processes_per_node": 16}, "use a multiple of 2 nodes."),
        # Fewer processes than a tensor has parts.
        ({"preset": "llama3-8b-lora", "processes_per_node": 2}, "takes 8 processes or a multiple, and a node has 2"),
        ({**OWN, "nodes": 3, "args": {"context_parallel_size": 64}}, "use a multiple of 2 nodes."),
        # Slurm would start it on any number in between.
        (
            {**OWN, "nodes": 4, "min_nodes": 2, "args": {"tensor_parallel_size": "64"}},
            (
                "min_nodes of the training job is '2'; tensor_parallel_size 64 of its args takes 64 processes or a "
                "multiple, and a node has 32: use as many as nodes."
            ),
        ),
        (
            {"preset": "llama3-8b", "nodes": 4, "min_nodes": 3},
            (
                "min_nodes of the training job is '3'; its checkpoints have a part of the optimizer's state for each "
                "of 4 nodes, and fewer cannot go on from them: use as many as nodes, or set checkpoint.resume to false."
            ),
        ),
    ],
)
def test_others_are_refused(definition: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        job(definition)
    assert sentence in str(caught.value)
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    ("definition", "count"),
    [
        ({"preset": "llama3-70b", "nodes": 16}, 16),
        ({"preset": "llama3-8b", "nodes": 3}, 3),
        ({"preset": "llama3-8b", "nodes": 4, "min_nodes": 3, "checkpoint": {"resume": False}, "requeue": False}, 4),
        ({**OWN, "nodes": 3, "min_nodes": 2, "args": {"tensor_parallel_size": 8}}, 3),
        # What the nodes have is seen there.
        ({**OWN, "nodes": 3, "processes_per_node": "auto", "args": {"tensor_parallel_size": 64}}, 3),
        # An argument of another kind.
        ({**OWN, "nodes": 3, "args": {"tensor_parallel_size": "all", "pipeline_parallel_size": True}}, 3),
    ],
)
def test_whole_copies_are_taken(definition: dict[str, Any], count: int) -> None:
    assert job(definition)["count"] == count


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_has_them(name: str) -> None:
    assert job({"preset": name})["count"] == PRESETS[name].get("nodes", 64)
