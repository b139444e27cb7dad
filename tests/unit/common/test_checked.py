"""What a role's check went by: another value of anything that its templates name is another check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible import constants
from ansible_collections.trainium.cluster.plugins.plugin_utils import _checked

BASE: dict[str, Any] = {
    "own_count": "{{ other | default(2) }}",
    "own_list": ["a", {"b": "{% if far %}1{% endif %}"}],
    "other": "{{ beyond.size }}",
    "beyond": {"size": 3},
    "far": True,
    "size": 1,
    "default": 1,
    "unnamed": 1,
    "ruled": 1,
    "quoted": 1,
    "by_name": 1,
    "own_by_name": "{{ lookup('vars', 'by_name') }}",
    "own_key": "{{ {'quoted': 1} }}",
    "hostvars": {"n1": {"unnamed": 1}},
}


@pytest.fixture
def role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own" / "tasks").mkdir(parents=True)
    (tmp_path / "own" / "tasks" / "validate.yml").write_text('- a: {value: "{{ ruled | bool }}"}\n')
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    return tmp_path / "own"


def test_only_what_was_found_right_is_known(role: Path) -> None:
    assert not _checked.is_checked(role, BASE)
    _checked.note(role, BASE)
    assert _checked.is_checked(role, BASE)
    assert _checked.is_checked(role, {**BASE, "inventory_hostname": "n2"})


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({"own_count": 3}, True),
        ({"own_new": 3}, True),
        ({"other": 3}, True),
        ({"beyond": {"size": 4}}, True),
        ({"far": False}, True),
        ({"ruled": 2}, True),
        ({"by_name": 2}, True),
        ({"quoted": 2}, False),
        ({"size": 2}, False),
        ({"unnamed": 2}, False),
        ({"hostvars": {}}, False),
    ],
)
def test_another_value_is_checked_again_where_a_template_names_it(
    role: Path, changed: dict[str, Any], again: bool
) -> None:
    _checked.note(role, BASE)
    assert _checked.is_checked(role, {**BASE, **changed}) != again


def test_a_variable_that_is_gone_is_checked_again(role: Path) -> None:
    _checked.note(role, BASE)
    assert not _checked.is_checked(role, {name: value for name, value in BASE.items() if name != "own_count"})


def test_where_nothing_can_be_kept_it_is_checked_again(role: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(role / "none"))
    _checked.note(role, BASE)
    assert not _checked.is_checked(role, BASE)
