"""What the documentation of a module says of its options and of its result, to be held against what it does."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import yaml

Item = dict[str, Any]
_TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


def _documented(options: Mapping[str, Item]) -> Item:
    said = ("type", "elements", "required", "default", "choices", "aliases")
    found = {name: {key: one[key] for key in said if key in one} for name, one in options.items()}
    for name, one in options.items():
        if "suboptions" in one:
            found[name]["options"] = _documented(one["suboptions"])
    return found


def _taken(arguments: Mapping[str, Item]) -> Item:
    """What a module takes; what it hides is no matter of its documentation."""
    found = {name: {key: value for key, value in one.items() if key != "no_log"} for name, one in arguments.items()}
    for one in found.values():
        if "options" in one:
            one["options"] = _taken(one["options"])
    return found


def check_options(module: ModuleType) -> None:
    """A module takes the options that it documents, as it documents them."""
    assert _taken(module.ARGUMENTS) == _documented(yaml.safe_load(module.DOCUMENTATION)["options"])


def hidden(arguments: Mapping[str, Item]) -> list[str]:
    """The options that are struck out of results and logs wherever they occur."""
    inner = [name for one in arguments.values() for name in hidden(one.get("options") or {})]
    return inner + [name for name, one in arguments.items() if one.get("no_log")]


def check_result(module: ModuleType, result: Any, *path: str) -> None:
    """What lies at ``path`` of a module's result has the fields that are documented of it, and their types."""
    here: Item = {"contains": yaml.safe_load(module.RETURN)}
    for name in path:
        here = here["contains"][name]
    _check(result, {"type": "dict", **here}, ".".join(path))


def _check(value: Any, said: Mapping[str, Any], called: str) -> None:
    assert type(value) is _TYPES[said["type"]], f"{called} is {value!r}"
    if "contains" not in said:
        return
    for one in value if said["type"] == "list" else [value]:
        assert set(one) == set(said["contains"]), called
        for name, inner in said["contains"].items():
            _check(one[name], inner, f"{called}.{name}")
