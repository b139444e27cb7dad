"""Who has a cluster, over SSM's parameters as the API reference describes them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._lease import run
from ansible_collections.trainium.cluster.plugins.module_utils._lease.plan import Holder, holder_of, text_of
from ansible_collections.trainium.cluster.plugins.module_utils._lease.run import Lease, lives, this_run
from ansible_collections.trainium.cluster.plugins.modules.internal import cluster_lease

from tests.in_process import ended
from tests.unit.network.parameters import Ssm

NAME = "/trainium/bert/lease"
ME = this_run("ada", os.getpid())
ELSEWHERE = Holder("bob", "node", "another machine", 7, "9", "2026-12-01T10:00:00+00:00")
TAGS = {"trainium:cluster": "bert", "trainium:owner": "ada"}


@pytest.fixture
def ssm() -> Ssm:
    return Ssm()


def holder(ssm: Ssm) -> Holder | None:
    return holder_of(ssm.kept[NAME][0])


def gone() -> Holder:
    """A run of this machine whose process has ended."""
    with subprocess.Popen(["true"]) as process:
        me = this_run("ada", process.pid)
    return me._replace(started=me.started or "1")


def test_the_first_run_has_it_and_its_later_phases_write_nothing(ssm: Ssm) -> None:
    lease = Lease(ssm, "bert", ME)
    assert lease.take(False, TAGS)
    assert holder(ssm) == ME
    (_get, (_call, request)) = ssm.asked
    assert (request["Type"], request["Overwrite"]) == ("String", False)
    assert sorted((tag["Key"], tag["Value"]) for tag in request["Tags"]) == sorted(TAGS.items())
    ssm.asked.clear()
    assert lease.take(False, TAGS) is False
    assert lease.take(True, TAGS) is False
    assert ssm.names() == ["get_parameter", "get_parameter"]


def test_another_run_is_refused_with_who_and_where(ssm: Ssm) -> None:
    ssm.kept[NAME] = (text_of(ELSEWHERE), 3)
    with pytest.raises(TrainiumError) as error:
        Lease(ssm, "bert", ME).take(False, TAGS)
    assert str(error.value) == (
        "bob has been working on the cluster bert in us-west-2 since 2026-12-01T10:00:00+00:00, on node (process 7); "
        "wait until that run has ended, or, if that machine or process is gone, run again with "
        "trainium_break_lease=true"
    )
    assert ssm.kept[NAME] == (text_of(ELSEWHERE), 3)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("free", False),
        (text_of(gone()), False),
        (text_of(ELSEWHERE), True),
        ("what nobody understands", True),
        (json.dumps({"pid": 1}), True),
    ],
)
def test_what_is_free_or_broken_is_taken(ssm: Ssm, text: str, broken: bool) -> None:
    ssm.kept[NAME] = (text, 3)
    assert Lease(ssm, "bert", ME).take(broken, TAGS)
    assert (holder(ssm), ssm.kept[NAME][1]) == (ME, 4)
    # Tags are those of its first writer: with Overwrite SSM takes none.
    assert "Tags" not in ssm.asked[-1][1]
    assert ssm.asked[-1][1]["Overwrite"] is True


@pytest.mark.parametrize("text", ["what nobody understands", "[]", json.dumps({"pid": "x"})])
def test_what_nobody_understands_is_somebody_s(ssm: Ssm, text: str) -> None:
    ssm.kept[NAME] = (text, 1)
    with pytest.raises(TrainiumError, match=r"^somebody has been working on the cluster bert"):
        Lease(ssm, "bert", ME).take(False, TAGS)


def test_of_two_that_write_at_once_one_has_it(ssm: Ssm, monkeypatch: pytest.MonkeyPatch) -> None:
    ssm.kept[NAME] = ("free", 3)
    kept = run.calls.replace

    def late(client: Any, name: str, text: str) -> int:
        kept(client, name, text_of(ELSEWHERE))
        return kept(client, name, text)

    monkeypatch.setattr(run.calls, "replace", late)
    with pytest.raises(TrainiumError, match="another run takes the lease of the cluster bert at the same time; try"):
        Lease(ssm, "bert", ME).take(False, TAGS)


def meanwhile(ssm: Ssm, text: str) -> Callable[..., bool]:
    """Somebody else makes the parameter before us."""

    def create(*_given: Any) -> bool:
        ssm.kept[NAME] = (text, 1)
        return False

    return create


def test_a_write_whose_answer_was_lost_counts(ssm: Ssm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.calls, "create", meanwhile(ssm, text_of(ME)))
    assert Lease(ssm, "bert", ME).take(False, TAGS)


def test_who_was_faster_has_it(ssm: Ssm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.calls, "create", meanwhile(ssm, text_of(ELSEWHERE)))
    with pytest.raises(TrainiumError, match=r"^bob has been working"):
        Lease(ssm, "bert", ME).take(False, TAGS)


def test_one_that_went_again_meanwhile_is_told(ssm: Ssm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.calls, "create", lambda *_given: False)
    with pytest.raises(TrainiumError, match="at the same time; try again"):
        Lease(ssm, "bert", ME).take(False, TAGS)


@pytest.mark.parametrize("delete", [False, True])
def test_it_is_given_back_once(ssm: Ssm, delete: bool) -> None:
    lease = Lease(ssm, "bert", ME)
    lease.free(delete)
    assert ssm.names() == ["get_parameter"]
    lease.take(False, TAGS)
    lease.free(delete)
    assert ssm.kept.get(NAME) == (None if delete else ("free", 2))
    before = len(ssm.asked)
    lease.free(delete)
    assert ssm.names()[before:] == ["get_parameter"]


def test_what_another_run_has_taken_is_not_given_back(ssm: Ssm) -> None:
    ssm.kept[NAME] = (text_of(ELSEWHERE), 1)
    Lease(ssm, "bert", ME).free(True)
    assert holder(ssm) == ELSEWHERE


def test_it_is_watched_until_the_run_has_ended(ssm: Ssm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "detach", lambda work: work())
    pauses: list[float] = []
    monkeypatch.setattr(run.time, "sleep", pauses.append)
    living = iter([True, True, False])
    monkeypatch.setattr(run, "lives", lambda *_given: next(living))
    ssm.kept[NAME] = (text_of(ME), 1)
    Lease(ssm, "bert", ME).free_at_the_end()
    assert len(pauses) == 2
    assert ssm.kept[NAME] == ("free", 2)


def test_a_run_lives_as_long_as_its_process() -> None:
    assert lives(ME, ME.machine)
    assert not lives(gone(), ME.machine)
    # Another process got its number.
    assert not lives(ME._replace(started="1"), ME.machine)
    assert not lives(ME._replace(pid=0, started=""), ME.machine)
    # Of another machine nobody knows.
    assert lives(gone(), "another machine")


def test_without_proc_a_process_is_asked_for_by_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    ended_one = gone()
    monkeypatch.setattr(run.os.path, "exists", lambda _path: False)
    assert lives(ME, ME.machine)
    assert not lives(ended_one, ME.machine)

    def kill(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(run.os, "kill", kill)
    assert lives(ME, ME.machine)


def test_a_run_is_the_same_on_its_machine_with_its_process() -> None:
    assert ME.is_run(ME._replace(owner="x", host="y", since="z"))
    for other in (ME._replace(machine="x"), ME._replace(pid=1), ME._replace(started="0")):
        assert not ME.is_run(other)


def test_what_stands_in_the_parameter_is_fit_for_a_terminal() -> None:
    found = holder_of(text_of(ELSEWHERE._replace(host="a\x1b[2J" + "b" * 300)))
    assert found is not None
    assert found.host == "a?[2J" + "b" * 251
    assert holder_of(text_of(ELSEWHERE)) == ELSEWHERE


# --- the module ---


@pytest.fixture
def module(ssm: Ssm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    monkeypatch.setattr(cluster_lease.AnsibleAWSModule, "client", lambda _self, _name: ssm)
    monkeypatch.setattr(run.Lease, "free_at_the_end", lambda self, delete: watched.append(delete))
    watched: list[bool] = []

    def call(check: bool = False, **options: Any) -> dict[str, Any]:
        given = {"cluster_name": "bert", "owner": "ada", "pid": os.getpid(), "region": "us-west-2", **options}
        result, code = ended(cluster_lease.main, {**given, "_ansible_check_mode": check}, capsys)
        assert bool(code) == bool(result.get("failed"))
        keys = ("parameter", "region", "holds", "lost", "msg")
        return {**{key: result[key] for key in keys if key in result}, "watched": [*watched]}

    return call


def test_the_module_holds_it_and_watches(module: Callable[..., Any], ssm: Ssm) -> None:
    told = {"parameter": NAME, "region": "us-west-2", "holds": True, "lost": False}
    assert module() == {**told, "watched": [False]}
    found = holder(ssm)
    assert found is not None
    assert (found.owner, found.pid, found.machine) == ("ada", os.getpid(), ME.machine)
    # One process watches.
    assert module(delete=True) == {**told, "watched": [False]}
    assert module(had=True)["lost"] is False


def test_a_run_that_had_it_and_has_it_no_more_is_told(module: Callable[..., Any], ssm: Ssm) -> None:
    ssm.kept[NAME] = ("free", 1)
    assert module(had=True, delete=True) == {
        "parameter": NAME,
        "region": "us-west-2",
        "holds": True,
        "lost": True,
        "watched": [True],
    }


def test_the_module_breaks_it_where_it_is_told_to(module: Callable[..., Any], ssm: Ssm) -> None:
    ssm.kept[NAME] = (text_of(ELSEWHERE), 1)
    assert module()["msg"].startswith("bob has been working")
    assert module(break_lease=True)["holds"] is True


def test_the_module_frees_it(module: Callable[..., Any], ssm: Ssm) -> None:
    module()
    assert module(state="free")["holds"] is False
    assert ssm.kept[NAME] == ("free", 2)


def test_check_mode_asks_nobody(module: Callable[..., Any], ssm: Ssm) -> None:
    assert module(check=True)["holds"] is False
    assert ssm.asked == []


@pytest.mark.parametrize(
    ("code", "advice"), [("AccessDeniedException", ", or set trainium_lease to false."), ("InternalServerError", ".")]
)
def test_who_may_not_is_told_how_to_do_without(module: Callable[..., Any], ssm: Ssm, code: str, advice: str) -> None:
    ssm.refused["get_parameter"] = [code] * 20
    said = module()["msg"]
    assert said.endswith(advice)
    assert ("trainium_lease" in said) == ("trainium_lease" in advice)


def test_it_is_a_task_of_the_controller(module: Callable[..., Any]) -> None:
    assert module(pid=0)["msg"] == "cluster_lease: pid is missing; the module runs as a task on the controller only."
