"""What a module takes, compared with what its documentation says that it takes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import yaml

Options = dict[str, dict[str, Any]]
SAME = {"required": False, "type": "str", "elements": None, "choices": None, "default": None}


class MadeError(Exception):
    """The module has said what it takes."""


def arguments_of(module: ModuleType, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The keywords with which a module's ``main`` makes its AnsibleModule."""

    def made(**keywords: Any) -> None:
        raise MadeError(keywords)

    for name in ("AnsibleModule", "AnsibleAWSModule"):
        if hasattr(module, name):
            patch.setattr(module, name, made)
    with pytest.raises(MadeError) as caught:
        module.main()
    found: dict[str, Any] = caught.value.args[0]
    return found


def differences(given: Options, documented: Options, path: str = "") -> list[str]:
    """Where a specification of arguments is another than the documentation's options."""
    found = [f"{path}{name} is not taken" for name in documented.keys() - given.keys()]
    for name in documented.keys() & given.keys():
        one, other = given[name], documented[name]
        for key, usual in SAME.items():
            if one.get(key, usual) != other.get(key, usual) and not (one.get(key) in (None, []) and key == "default"):
                found.append(f"{path}{name} has {key} {one.get(key, usual)}")
        found += differences(one.get("options") or {}, other.get("suboptions") or {}, f"{path}{name}.")
    return found


def check(module: ModuleType, patch: pytest.MonkeyPatch, beside: set[str]) -> None:
    """``beside``: options that a fragment documents."""
    made = arguments_of(module, patch)
    documented = yaml.safe_load(module.DOCUMENTATION)
    given = {name: option for name, option in made["argument_spec"].items() if name not in beside}
    assert differences(given, documented.get("options") or {}) == []
    assert given.keys() <= (documented.get("options") or {}).keys()
    assert made["supports_check_mode"] is True
