"""The module as Ansible runs it: files, check mode, refusals. ParallelCluster's schema is the real one."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.pcluster.pcluster_samples import ACCOUNT

TRN1 = {"preset": "trn1", **ACCOUNT}


def test_a_configuration_is_written_once(run: Any, tmp_path: Path) -> None:
    dest = tmp_path / "bert.yaml"
    foreseen = run(check=True, diff=True, dest=str(dest), **TRN1)
    assert foreseen["changed"]
    assert not dest.exists()
    assert foreseen["diff"]["before"] == ""
    first = run(dest=str(dest), **TRN1)
    assert first["changed"]
    assert foreseen["diff"]["after"] == dest.read_text(encoding="utf-8") == first["yaml"]
    assert yaml.safe_load(first["yaml"]) == first["configuration"]
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert not run(dest=str(dest), **TRN1)["changed"]
    dest.chmod(0o644)
    assert run(check=True, dest=str(dest), **TRN1)["changed"]
    assert run(dest=str(dest), mode="0640", **TRN1)["changed"]
    assert stat.S_IMODE(dest.stat().st_mode) == 0o640
    assert run(dest=str(dest), mode="0640", max_count=4, **TRN1)["changed"]


def test_errors_are_all_named_and_nothing_is_written(run: Any, tmp_path: Path) -> None:
    dest = tmp_path / "bert.yaml"
    # Without a key, Session Manager is the way in.
    wrong = {"preset": "trn1", "min_count": 5, "ssm_access": True, "overrides": {"Hello": 1}}
    result = run(dest=str(dest), **wrong)
    assert result["failed"]
    assert not dest.exists()
    for words in (
        "has 5 errors",
        "Hello: there is no such key",
        "HeadNode/Ssh/AllowedIps is missing",
        "lower MinCount",
    ):
        assert words in result["msg"], result["msg"]
    assert {finding["severity"] for finding in result["findings"]} == {"error"}
    warned = run(lint="warn", dest=str(dest), **wrong)
    assert not warned["failed"]
    assert warned["findings"] == result["findings"]
    assert dest.exists()
    assert run(lint="none", preset="trn1", overrides={"Hello": 1})["findings"] == []


def test_impact_of_a_changed_configuration(run: Any) -> None:
    current = run(**TRN1)["configuration"]
    changed = {"configuration": current, "overrides": {"Scheduling": {"SlurmSettings": {"ScaledownIdletime": 5}}}}
    running = run(current=current, **changed)["impact"]
    assert (running["needs"], running["allowed"]) == ("stopped_fleet", False)
    assert run(current=current, fleet_status="STOPPED", **changed)["impact"]["allowed"]
    assert run(current=current, configuration=current)["impact"]["changes"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"preset": "trn1_custom_ami"}, "custom_ami is missing; preset trn1_custom_ami needs the image"),
        ({"pcluster_python": "/nonexistent/python"}, "the interpreter /nonexistent/python"),
        ({"shared_storage": [{"type": "zfs"}]}, "shared_storage[0].type is 'zfs'"),
        ({"dest": "/nonexistent/bert.yaml"}, "there is no folder /nonexistent"),
    ],
)
def test_refusals_are_one_sentence(run: Any, arguments: dict[str, Any], words: str) -> None:
    result = run(**{**TRN1, **arguments})
    assert result["failed"]
    assert words in result["msg"]
    assert "\n" not in result["msg"]


def test_a_configuration_without_parts_that_occur_twice(run: Any) -> None:
    assert "&id" not in run(preset="trn2", **ACCOUNT)["yaml"]
