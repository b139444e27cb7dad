"""Examples are YAML that somebody may copy."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]


def examples(path: Path) -> str:
    """The text of EXAMPLES, of a plugin's source or of the page beside it; '' where there is none."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".yml":
        return str(yaml.safe_load(text).get("EXAMPLES", ""))
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXAMPLES":
            return str(ast.literal_eval(node.value))
    return ""


FILES = [path for path in sorted((ROOT / "plugins").rglob("*.*")) if path.suffix in (".py", ".yml") and examples(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_are_yaml(path: Path) -> None:
    assert any(yaml.safe_load_all(examples(path)))
