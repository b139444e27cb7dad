"""The page of refusals is that of the tables, and every rule is one that the action takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from ansible_collections.trainium.cluster.plugins.plugin_utils._refusals import SUBJECTS, refusal

from docs.tools.refusals import page, rows, tables
from sandbox import standins

ROOT = Path(__file__).resolve().parents[3]
TABLES = dict(tables(ROOT))


def test_the_page_is_that_of_the_tables() -> None:
    assert (ROOT / "docs/refusals.md").read_text(encoding="utf-8") == page(ROOT), "run make readmes"


def test_every_role_has_a_table() -> None:
    assert sorted(TABLES) == sorted(path.name for path in (ROOT / "roles").iterdir())
    assert [role for role, table in TABLES.items() if not table] == []


@pytest.mark.parametrize("role", TABLES)
def test_a_rule_names_a_variable_and_says_one_sentence(role: str) -> None:
    spec = yaml.safe_load((ROOT / "roles" / role / "meta/argument_specs.yml").read_text(encoding="utf-8"))
    known = {*spec["argument_specs"]["main"]["options"], "trainium_image_id", "trainium_market", "trainium_training"}
    for rule in TABLES[role]:
        assert rule["variable"] in known, rule
        for condition, sentence in rows(rule):
            assert condition
            assert sentence.endswith("."), sentence
            assert "{" not in sentence.replace("{/var: 2}", "").replace("{trn1.32xlarge: 21.5}", ""), sentence
        # It raises for a key that the kind does not take.
        whole = {key: {} if "{{" in str(value) else value for key, value in rule.items()}
        assert refusal(whole, {}) == "" or rule["kind"] != "system"


@pytest.mark.parametrize("kind", sorted(set(SUBJECTS) - {"system"}))
def test_the_examples_are_refused(kind: str) -> None:
    for example in SUBJECTS[kind].examples:
        assert refusal({"variable": "name", "kind": kind, **example.more}, example.value).endswith("."), example


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"variable": "a", "kind": "colour"}, "a kind that there is"),
        ({"kind": "text"}, "needs a variable"),
        ({"variable": "a", "kind": "text", "minimum": 1}, "has the key minimum, which text does not take"),
    ],
)
def test_a_rule_that_is_none_is_an_error(rule: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        refusal(rule, "x")


def test_programs_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,) = [rule for rule in TABLES["trainium"] if rule["kind"] == "programs"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(rule, "ssm").startswith(
        "trainium_connection ssm needs aws and session-manager-plugin on this machine;"
    )
    for name in ("aws", "session-manager-plugin"):
        (tmp_path / name).write_text("#!/bin/sh\necho 1.2.707.0\n")
        (tmp_path / name).chmod(0o755)
    assert "needs session-manager-plugin 1.2.764.0 or newer on this machine;" in refusal(rule, "ssm")
    (tmp_path / name).write_text("#!/bin/sh\necho 1.2.1000.0\n")
    assert refusal(rule, "ssm") == ""
    monkeypatch.setenv("PATH", f"{standins.CONTROLLER}:{os.environ['PATH']}:/usr/bin")
    assert refusal({**rule, "programs": ["session-manager-plugin"]}, "ssm") == ""
