"""The wait until Session Manager reaches nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.amazon.aws.plugins.module_utils import modules
from ansible_collections.trainium.cluster.plugins.modules.internal import session_ready

from tests.in_process import ended
from tests.unit.passing_time import Clock


class Aws(Clock):
    """Nodes that run, of which these register at one look after the other; time passes by sleeping alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *online: set[str]) -> None:
        super().__init__()
        self.online = list(online)
        self.asked: list[list[str]] = []
        monkeypatch.setattr(session_ready.ec2, "describe_instances", self._instances)
        monkeypatch.setattr(session_ready.ec2, "managed_instances", self._managed)
        self.governs(monkeypatch, session_ready)
        monkeypatch.setattr(modules.AnsibleAWSModule, "client", lambda _self, service: SimpleNamespace(name=service))

    def _instances(self, client: Any, filters: dict[str, str]) -> list[dict[str, str]]:
        assert client.name == "ec2"
        assert filters == {"tag:trainium:cluster": "bert", "instance-state-name": "running"}
        return [{"InstanceId": identity} for identity in ("i-3", "i-1", "i-2")]

    def _managed(self, client: Any, ids: list[str]) -> set[str]:
        assert client.name == "ssm"
        self.asked.append(ids)
        return self.online.pop(0) if self.online else set()


def run(capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    given = {"region": "us-west-2", "cluster_name": "bert", **arguments}
    return ended(session_ready.main, given, capsys)[0]


def test_all_nodes_are_waited_for_and_the_registered_are_asked_for_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    aws = Aws(monkeypatch, {"i-2"}, set(), {"i-1", "i-3"})
    result = run(capsys)
    assert (result["changed"], result["online"]) == (False, ["i-1", "i-2", "i-3"])
    assert aws.asked == [["i-1", "i-2", "i-3"], ["i-1", "i-3"], ["i-1", "i-3"]]
    assert aws.now == 2.5


def test_only_those_that_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    aws = Aws(monkeypatch, {"i-2"})
    assert run(capsys, instance_ids=["i-2", "i-9"])["online"] == ["i-2"]
    assert aws.asked == [["i-2"]]


@pytest.mark.parametrize(("arguments", "seconds"), [({"timeout": 30}, 30), ({}, 600)])
def test_those_that_do_not_register_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: dict[str, int], seconds: int
) -> None:
    aws = Aws(monkeypatch, {"i-2"})
    result = run(capsys, **arguments)
    begin = f"session_ready bert: i-1, i-3 did not register with Systems Manager within {seconds} s; see that the image"
    assert result["failed"] and result["msg"].startswith(begin)
    assert aws.now == seconds


def test_check_mode_looks_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    aws = Aws(monkeypatch, {"i-2"})
    assert run(capsys, _ansible_check_mode=True)["online"] == ["i-2"]
    assert (len(aws.asked), aws.now) == (1, 0)
