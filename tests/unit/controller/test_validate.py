"""The check of a role's variables in this process: types, rules, unknown names, and values that cannot be had."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail, AnsibleUndefinedVariable
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.trainium.cluster.plugins.action.internal.validate import ActionModule
from ansible_collections.trainium.cluster.plugins.plugin_utils._guarded import trust_as_template

Item = dict[str, Any]
SPECS = """
argument_specs:
  main:
    options:
      disk_size: {type: int, required: true}
      disk_path: {type: path}
      disk_names: {type: list, elements: str, default: []}
      disk_more: {type: dict, options: {a: {type: int}, b: {type: str, default: x}}}
  other:
    options:
      disk_other: {type: str}
"""
SIZE = {"variable": "disk_size", "kind": "number", "minimum": 10}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    role = tmp_path / "disk"
    (role / "meta").mkdir(parents=True)
    (role / "meta/argument_specs.yml").write_text(SPECS, encoding="utf-8")
    return role


def checked(folder: Path | None, variables: Item, **arguments: Any) -> Item:
    known = {"inventory_hostname": "node-1", **variables}
    role = SimpleNamespace(get_name=lambda include_role_fqcn: "disk", _role_path=str(folder)) if folder else None
    task = SimpleNamespace(
        action="trainium.cluster.internal.validate", args=arguments, check_mode=False, async_val=0, _role=role
    )
    loader = DataLoader()
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/"))
    action: Any = ActionModule(task, connection, None, loader, Templar(loader=loader, variables=known))
    result: Item = action.run(task_vars=known)
    return result


def refused(folder: Path, variables: Item, **arguments: Any) -> list[str]:
    result = checked(folder, variables, **arguments)
    assert result["changed"] is False
    said: list[str] = result["refused"]
    assert result.get("failed", False) is bool(said)
    assert result.get("msg", "") == " ".join(said)
    return said


def template(text: str) -> Any:
    return trust_as_template(text)


def test_what_is_right_is_let_pass(folder: Path) -> None:
    assert refused(folder, {"disk_size": "12", "disk_path": "/data"}, rules=[SIZE]) == []
    assert refused(folder, {"disk_size": template("{{ other }}"), "other": 12}, rules=[SIZE]) == []


def test_a_rule_goes_by_the_value_in_its_type(folder: Path) -> None:
    (said,) = refused(folder, {"disk_size": "9"}, rules=[SIZE])
    assert "disk_size" in said
    # One refusal for each variable, and that of the type comes first.
    (said,) = refused(folder, {"disk_size": "x"}, rules=[SIZE])
    assert said.startswith("A variable of the role disk is wrong: disk_size is of type str and has to be of type int")
    assert len(refused(folder, {"disk_size": 9}, rules=[SIZE, SIZE])) == 1


def test_a_rule_without_its_variable_or_its_condition_is_none(folder: Path) -> None:
    assert refused(folder, {}, rules=[SIZE]) == []
    assert refused(folder, {"disk_size": 9}, rules=[{**SIZE, "when": "false"}]) == []
    assert len(refused(folder, {"disk_size": 9}, rules=[{**SIZE, "when": "yes"}])) == 1
    # Of a value of its own.
    assert len(refused(folder, {}, rules=[{**SIZE, "value": 9}])) == 1


def test_a_rule_that_is_none_is_told_to_who_wrote_it(folder: Path) -> None:
    with pytest.raises(AnsibleActionFail, match="has the key maximal, which number does not take"):
        checked(folder, {"disk_size": 9}, rules=[{**SIZE, "maximal": 1}])


def test_names_that_nobody_knows_are_told(folder: Path) -> None:
    known = {"disk_size": 12, "disk_other": "x"}
    assert refused(folder, known) == []
    assert "perhaps disk_path is meant" in refused(folder, {**known, "disk_pathh": "x"})[0]
    assert refused(folder, {**known, "disk_result": "x"}) == []
    assert len(refused(folder, {**known, "disk_result": "x"}, reserved=True)) == 1
    assert refused(folder, {**known, "disk_result": "x"}, reserved=True, beside=["disk_result"]) == []


def test_a_value_that_falls_over_another_is_told_where_nothing_else_is(folder: Path) -> None:
    broken = {"disk_size": 12, "disk_path": template("{{ 1 / 0 }}")}
    with pytest.raises(AnsibleActionFail, match=r"^The value of these cannot be checked: disk_path \(.+\)\.$"):
        checked(folder, broken)
    # Else it follows from what is refused.
    (said,) = refused(folder, {**broken, "disk_size": 9}, rules=[SIZE])
    assert "disk_size" in said


def test_a_value_that_is_not_there_yet_is_left_out_where_it_may_be_late(folder: Path) -> None:
    late = {"disk_size": 12, "disk_path": template("{{ nodes[0] }}")}
    assert refused(folder, late, late=["disk_path"]) == []
    with pytest.raises(AnsibleUndefinedVariable):
        checked(folder, late)


def test_of_a_dictionary_nothing_is_added(folder: Path) -> None:
    """The validator gives every key that there may be."""
    rule = {"variable": "disk_more", "kind": "scripts"}
    (said,) = refused(folder, {"disk_size": 12, "disk_more": {"a": 1}}, rules=[rule])
    assert "but a is not like that" in said


def test_who_is_checked_is_the_host_or_the_image(folder: Path) -> None:
    rule = {"variable": "disk_size", "kind": "number", "minimum": 10, "sentence": "{host}: {value}"}
    assert refused(folder, {"disk_size": 9}, rules=[rule]) == ["node-1: 9"]
    assert refused(folder, {"disk_size": 9, "trainium_image_system": "x"}, rules=[rule]) == ["the image: 9"]


def test_it_is_a_task_of_a_role() -> None:
    with pytest.raises(AnsibleActionFail, match="checks the variables of the role that it is a task of"):
        checked(None, {})
