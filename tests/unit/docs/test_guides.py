"""What the guides name is there: variables, playbooks, files of the repository, other guides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
GUIDES = sorted((ROOT / "docs/docsite/rst").glob("*.rst"))
VARIABLES = {
    name
    for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    for spec in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values()
    for name in spec.get("options", {})
}


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_what_a_guide_names_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:trainium|training_job|parallelcluster|eks_\w+?)_[a-z_]+\b", text))
    assert named - VARIABLES - {path.parent.name for path in ROOT.glob("roles/*/meta")} == set()
    for playbook in re.findall(r"ansible-playbook trainium\.cluster\.(\w+)", text):
        assert (ROOT / f"playbooks/{playbook}.yml").exists(), playbook
    for file in re.findall(r"trainium/cluster/blob/main/([^#>]+)", text):
        assert (ROOT / file).exists(), file
    for block in re.findall(r"code-block:: yaml\n\n((?:   .*\n|\n)+)", text):
        assert set(yaml.safe_load(re.sub(r"(?m)^   ", "", block))) <= VARIABLES


def test_each_guide_is_listed_and_has_the_label_that_others_refer_to() -> None:
    listed = yaml.safe_load((ROOT / "docs/docsite/extra-docs.yml").read_text(encoding="utf-8"))
    names = [name for section in listed["sections"] for name in section["toctree"]]
    assert sorted(names) == [path.stem for path in GUIDES]
    for path in GUIDES:
        assert f".. _ansible_collections.trainium.cluster.docsite.{path.stem}:\n" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["docs/security.md", "docs/docsite/rst/guide_iam.rst"])
def test_each_policy_is_named_where_somebody_looks_for_what_to_attach(page: str) -> None:
    files = {path.name for path in (ROOT / "docs/iam").iterdir()}
    assert set(re.findall(r"\biam/([\w-]+\.json)\b", (ROOT / page).read_text(encoding="utf-8"))) == files
