"""ecr_image as a whole: what it takes from its arguments, and how a failure and a difference are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.modules import ecr_image

from tests.unit.ecr.conftest import DIGEST, NAME, TAGS, Ecr, known
from tests.unit.ecr.test_build import program
from tests.unit.ecr.test_plan import PARAMS, plan
from tests.unit.ecr.test_run import PUSHES
from tests.unit.in_aws import Module


@pytest.fixture
def module(api: Ecr, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Module:
    program(tmp_path, f'case "$1" in push) {PUSHES.format(digest=DIGEST)};; esac')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    usual = {"name": NAME, "cluster_name": "bert", "owner": "me", "dockerfile": "FROM base\n"}
    return Module(ecr_image, {"ecr": api.client}, monkeypatch, capsys, usual)


def test_check_mode_and_differences(module: Module, api: Ecr) -> None:
    api.has()
    # By default the newest 50 images stay.
    api.lifecycle(plan.lifecycle(50))
    result = module.run(check=True, diff=True)
    assert (result["changed"], result["pushed"], result["builder"]) == (True, False, "podman")
    assert result["diff"]["before"] == "" and result["diff"]["after"].startswith(f"{NAME}\nrepository\n")


def test_a_base_of_another_region_is_asked_for_there(module: Module, api: Ecr) -> None:
    dockerfile = "FROM 763104351884.dkr.ecr.eu-west-1.amazonaws.com/base:1\n"
    tag = plan.tag_of({**PARAMS, "dockerfile": dockerfile}, [])
    api.has(known())
    api.tagged(TAGS)
    api.policy()
    api.image(tag)
    api.lifecycle(plan.lifecycle(50))
    api.password()
    api.password()
    api.image(tag, {"imageDigest": DIGEST})
    result = module.run(dockerfile=dockerfile)
    assert result["pushed"] is True and "diff" not in result
    assert module.asked == [("ecr", ""), ("ecr", "eu-west-1")]


def test_a_policy_of_others_is_warned_of(module: Module, api: Ecr) -> None:
    api.has(known())
    api.tagged(TAGS)
    api.policy()
    api.image(plan.tag_of(PARAMS, []), {"imageDigest": DIGEST})
    api.lifecycle({"rules": [{"description": 60 * "x", "selection": {"tagStatus": "any"}}]})
    assert module.run()["changed"] is False and "which stays; keep has no effect" in module.warned[0]


def test_a_failure_tells_what_it_is_about(module: Module, api: Ecr) -> None:
    assert module.said(name="a").startswith("ecr_image a: name is 'a'; ")
    assert "state is present but all of the following are missing: dockerfile" in module.said(dockerfile=None)
    api.has()
    assert module.run(state="absent", dockerfile=None)["changed"] is False
