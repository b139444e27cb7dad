"""What presets take from their nodes: packages and data."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.needs import data_of, problem
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

FOLDER = "/opt/trainium"
UBUNTU = {"distribution": "Ubuntu", "distribution_version": "24.04"}
AMAZON = {"distribution": "Amazon", "distribution_version": "2023"}


def said(definition: dict[str, Any], *brought: str, system: Any = None, unknown: bool = False) -> str:
    return problem(definition, PRESETS, FOLDER, system or {}, brought, unknown)


def test_a_preset_that_makes_its_data_needs_none() -> None:
    assert data_of({}, PRESETS, FOLDER) == {}
    assert said({}, system=UBUNTU) == ""


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith(("bert-large", "gpt", "llama2"))])
def test_other_presets_name_their_data(name: str) -> None:
    found = data_of({"preset": name}, PRESETS, FOLDER)
    assert found
    assert all(path.startswith("/opt/trainium/data/") and "]" not in path for path in found.values())
    assert "nothing brings data there" in said({"preset": name})


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
