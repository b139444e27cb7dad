"""fsx_lustre as a whole: what it takes from its arguments, and how a failure and a difference are told."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.modules import fsx_lustre

from tests.unit.fsx.stubbed import ID, Fsx, known
from tests.unit.in_aws import Module


@pytest.fixture
def module(api: Fsx, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    usual = {"name": "data", "cluster_name": "c1"}
    return Module(fsx_lustre, {"fsx": api.client}, monkeypatch, capsys, usual)


def test_check_mode_and_differences(module: Module, api: Fsx) -> None:
    api.lists()
    result = module.run(check=True, diff=True)
    assert result["changed"] is True and result["diff"]["before"] == {}
    # By default it makes the cheapest there is.
    assert result["diff"]["after"]["deployment_type"] == "SCRATCH_2"
    api.lists(known())
    assert "diff" not in (result := module.run()) and result["file_system_id"] == ID
    assert module.asked == [("fsx", ""), ("fsx", "")]


def test_a_failure_tells_what_it_is_about(module: Module) -> None:
    assert module.said(subnet_id="x").startswith("fsx_lustre data: subnet_id is 'x'; give one such as subnet-")
    assert module.said(name=None, state="absent", wait_timeout=0).startswith("fsx_lustre c1: wait_timeout is 0;")
    assert module.said(subnet_id="x").endswith(".")
