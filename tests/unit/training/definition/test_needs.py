"""What presets take from their nodes: packages and data."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.needs import (
    data_of,
    dataset_of,
    packages_of,
    problem,
)
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

FOLDER = "/opt/trainium"
UBUNTU = {"distribution": "Ubuntu", "distribution_version": "24.04"}
AMAZON = {"distribution": "Amazon", "distribution_version": "2023"}


def said(definition: dict[str, Any], *brought: str, **site: Any) -> str:
    return problem(definition, PRESETS, {"directory": FOLDER, "brought": brought, "system": {}, **site})


BERT_LARGE = {"preset": "bert-large-phase1"}


def test_a_preset_that_makes_its_data_needs_none() -> None:
    assert data_of({}, PRESETS, FOLDER) == {}
    assert said({}, system=UBUNTU) == ""


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("bert-large")])
def test_other_presets_name_and_bring_their_data(name: str) -> None:
    found = data_of({"preset": name}, PRESETS, FOLDER)
    assert found
    assert all(path.startswith("/opt/trainium/data/") and "]" not in path for path in found.values())
    assert "nothing brings data there" in said({"preset": name})
    archive = dataset_of({"preset": name}, PRESETS)["source"].rsplit("/", 1)[-1]
    assert list(found.values()) == [f"/opt/trainium/data/{archive.removesuffix('.tar')}"]
    assert dataset_of({"preset": name, "args": {"data_dir": "/mnt"}}, PRESETS) == {}
    assert dataset_of({"preset": name, "script": "own.py"}, PRESETS) == {}


@pytest.mark.parametrize("folder", ["/opt/trainium/data", "/opt/trainium", "/opt/"])
def test_a_dataset_or_a_mount_may_bring_it(folder: str) -> None:
    assert said({"preset": "bert-large-phase1"}, folder) == ""
    assert said({"preset": "bert-large-phase1"}, "/opt/trainium/database", "/mnt") != ""


def test_an_argument_of_ones_own_and_nodes_that_are_there_are_trusted() -> None:
    assert said({"preset": "bert-large-phase1", "args": {"data_dir": "/mnt/data"}}) == ""
    assert said({"preset": "bert-large-phase1"}, unknown=True) == ""


def test_packages_are_for_apt() -> None:
    assert "needs the packages 'debian-reference-en', which apt installs, and the nodes have Amazon 2023" in said(
        {}, system=AMAZON
    )
    assert said({"packages": []}, system=AMAZON) == ""
    assert said({"script": "a.py", "packages": ["jq"]}, system=AMAZON) != ""
    assert said({"preset": "none", "script": "a.py"}, system=AMAZON) == ""


def test_the_environment_gets_what_the_job_requires() -> None:
    usual = ["transformers", "tokenizers", "h5py"]
    assert packages_of({}, PRESETS) == packages_of({"preset": "none-such"}, PRESETS) == usual
    assert packages_of(BERT_LARGE, PRESETS) == [*PRESETS["bert-large-phase1"]["requirements"], "tokenizers"]
    assert packages_of({"script": "a.py", "requirements": ["Transformers[torch]==4.1"]}, PRESETS) == [
        *("Transformers[torch]==4.1", "tokenizers", "h5py")
    ]
    lacking = said(BERT_LARGE, "/opt", packages=["transformers", "tensorboard", "datasets", "h5py", "huggingface_hub"])
    assert lacking.startswith("neuron_venv_packages lacks sentencepiece==0.2.0, requests==2.31.0, which the training")
    assert said(BERT_LARGE, "/opt", packages=packages_of(BERT_LARGE, PRESETS)) == ""


@pytest.mark.parametrize(
    ("name", "site", "sentence"),
    [
        (
            "llama3-8b-lora",
            {"sdk": "2.31.1", "system": AMAZON, "python": "python3"},
            "needs Neuron SDK 2.26.1 (not 2.31.1), Python 3.10 to 3.11 (not 3.9), Ubuntu 22.04 (",
        ),
        ("gpt-neox-6.9b", {"sdk": "2.31.1"}, "The preset gpt-neox-6.9b needs Neuron SDK 2.29.1 (not 2.31.1); set"),
        ("bert-large-phase1", {"python": "/usr/bin/python3.13"}, "needs Python 3.10 to 3.12 (not 3.13); set"),
        ("llama2-7b", {"shared": False}, "needs storage that all 4 nodes share for data and checkpoints; set"),
        ("llama3-70b", {"bursting": True}, "writes checkpoints of 850 GB, each of which takes hours on an EFS in its"),
        ("llama2-70b", {"bursting": True}, "writes checkpoints of 850 GB, each of which takes hours on an EFS in its"),
        ("llama3-8b", {"instance_type": "trn1.2xlarge"}, "starts 32 processes on each node, and trn1.2xlarge has 2"),
        ("bert-large-phase1", {"nodes": 33}, "grad_accum_usteps of the training job is '32', which 33 nodes cannot"),
    ],
)
def test_what_cannot_run_is_refused_in_one_sentence(name: str, site: dict[str, Any], sentence: str) -> None:
    told = said({"preset": name}, "/opt", **site)
    assert sentence in told
    assert told.endswith(".")
    assert told.count(". ") == 0


@pytest.mark.parametrize("name", PRESETS)
def test_a_site_that_has_it_is_not_refused(name: str) -> None:
    needs = PRESETS[name].get("needs", {})
    distribution, version = needs.get("systems", ["Ubuntu 24.04"])[-1].split()
    system = {"distribution": distribution, "distribution_version": version}
    site = {"sdk": needs.get("sdk", ["", "2.29.1"])[1], "python": "python3", "system": system, "shared": True}
    more = {"nodes": PRESETS[name].get("nodes", 2), "instance_type": "trn1.32xlarge"}
    assert said({"preset": name}, "/opt", **site, **more) == ""


def test_other_scripts_interpreters_and_batches_are_the_users() -> None:
    assert said({"preset": "llama3-8b-lora", "script": "own.py"}, sdk="2.31.1", system=UBUNTU, python="python3") == ""
    assert said(BERT_LARGE, "/opt", python="/opt/conda/bin/python", sdk="") == ""
    assert said({**BERT_LARGE, "args": {"start_keep_batch": False}}, "/opt", nodes=64) == ""
    assert said({**BERT_LARGE, "args": {"grad_accum_usteps": 64}}, "/opt", nodes=64) == ""


def test_small_checkpoints_and_those_elsewhere_may_be_on_slow_storage() -> None:
    assert {said({"preset": name}, "/opt", bursting=True) for name in ("llama3-8b", "llama2-13b")} == {""}
    assert said({"preset": "llama3-70b", "args": {"checkpoint_dir": "/fsx/llama"}}, "/opt", bursting=True) == ""


def test_what_runs_in_an_image_has_the_sdk_of_the_image() -> None:
    site = {"directory": "/d", "sdk": "2.29.1", "unknown": True}
    definition = {"preset": "llama3-8b-lora"}
    assert "needs Neuron SDK 2.26.1 (not 2.29.1)" in problem(definition, PRESETS, site)
    assert problem({**definition, "image": "a/b:1-sdk2.26.1-ubuntu22.04"}, PRESETS, site) == ""
