"""Every preset is a definition as the role takes it, and is what the tutorials train."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import (
    NeuronSdkError,
    Request,
    numbers,
    plan,
)
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import RELEASES, SYSTEMS
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import complete
from ansible_collections.trainium.cluster.plugins.module_utils._training.needs import data_of
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

DOCS = Path(__file__).parents[4] / "docs"
FILES = Path(__file__).parents[4] / "roles" / "training_job" / "files"
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
    "enough_nodes": int,
    "min_nodes": int,
    "processes_per_node": str,
    "time_limit": str,
    "env": dict,
    "compile": dict,
    "checkpoint": dict,
    "requeue": bool,
    "stopped_by": str,
    "secrets": dict,
    "needs": dict,
    "dataset": dict,
    "tensorboard": str,
}
NEEDS = {"sdk": tuple, "python": tuple, "systems": tuple, "shared": bool, "checkpoint_gb": int}
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
    for key, value in PRESETS[name].get("needs", {}).items():
        assert isinstance(value, NEEDS[key]), key
    for values in (PRESETS[name]["args"], PRESETS[name].get("env", {})):
        assert all(isinstance(value, (str, int, float, list)) for value in values.values())
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


# Of these no commit could be seen anywhere but on the hub itself.
NEWEST = {"EleutherAI/pythia-6.9b"}


@each
def test_models_and_datasets_of_the_hub_are_of_one_commit(name: str) -> None:
    brought = PRESETS[name].get("prepare", {}).get("args", {})
    for one in [*brought.get("model", []), *brought.get("dataset", [])]:
        assert one in NEWEST or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)
        text = (DOCS / "training.md").read_text(encoding="utf-8")
        assert one.replace("@", "` | `") in text or f"`{one}` | newest" in text


@each
def test_its_events_are_looked_for_where_it_writes_them(name: str) -> None:
    args, folder = PRESETS[name]["args"], PRESETS[name].get("tensorboard", "")
    written = [args[key] for key in ("tb_dir", "exp_manager.explicit_log_dir", "output_dir") if key in args]
    # The collection's own is made from its log.
    assert folder == "" if name == "bert" else f"{written[0]}/".startswith(f"{folder}/")


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
    known = {"TRAINIUM_RESUME": name == "bert"}
    for way in ways:
        option, value = (*way.split("="), "")[:2]
        assert known.get(way) or preset["args"][option] == value, way
    named = re.findall(r"`(test_\w+)`", tests)
    assert named
    for test in named:
        assert any(f"def {test}(" in path.read_text(encoding="utf-8") for path in (DOCS.parent / "tests").rglob("*.py"))


def test_bert_brings_all_modules_of_its_script() -> None:
    modules = {path.relative_to(FILES).as_posix() for path in (FILES / "bert").glob("*.py")}
    assert set(PRESETS["bert"]["files"]) == modules


TUTORIAL = [
    ("bert-large-phase1", 28125, 16, 32, 4e-4),
    ("bert-large-phase1-lamb", 7032, 16, 128, 6e-3),
    ("bert-large-phase2", 1563, 2, 512, 2.8e-4),
    ("bert-large-phase2-lamb", 1563, 2, 512, 4e-3),
]
# As run_dp_bert_large_hf_pretrain_bf16_*.sh of the commit have them: how much less a core holds, and arguments.
MODES: dict[str, tuple[int, dict[str, Any]]] = {
    "": (1, {}),
    "-amp": (1, {"enable_pt_autocast": True}),
    "-fp32paramscopy": (1, {"optimizer": "AdamW_FP32ParamsCopy"}),
    "-fp32": (2, {"enable_fp32": True, "optimizer": "AdamW"}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "steps", "batch", "accumulation", "rate"), TUTORIAL)
def test_bert_large_is_that_of_the_tutorial(
    name: str, steps: int, batch: int, accumulation: int, rate: float, mode: str
) -> None:
    lamb = {"optimizer": "LAMB"} if name.endswith("lamb") else {}
    # Its optimizer would write random weights over those of phase 1.
    if mode == "-fp32paramscopy" and name != "bert-large-phase1":
        assert f"{name}{mode}" not in PRESETS
        return
    preset = PRESETS[f"{name}{mode}"]
    args, (less, more) = preset["args"], MODES[mode]
    assert (preset["steps"], args["steps_this_run"], args["max_steps"]) == (steps, steps, steps)
    assert (args["batch_size"], args["grad_accum_usteps"], float(args["lr"])) == (
        batch // less,
        accumulation * less,
        rate,
    )
    known = ("optimizer", "enable_pt_autocast", "enable_fp32")
    assert {key: args[key] for key in known if key in args} == {**more, **lamb}
    assert args["start_keep_batch"] == "grad_accum_usteps"
    assert {"adamw_fp32_params_copy.py", "adamw_fp32_optim_params.py", "lamb.py"} <= {
        file["dest"] for file in preset["fetch"]
    }


@pytest.mark.parametrize("mode", ["", "-amp", "-fp32"])
@pytest.mark.parametrize(("name", "end"), [("bert-large-phase2", 28125), ("bert-large-phase2-lamb", 7032)])
def test_phase_2_begins_where_phase_1_ends(name: str, end: int, mode: str) -> None:
    args = PRESETS[name + mode]["args"]
    before = PRESETS[name.replace("phase2", "phase1") + mode]
    assert args["resume_ckpt_path"] == f"{before['args']['output_dir']}/ckpt_{end}.pt"
    assert args["phase1_end_step"] == before["steps"] == end


@each
def test_what_it_needs_can_be_had(name: str) -> None:
    """The releases of the matrix agree with what the preset says of them."""
    preset = PRESETS[name]
    needs = preset.get("needs", {})
    order = [release.sdk for release in reversed(RELEASES)]
    if needs:
        first, last = (order.index(sdk) for sdk in needs["sdk"])
        assert first <= last
        assert all(numbers(low) <= numbers(high) for low, high in (needs["sdk"], needs["python"]))
        named = [tuple(one.split()) for one in needs.get("systems", ["Ubuntu 24.04", "Ubuntu 22.04"])]
        # Each system serves with some of the releases, and with the Python that it has.
        for distribution, version in named:
            system = SYSTEMS[distribution, version]
            fits = numbers(needs["python"][0]) <= numbers(system.python) <= numbers(needs["python"][1])
            served = [sdk for sdk in order[first : last + 1] if serves(sdk, distribution, version, system.python)]
            # Ubuntu 24.04 is there with another Python, too.
            assert (fits and served) or (needs["python"][1] == "3.11" and version == "24.04"), (name, version)
    # Whoever reads the cache of Hugging Face offline has it filled before.
    if "HF_HOME" in preset.get("env", {}):
        assert preset["env"]["HF_HOME"] == "{directory}/huggingface"
        assert preset["prepare"]["args"]["model"]
        assert "HF_HUB_OFFLINE" not in preset["env"]


def serves(sdk: str, distribution: str, version: str, python: str) -> bool:
    try:
        plan(Request(sdk, distribution, version, python=python))
    except NeuronSdkError:
        return False
    return True


@each
def test_packages_of_neuron_are_named_so_that_they_come_from_its_index(name: str) -> None:
    """Those that another package requires are bound to it only where they are named (vars of the role neuron_venv)."""
    wanted = PRESETS[name].get("requirements", [])
    nxd = [one for one in wanted if one.startswith("neuronx-distributed==")]
    assert bool(nxd) == (any("optimum-neuron" in one for one in wanted) or name.startswith(("llama", "gpt")))


@each
def test_its_data_is_made_or_brought(name: str) -> None:
    preset = PRESETS[name]
    read = set(data_of({"preset": name}, PRESETS, "/opt").values())
    if not read:
        assert "dataset" not in preset
        return
    assert len(read) == 1
    # The archive holds a folder of its own name.
    archive = preset["dataset"]["source"].rsplit("/", 1)[-1]
    assert read == {f"/opt/data/{archive.removesuffix('.tar')}"}
    assert preset["dataset"]["signed"] is False


@pytest.mark.parametrize(
    ("name", "nodes", "tensor", "pipeline", "batch"),
    [
        ("llama2-7b", 4, 8, 1, 1024),
        ("llama2-13b", 32, 8, 4, 1024),
        ("llama2-70b", 32, 32, 8, 1024),
        ("llama3-8b", 4, 32, 1, 1024),
        ("llama3-70b", 32, 32, 8, 1024),
        ("gpt-neox-6.9b", 4, 8, 1, 256),
        ("gpt-neox-20b", 4, 32, 1, 256),
    ],
)
def test_nxd_jobs_have_the_figures_of_the_tutorials(
    name: str, nodes: int, tensor: int, pipeline: int, batch: int
) -> None:
    preset = PRESETS[name]
    args = preset["args"]
    assert preset["nodes"] == nodes
    assert args["tensor_parallel_size"] == tensor
    assert args.get("pipeline_parallel_size", 1) == pipeline
    # Whole replicas, and the same global batch at any number of nodes that holds them.
    replicas, rest = divmod(nodes * int(preset["processes_per_node"]), tensor * pipeline)
    assert rest == 0
    kept = args["start_keep_batch"]
    for one in [kept] if isinstance(kept, str) else kept:
        assert divmod(args[one], nodes) == (batch // replicas, 0)
    script = next(file["dest"] for file in preset["fetch"] if file["dest"] == preset["prepare"]["args"]["script"])
    assert script == "get_dataset.py"
    assert preset["prepare"]["args"]["data"] in (args.get("data_dir"), args.get("training_dir"))
    assert ("HF_TOKEN" in preset.get("secrets", {})) == name.startswith("llama")


def row(name: str) -> str:
    preset = PRESETS[name]
    needs, prepare = preset.get("needs", {}), preset.get("prepare", {}).get("args", {})
    brought = [*prepare.get("model", []), *prepare.get("dataset", [])] if "model" in prepare else []
    brought = [one.split("@")[0] for one in brought]
    data = preset.get("dataset", {}).get("source", "").rsplit("/", 1)[-1] or prepare.get("makes", "")
    checkpoint = preset.get("checkpoint", {})
    goes_on = checkpoint.get("shared") and checkpoint.get("resume", True)
    cells = [
        f"`{name}`",
        " to ".join(dict.fromkeys(needs.get("sdk", []))) or "any",
        " to ".join(needs.get("python", [])) or "any",
        ", ".join(needs.get("systems", [])) or ("Ubuntu, Debian" if preset.get("packages") else "any of the SDK"),
        str(preset.get("nodes") or "any number"),
        f"`{data}`" if data else "",
        ", ".join(f"`{one}`" for one in brought),
        ", ".join(preset.get("secrets", {})),
        "yes" if needs.get("shared") else "only to resume" if goes_on else "",
    ]
    return f"| {' | '.join(cells)} |".replace("  ", " ")


def test_the_documentation_says_what_each_needs() -> None:
    modes = ("-amp", "-fp32", "-fp32paramscopy")
    wanted = [row(name) for name in PRESETS if not name.endswith(modes)]
    text = (FILES.parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    missing = [line for line in wanted if line not in text]
    assert missing == [], "\n".join(wanted)
