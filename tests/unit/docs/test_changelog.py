"""Fragments of the changelog name internal modules as internal: nobody is promised them."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
# It tells of the very change of names.
RENAMED = "0010-tree.yml"


def test_internal_modules_are_not_named_as_public() -> None:
    names = {path.stem for path in (ROOT / "plugins/modules/internal").glob("*.py")} - {"__init__", "validate"}
    subject = re.compile(rf"^(?:module |action )?({'|'.join(sorted(names))})\b(?! role)", re.IGNORECASE)
    found = [
        (path.name, entry)
        for path in sorted((ROOT / "changelogs/fragments").glob("*.yml"))
        for entries in yaml.safe_load(path.read_text(encoding="utf-8")).values()
        if path.name != RENAMED and isinstance(entries, list)
        for entry in entries
        if subject.match(entry)
    ]
    assert names
    assert found == []
