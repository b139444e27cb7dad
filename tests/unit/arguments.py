"""What a module takes, beside what its documentation says that it takes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "ansible_collections.trainium.cluster.plugins"
# What both say, and in the same words.
SAME = ("type", "required", "default", "choices", "elements", "aliases")


class Taken(BaseException):
    """Ends a module as soon as it says what it takes."""


def _documented(name: str) -> dict[str, Any]:
    """The options in the documentation, those of the collection's own fragments as well."""
    module = importlib.import_module(f"{COLLECTION}.modules.{name}")
    page = yaml.safe_load(module.DOCUMENTATION)
    options: dict[str, Any] = {}
    for fragment in page.get("extends_documentation_fragment", ()):
        owner, _dot, part = fragment.removeprefix("trainium.cluster.").partition(".")
        # What is common to all modules of AWS is taken by amazon.aws' own class, and attributes are no options.
        if fragment.startswith("trainium.cluster.") and owner not in ("aws", "attributes"):
            found = importlib.import_module(f"{COLLECTION}.doc_fragments.{owner}").ModuleDocFragment
            text = getattr(found, part.upper() or "DOCUMENTATION")
            options.update(yaml.safe_load(text).get("options") or {})
    return {**options, **(page.get("options") or {})}


def _described(options: Mapping[str, Any], below: str) -> dict[str, Any]:
    """The options, without what is said of them in another way or says nothing."""
    found: dict[str, Any] = {}
    for name, option in options.items():
        found[name] = {key: option[key] for key in SAME if option.get(key) or (key == "default" and key in option)}
        if option.get(below):
            found[name]["options"] = _described(option[below], below)
    return found


def taken(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the module gives to AnsibleModule."""
    module = importlib.import_module(f"{COLLECTION}.modules.{name}")
    found: dict[str, Any] = {}

    def stop(**given: Any) -> None:
        found.update(given)
        raise Taken

    for base in ("AnsibleModule", "AnsibleAWSModule"):
        if hasattr(module, base):
            monkeypatch.setattr(module, base, stop)
    with pytest.raises(Taken):
        module.main()
    return found


def check(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it takes what its documentation says, and can tell what it would do."""
    found = taken(name, monkeypatch)
    assert found["supports_check_mode"] is True
    assert _described(found["argument_spec"], "options") == _described(_documented(name), "suboptions")
