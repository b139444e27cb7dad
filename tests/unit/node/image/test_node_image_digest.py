"""The digest of what an image has, which everybody in the account can read, tells no password."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jinja2
import yaml

VARIABLES = Path(__file__).resolve().parents[4] / "roles/node_image/vars/main.yml"


def digest(address: str) -> str:
    variables: dict[str, Any] = yaml.safe_load(VARIABLES.read_text(encoding="utf-8"))
    environment = jinja2.Environment(autoescape=True)
    environment.filters.update(
        to_json=lambda value, sort_keys: json.dumps(value, sort_keys=sort_keys),
        regex_replace=lambda value, pattern, new: re.sub(pattern, new, value),
        hash=lambda value, _kind: hashlib.sha256(value.encode()).hexdigest(),
    )
    content = {"variables": {"neuron_venv_index_url": address}}
    # Ansible takes backslashes in templates as they stand.
    template = variables["__node_image_digest"].replace("\\", "\\\\")
    return environment.from_string(template).render(__node_image_content=content)


def test_who_logs_in_where_is_not_in_it() -> None:
    assert digest("https://ann:a@pip.example.com/simple") == digest("https://pip.example.com/simple")
    assert digest("https://pip.example.com/simple") != digest("https://pip.example.org/simple")
    assert re.fullmatch("[0-9a-f]{16}", digest("https://pip.example.com/simple"))
