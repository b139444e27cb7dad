"""What a module takes and returns, beside what its documentation says of both."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
COLLECTION = "ansible_collections.trainium.cluster.plugins"
# What both say, and in the same words.
SAME = ("type", "required", "default", "choices", "elements", "aliases")

TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


class Taken(BaseException):
    """Ends a module as soon as it says what it takes."""


def documented(name: str) -> dict[str, Any]:
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


def described(options: Mapping[str, Any], below: str) -> dict[str, Any]:
    """The options, without what is said of them in another way or says nothing."""
    found: dict[str, Any] = {}
    for name, option in options.items():
        found[name] = {key: option[key] for key in SAME if option.get(key) or (key == "default" and key in option)}
        if option.get(below):
            found[name]["options"] = described(option[below], below)
    return found


def taken(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the module gives to AnsibleModule."""
    module = importlib.import_module(f"{COLLECTION}.modules.{name}")
    found: dict[str, Any] = {}

    def stop(argument_spec: Any, **given: Any) -> None:
        found.update(given, argument_spec=argument_spec)
        raise Taken

    for base in ("AnsibleModule", "AnsibleAWSModule"):
        if hasattr(module, base):
            monkeypatch.setattr(module, base, stop)
    with pytest.raises(Taken):
        module.main()
    return found


def hidden(options: Mapping[str, Any]) -> list[str]:
    """The options whose values are struck out of results and logs wherever they occur, by their paths."""
    found = []
    for name, option in options.items():
        found += [name] if option.get("no_log") else []
        found += [f"{name}.{inner}" for inner in hidden(option.get("options") or {})]
    return found


def check_result(module: ModuleType, result: Any, *path: str) -> None:
    """What lies at ``path`` of a module's result has the fields that are documented of it, and their types."""
    here: dict[str, Any] = {"contains": yaml.safe_load(module.RETURN)}
    for name in path:
        here = here["contains"][name]
    _check(result, {"type": "dict", **here}, ".".join(path))


def _check(value: Any, said: Mapping[str, Any], called: str) -> None:
    # True is an int as well.
    assert isinstance(value, TYPES[said["type"]]), f"{called} is {value!r}"
    assert isinstance(value, bool) == (said["type"] == "bool"), f"{called} is {value!r}"
    if "contains" not in said:
        return
    for one in value if said["type"] == "list" else [value]:
        assert set(one) == set(said["contains"]), called
        for name, inner in said["contains"].items():
            _check(one[name], inner, f"{called}.{name}")
