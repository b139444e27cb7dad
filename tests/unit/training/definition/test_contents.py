"""What an image has to have for a training."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.needs import contents_of
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS


@pytest.mark.parametrize(
    ("definition", "packages", "requirements", "missing"),
    [
        ({}, ["debian-reference-en"], [], ["h5py", "tokenizers"]),
        ({"packages": []}, [], [], ["h5py", "tokenizers"]),
        ({"requirements": ["h5py==3.11.0"]}, ["debian-reference-en"], ["h5py==3.11.0"], []),
        ({"requirements": ["h5py", "regex"]}, ["debian-reference-en"], ["regex"], ["h5py"]),
        # A script of one's own takes none from the preset.
        ({"script": "a.py", "files": ["a.py"]}, [], [], []),
        ({"preset": "none", "packages": ["git"]}, ["git"], [], ["h5py", "tokenizers"]),
    ],
)
def test_packages_and_requirements(
    definition: dict[str, Any], packages: list[str], requirements: list[str], missing: list[str]
) -> None:
    found = contents_of(definition, PRESETS)
    assert (found["packages"], found["requirements"]) == (packages, requirements)
    assert [one.partition("==")[0] for one in found["missing"]] == missing
    assert all("==" in one for one in found["missing"])


def test_bert_needs_no_lock_file() -> None:
    for name in PRESETS:
        if name.startswith("bert"):
            assert all("==" in one for one in contents_of({"preset": name}, PRESETS)["requirements"])
