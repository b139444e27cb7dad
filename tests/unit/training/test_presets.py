"""Every preset is a definition as the role takes it, and is what the tutorials train."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import complete
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

DOCS = Path(__file__).parents[3] / "docs"
FILES = Path(__file__).parents[3] / "roles" / "training_job" / "files"
# Key -> type; what a definition may have, and what it has within.
KEYS: dict[str, type] = {
    "name": str,
    "files": list,
    "fetch": list,
    "packages": list,
    "requirements": list,
    "prepare": dict,
    "script": str,
    "args": dict,
    "steps": int,
    "nodes": int,
    "min_nodes": int,
    "processes_per_node": str,
    "time_limit": str,
    "env": dict,
    "compile": dict,
    "checkpoint": dict,
    "requeue": bool,
    "stopped_by": str,
}
COMPILE = {"enabled": bool, "steps": int, "steps_argument": str, "args": dict, "time_limit": str}
each = pytest.mark.parametrize("name", PRESETS)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


@each
def test_has_keys_and_types_of_a_definition(name: str) -> None:
    for key, value in PRESETS[name].items():
        assert isinstance(value, KEYS[key]), key
    for key, value in PRESETS[name].get("compile", {}).items():
        assert isinstance(value, COMPILE[key]), key
    for values in (PRESETS[name]["args"], PRESETS[name].get("env", {})):
        assert all(isinstance(value, (str, int, float)) for value in values.values())
    assert PRESETS[name]["name"] == name


@each
def test_its_script_is_among_its_files(name: str) -> None:
    preset = PRESETS[name]
    own = {Path(file).name for file in preset["files"]}
    fetched = [file["dest"] for file in preset.get("fetch", [])]
    assert preset["script"] in own
    assert preset["args"].get("start_script", preset["script"]) in own | set(fetched)
    assert preset.get("prepare", {}).get("script", preset["script"]) in own
    assert len(fetched) == len(set(fetched))
    assert all((FILES / file).is_file() for file in preset["files"])


@each
def test_fetches_one_commit_by_checksum(name: str) -> None:
    for file in PRESETS[name].get("fetch", []):
        assert set(file) == {"url", "checksum", "dest"}
        assert re.fullmatch(r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{40}/[\w./-]+", file["url"])
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", file["checksum"])
        # The checksum of an empty file is that of a download that failed.
        assert not file["checksum"].startswith("sha256:e3b0c442")


@each
def test_its_places_are_known(name: str) -> None:
    for text in texts(PRESETS[name]):
        assert set(re.findall(r"\{\w*\}?", text)) <= {"{directory}", "{folder}"}


@each
def test_a_compile_run_is_limited_by_an_argument_of_the_script(name: str) -> None:
    preset = PRESETS[name]
    if preset.get("compile", {}).get("enabled"):
        assert preset["compile"]["steps_argument"] in preset["args"]
        assert preset["compile"]["steps"] <= 10


def resumes() -> dict[str, tuple[str, str, str]]:
    """Preset -> what it goes on by, whether on shared storage only, and tests, as the documentation has them."""
    text = (DOCS / "training.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \| (yes|no|-) \| ([^|]+) \|$", text, re.MULTILINE)
    return {name: row[1:] for row in rows for name in re.findall(r"`([^`]+)`", row[0])}


def test_the_documentation_says_of_every_preset_how_it_resumes() -> None:
    assert set(resumes()) == set(PRESETS)


@each
def test_it_resumes_as_the_documentation_says(name: str) -> None:
    by, shared, tests = resumes()[name]
    preset = PRESETS[name]
    whole = complete({"preset": name}, PRESETS)
    if "`requeue: false`" in by:
        assert (whole["requeue"], whole["checkpoint"]["resume"], shared) == (False, False, "-")
        # The documentation says why.
        assert re.search(rf"^`{name}` .*begin", (DOCS / "training.md").read_text(encoding="utf-8"), re.MULTILINE)
        return
    assert whole["requeue"] and whole["checkpoint"]["resume"]
    assert whole["checkpoint"]["shared"] == (shared == "yes")
    ways = re.findall(r"`([A-Za-z_.]+(?:=\w+)?)`", by)
    known = {"TRAINIUM_RESUME": name == "bert", "exp_manager.resume_if_exists": name.startswith(("gpt3", "llama2"))}
    for way in ways:
        option, value = (*way.split("="), "")[:2]
        assert known.get(way) or preset["args"][option] == value, way
    named = re.findall(r"`(test_\w+)`", tests)
    assert named or tests == "upstream's own"
    for test in named:
        assert any(f"def {test}(" in path.read_text(encoding="utf-8") for path in (DOCS.parent / "tests").rglob("*.py"))


def test_bert_brings_all_modules_of_its_script() -> None:
    modules = {path.relative_to(FILES).as_posix() for path in (FILES / "bert").glob("*.py")}
    assert set(PRESETS["bert"]["files"]) == modules


@pytest.mark.parametrize(
    ("name", "steps", "batch", "accumulation", "rate"),
    [
        ("bert-large-phase1", 28125, 16, 32, 4e-4),
        ("bert-large-phase1-lamb", 7032, 16, 128, 6e-3),
        ("bert-large-phase2", 1563, 2, 512, 2.8e-4),
        ("bert-large-phase2-lamb", 1563, 2, 512, 4e-3),
    ],
)
def test_bert_large_is_that_of_the_tutorial(name: str, steps: int, batch: int, accumulation: int, rate: float) -> None:
    args = PRESETS[name]["args"]
    assert (PRESETS[name]["steps"], args["steps_this_run"], args["max_steps"]) == (steps, steps, steps)
    assert (args["batch_size"], args["grad_accum_usteps"], float(args["lr"])) == (batch, accumulation, rate)
    assert args.get("optimizer", "AdamW") == ("LAMB" if name.endswith("lamb") else "AdamW")


@pytest.mark.parametrize(("name", "end"), [("bert-large-phase2", 28125), ("bert-large-phase2-lamb", 7032)])
def test_phase_2_begins_where_phase_1_ends(name: str, end: int) -> None:
    args = PRESETS[name]["args"]
    before = PRESETS[name.replace("phase2", "phase1")]
    assert args["resume_ckpt_path"] == f"{before['args']['output_dir']}/ckpt_{end}.pt"
    assert args["phase1_end_step"] == before["steps"] == end


@pytest.mark.parametrize(
    ("name", "nodes", "tensor", "pipeline", "batch"),
    [
        ("llama2-7b", 4, 8, 1, 256),
        ("llama2-13b", 4, 8, 4, 1024),
        ("llama2-70b", 32, 8, 16, 512),
        ("gpt3-6.7b", 4, 8, 1, 128),
        ("gpt3-23b", 4, 8, 4, 128),
        ("gpt3-46b", 8, 8, 8, 256),
        ("gpt3-175b", 8, 32, 8, 64),
    ],
)
def test_nemo_jobs_have_the_figures_of_the_tutorials(
    name: str, nodes: int, tensor: int, pipeline: int, batch: int
) -> None:
    preset = PRESETS[name]
    args = preset["args"]
    assert preset["nodes"] == nodes
    assert args["model.tensor_model_parallel_size"] == tensor
    assert args["model.pipeline_model_parallel_size"] == pipeline
    assert args["model.global_batch_size"] == batch
    # Whole replicas, and whole micro-batches for each of them.
    replicas, rest = divmod(nodes * int(preset["processes_per_node"]), tensor * pipeline)
    assert rest == 0
    assert batch % replicas == 0
