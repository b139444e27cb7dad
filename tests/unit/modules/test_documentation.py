"""Every module takes what its documentation says that it takes, and hides what is secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.modules.documented import described, documented, hidden, taken

ROOT = Path(__file__).resolve().parents[3] / "plugins/modules"
NAMES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(ROOT.rglob("*.py"))
    # The others are pages of documentation, for what an action does by itself.
    if "def main()" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_module_takes_is_documented(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = taken(name, monkeypatch)
    assert found["supports_check_mode"] is True
    assert described(found["argument_spec"], "options") == described(documented(name), "suboptions")


def test_what_is_secret_is_hidden_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module hides is struck out of every result, so that a word such as a cluster's name must not be in it."""
    found = {name: hidden(taken(name, monkeypatch)["argument_spec"]) for name in NAMES}
    assert {name: options for name, options in found.items() if options} == {
        "dataset": ["files.url"],
        "efa_instance": ["user_data"],
        "efa_launch_template": ["user_data"],
        "kubernetes_job": ["secret_data"],
    }
