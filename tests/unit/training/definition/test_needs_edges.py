"""What nodes must have for a job: just enough, just not, and where nothing is known."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.needs import (
    contents_of,
    covers,
    data_of,
    image_problem,
    problem,
    requirements_of,
)

Item = dict[str, Any]
PRESETS: Item = {
    "bert": {"name": "bert"},
    "own": {
        "name": "own",
        "needs": {
            "sdk": ("2.26.0", "2.29.1"),
            "python": ("3.10", "3.11"),
            "systems": ["Ubuntu 22.04", "Ubuntu 24.04"],
            "shared": True,
            "checkpoint_gb": 850,
        },
        "args": {
            "checkpoint_dir": "/a",
            "data_dir": "{directory}/data/one",
            "other": "x",
            "files": "[{directory}/data/two,1]",
            "made": "{directory}/data/made",
        },
        "prepare": {"args": {"output": "{directory}/data/made"}},
        "dataset": {"source": "s3://x"},
        "requirements": ["h5py", "Own_Package.x[a]==1"],
        "packages": ["jq"],
    },
}
IMAGE = "public.ecr.aws/neuron/a:2.9.0-neuronx-py312-sdk{}-ubuntu24.04"


def said(definition: Item | None = None, **site: Any) -> str:
    whole = {"preset": "own", **(definition or {})}
    return problem(whole, PRESETS, {"directory": "/d", "unknown": True, "nodes": 2, **site})


def ubuntu(version: str) -> Item:
    return {"distribution": "Ubuntu", "distribution_version": version}


@pytest.mark.parametrize(
    "site",
    [
        {},
        *({"sdk": sdk} for sdk in ("2.26.0", "2.29.1", "", None)),
        *({"python": python} for python in ("python3.10", "/usr/bin/python3.11", "/opt/conda/bin/python", "python3")),
        {"system": ubuntu("22.04"), "python": "python3"},
        {"system": ubuntu("22.04")},
        {"shared": True},
        {"shared": False, "nodes": 1},
        {"bursting": False},
        {"packages": ["h5py", "own-package-x"]},
    ],
)
def test_a_site_that_has_what_the_preset_needs_is_enough(site: Item) -> None:
    assert said(**site) == ""


@pytest.mark.parametrize(
    ("site", "sentence"),
    [
        (
            {"sdk": "2.25.9"},
            "The preset own needs Neuron SDK 2.26.0 to 2.29.1 (not 2.25.9); set neuron_sdk_version, an",
        ),
        ({"sdk": "2.29.2"}, "(not 2.29.2)"),
        ({"python": "python3.9"}, "needs Python 3.10 to 3.11 (not 3.9);"),
        ({"python": "python3.12"}, "(not 3.12)"),
        ({"system": ubuntu("24.04"), "python": "/usr/bin/python3"}, "needs Python 3.10 to 3.11 (not 3.12);"),
        ({"system": ubuntu("20.04")}, "needs Ubuntu 22.04 or Ubuntu 24.04 (not Ubuntu 20.04);"),
        ({"sdk": "2.30.0", "python": "python3.13"}, "2.29.1 (not 2.30.0), Python 3.10 to 3.11 (not 3.13); set"),
        (
            {"shared": False},
            "needs storage that all 2 nodes share for data and checkpoints; set trainium_shared_storage",
        ),
        ({"bursting": True}, "writes checkpoints of 850 GB, each of which takes hours on an EFS in its mode bursting"),
        ({"packages": ["h5py"]}, "neuron_venv_packages lacks Own_Package.x[a]==1, which the training job requires;"),
        (
            {"system": {"distribution": "Debian", "distribution_version": "12"}},
            "needs Ubuntu 22.04 or Ubuntu 24.04 (not Debian 12)",
        ),
    ],
)
def test_a_site_that_lacks_what_the_preset_needs_is_told_what(site: Item, sentence: str) -> None:
    assert sentence in said(**site)


@pytest.mark.parametrize(
    ("definition", "site", "sentence"),
    [
        # Of nodes the job's own number counts, and not that of the cluster.
        ({"nodes": 1}, {"shared": False}, ""),
        ({"nodes": "3"}, {"shared": False, "nodes": 1}, "that all 3 nodes share"),
        ({"nodes": "x"}, {"shared": False, "nodes": 1}, ""),
        ({"args": {"checkpoint_dir": "/fsx"}}, {"bursting": True}, ""),
        ({"args": 5}, {"bursting": True}, "takes hours"),
        (
            {"processes_per_node": 33},
            {"instance_type": "trn1.32xlarge"},
            "starts 33 processes on each node, and trn1.32",
        ),
        ({"processes_per_node": 32}, {"instance_type": "trn1.32xlarge"}, ""),
        ({"processes_per_node": 3}, {"instance_type": "trn1.2xlarge"}, "trn1.2xlarge has 2 NeuronCores"),
        ({"processes_per_node": 3}, {"instance_type": "m5.large"}, ""),
        ({"processes_per_node": "auto"}, {"instance_type": "trn1.2xlarge"}, ""),
        ({"args": {"start_keep_batch": ["a", "b"], "a": 2, "b": 1}}, {}, "b of the training job is '1', which 2 nodes"),
        ({"args": {"start_keep_batch": "a", "a": 0}}, {}, ""),
        ({"args": {"start_keep_batch": "a", "a": 2}}, {}, ""),
        ({"args": {"start_keep_batch": "a"}}, {}, ""),
        ({"packages": []}, {"system": {"distribution": "Amazon", "distribution_version": "2023"}}, "(not Amazon 2023)"),
        ({"requirements": ["numpy"]}, {"packages": ["h5py"]}, "lacks numpy, which"),
        ({"requirements": []}, {"packages": ["h5py"]}, ""),
        ({"requirements": 5}, {"packages": ["h5py"]}, ""),
    ],
)
def test_what_a_definition_says_counts_more(definition: Item, site: Item, sentence: str) -> None:
    found = said(definition, **site)
    assert sentence in found if sentence else found == ""


def test_data_is_what_a_preset_reads_and_does_not_make() -> None:
    assert data_of({"preset": "own"}, PRESETS, "/d") == {"data_dir": "/d/data/one", "files": "/d/data/two"}
    assert data_of({"preset": "own", "args": {"data_dir": "/x"}}, PRESETS, "/d") == {"files": "/d/data/two"}
    assert data_of({"preset": "own", "args": None}, PRESETS, "/d").keys() == {"data_dir", "files"}
    told = said(unknown=False, brought=["/d/data/two"])
    assert told.startswith("data_dir of the training job is '/d/data/one', and nothing brings data there: set train")
    assert told.endswith("mount storage that has it, or set data_dir in args of trainium_training.")
    assert said(unknown=False, brought=["/d/data"]) == ""


@pytest.mark.parametrize(
    ("folder", "path", "does"),
    [("/a", "/a/b", True), ("/a/b/", "/a", True), ("/a", "/ab", False), ("/", "/a", True), ("/a/b", "/a/c", False)],
)
def test_which_folder_covers_which(folder: str, path: str, does: bool) -> None:
    assert covers(folder, path) is does


@pytest.mark.parametrize(
    ("image", "node", "refused"),
    [
        ("2.29.1", "2.29.1", False),
        ("2.29.0", "2.29.1", False),
        ("2.30.0", "2.29.1", True),
        # From 2.33 on the driver serves none before.
        ("2.32.9", "2.33.0", True),
        ("2.33.0", "2.33.0", False),
        ("2.33.0", "2.34.0", False),
        ("2.29.1", "", False),
    ],
)
def test_the_drivers_of_an_image(image: str, node: str, refused: bool) -> None:
    found = image_problem(IMAGE.format(image), {"sdk": node, "pyxis": "ignored"})
    assert bool(found) is refused
    if refused:
        assert f"whose Neuron SDK {image} does not run with the driver of SDK {node}; take another image" in found
    assert image_problem("a/b:1", {"sdk": "2.29.1"}) == image_problem(None, {"sdk": "2.29.1"}) == ""


def test_nodes_without_pyxis_and_images() -> None:
    assert said({"image": "a/b:1"}, pyxis="the nodes have no Pyxis") == (
        "image of the training job is 'a/b:1', and the nodes have no Pyxis."
    )
    assert said(pyxis="the nodes have no Pyxis") == ""
    # What runs in an image has the image's SDK, and what it lacks is not the node's matter.
    assert "needs Neuron SDK" in said({"image": IMAGE.format("2.20.0")}, sdk="2.29.1")


def test_what_an_image_of_a_job_contains() -> None:
    assert contents_of({"preset": "own"}, PRESETS) == {
        "packages": ["jq"],
        "requirements": ["Own_Package.x[a]==1"],
        "missing": ["h5py==3.16.0"],
    }
    # What reads data with the collection's own scripts has both.
    assert [one.partition("==")[0] for one in contents_of({}, PRESETS)["missing"]] == ["h5py", "tokenizers"]
    assert contents_of({"script": "a.py"}, PRESETS) == {"packages": [], "requirements": [], "missing": []}
    assert requirements_of({"requirements": ["a", 5]}, PRESETS) == ["a"]
