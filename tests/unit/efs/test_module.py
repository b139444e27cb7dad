"""efs_file_system as a whole: what it takes from its arguments, and how a failure and a difference are told."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.modules import efs_file_system

from tests.unit.efs.stubbed import Efs, known
from tests.unit.in_aws import Module


@pytest.fixture
def module(api: Efs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    usual = {"name": "data", "cluster_name": "c1"}
    return Module(efs_file_system, {"efs": api.client, "ec2": api.ec2}, monkeypatch, capsys, usual)


def test_check_mode_and_differences(module: Module, api: Efs) -> None:
    api.lists()
    api.subnets(**{"subnet-00000001": "a"})
    result = module.run(check=True, diff=True, subnets=["subnet-00000001"])
    assert result["changed"] is True and result["diff"]["before"] == {}
    assert result["diff"]["after"]["mount_targets"][0]["subnet_id"] == "subnet-00000001"
    api.lists(known())
    api.targets()
    assert "diff" not in module.run(check=True)


def test_a_failure_tells_what_it_is_about(module: Module) -> None:
    assert module.said(subnets=["x"]).startswith("efs_file_system data: subnets holds 'x', which is no id")
    assert module.said(name=None, state="absent", wait_timeout=0).startswith("efs_file_system c1: wait_timeout is 0;")
