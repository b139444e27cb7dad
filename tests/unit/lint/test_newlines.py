"""Ansible hands a backslash of plain or folded YAML to Jinja as it is: a newline would be two signs there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = sorted([*ROOT.glob("roles/*/*/*.yml"), *ROOT.glob("playbooks/*.yml")])


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from (*texts(key), *texts(one))
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_newline_is_two_signs(file: Path) -> None:
    found = [text for text in texts(list(yaml.safe_load_all(file.read_text(encoding="utf-8")))) if "'\\n'" in text]
    assert found == []
