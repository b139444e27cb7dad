"""Action plugins: which module is called with what, how often, and what is handed on, with answers of a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.action import (
    dataset,
    kubernetes_job,
    kubernetes_job_info,
    slurm_job,
    slurm_job_info,
    slurm_ready,
)
from ansible_collections.trainium.cluster.plugins.plugin_utils import _patient

from tests.unit.controller.test_asking_again import LOST, Item, asking, clock
from tests.unit.passing_time import Clock

__all__ = ["clock"]  # a fixture
HOST = {"inventory_hostname": "head"}
FAILED: Item = {"failed": True, "msg": "no."}


class Asked:
    """An action, every call of a module that it made, and what it showed."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, kind: Any, answers: Iterable[Item], check: bool = False, **arguments: Any
    ) -> None:
        self.calls: list[tuple[str, Item]] = []
        self.shown: list[str] = []
        self._answers = [dict(one) for one in answers]
        monkeypatch.setattr(_patient, "tell", self.shown.append)
        action = asking(kind, [{}], check, **arguments)
        action.call = self._call
        action._execute_module = self._execute
        action._connection.transport = "ssh"
        action._task.get_name = lambda: "role : A task"
        action._task.delegate_to = None
        self.result: Item = action.run(task_vars=HOST)
        assert self._answers == [], "a call that was foreseen was not made"

    def _call(self, module: str, given: Item, task_vars: Item) -> Item:
        # Without the host's variables Ansible would not find its interpreter.
        assert task_vars == HOST
        return self._answer(module, given)

    def _execute(
        self, module_name: str = "", module_args: Item | None = None, task_vars: Item | None = None, **_more: Any
    ) -> Item:
        assert task_vars == HOST
        return self._answer(module_name or "its own", module_args)

    def _answer(self, module: str, given: Item | None) -> Item:
        self.calls.append((module, dict(given or {})))
        return self._answers.pop(0)

    @property
    def modules(self) -> list[str]:
        return [name for name, _given in self.calls]


@pytest.fixture(autouse=True)
def no_pause(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes by itself."""
    monkeypatch.setattr(slurm_ready, "looks", _patient.looks)


# --- dataset ---

RUNS: Item = {"running": True, "progress": "1 of 2 MB"}
SOURCE: Item = {"name": "a", "source": "s3://b/c", "destination": "/d", "checksum": "sha256:0", "urls": ["secret"]}


def test_a_transfer_is_asked_for_until_it_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    end = {"changed": False, "complete": True, "running": False}
    asked = Asked(monkeypatch, dataset.ActionModule, [RUNS, RUNS, end], **SOURCE)
    (_name, first), *later = asked.calls
    assert first == {**SOURCE, "attempt": first["attempt"], "wait": 5}
    assert len(first["attempt"]) == 32
    # The addresses are not sent again, and what is asked for is this attempt.
    known = {name: SOURCE[name] for name in ("name", "source", "destination", "checksum")}
    assert later == [("dataset", {**known, "attempt": first["attempt"], "wait": 20})] * 2
    assert asked.shown == ["dataset: head: 1 of 2 MB"]
    # Who started it has changed something, whatever the last answer says.
    assert (asked.result["changed"], asked.result.get("failed")) == (True, None)


def test_an_attempt_that_is_named_is_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, dataset.ActionModule, [{"changed": False, "complete": True}], **SOURCE, attempt="x")
    assert asked.calls == [("its own", {**SOURCE, "attempt": "x", "wait": 5})]
    assert asked.result["changed"] is False


def test_a_transfer_that_ended_unseen_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, dataset.ActionModule, [RUNS, {"running": False}], **SOURCE)
    assert asked.result["failed"]
    assert asked.result["msg"] == "The transfer to head ended while it was not seen; run again to go on."
    asked = Asked(monkeypatch, dataset.ActionModule, [RUNS, LOST, FAILED], **SOURCE)
    assert (asked.result["failed"], asked.result["msg"]) == (True, "no.")
    assert "changed" not in asked.result


@pytest.mark.parametrize(("check", "more"), [(True, {}), (False, {"wait": 3})])
def test_a_look_at_a_dataset_is_one(monkeypatch: pytest.MonkeyPatch, check: bool, more: Item) -> None:
    asked = Asked(monkeypatch, dataset.ActionModule, [RUNS], check, **SOURCE, **more)
    assert asked.calls == [("its own", {**SOURCE, **more})]
    assert asked.result["running"]


# --- jobs of Slurm ---

FIRST: Item = {"changed": True, "submitted": True, "diff": {"after": "x"}, "job_id": 7, "log": "/l", "ended": False}
END: Item = {
    "ended": True,
    "succeeded": True,
    "requeue_reason": "",
    "restarts": 0,
    "changed": False,
    "submitted": False,
}
BAD: Item = {
    **END,
    "succeeded": False,
    "state": "FAILED",
    "reason": "None",
    "exit_code": "3:0",
    "last_lines": ["Boom"],
    "job_id": 7,
    "name": "a",
    "log": "/l",
}
JOB: Item = {"name": "a", "script": "/s", "wait": True}


def slurm(monkeypatch: pytest.MonkeyPatch, answers: Iterable[Item], check: bool = False, **more: Any) -> Asked:
    return Asked(monkeypatch, slurm_job.ActionModule, answers, check, **{**JOB, **more})


def test_a_job_is_submitted_followed_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = {**END, "state": "COMPLETED", "log": "/l"}
    asked = slurm(monkeypatch, [FIRST, {**END, "requeue_reason": "node failure"}, noted], steps=9)
    arguments = {**JOB, "steps": 9}
    assert asked.calls == [
        ("slurm_job", arguments),
        ("slurm_job_info", {"job_id": 7, "log": "/l", "steps": 9}),
        ("slurm_job", {**arguments, "resubmit": "never"}),
    ]
    wanted = {"changed": True, "submitted": True, "diff": FIRST["diff"], "state": "COMPLETED"}
    assert {name: asked.result[name] for name in wanted} == wanted
    assert asked.result["requeue_reason"] == "node failure"
    assert not asked.result.get("failed")


def test_without_a_log_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = slurm(monkeypatch, [{**FIRST, "log": ""}, END, END])
    assert asked.calls[1] == ("slurm_job_info", {"job_id": 7})


def test_a_job_that_has_ended_before_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert slurm(monkeypatch, [{**FIRST, **END, "changed": False}]).modules == ["slurm_job"]


def test_a_job_that_failed_fails_the_task_and_shows_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for answers in ([FIRST, BAD, BAD], [{**FIRST, **BAD}]):
        asked = slurm(monkeypatch, answers)
        said = "slurm_job: job 7 (a) ended as FAILED with exit code 3:0; see the end of its log /l."
        assert (asked.result["failed"], asked.result["msg"]) == (True, said)
        assert asked.shown[-1] == "  Boom"


@pytest.mark.parametrize(("resubmit", "calls"), [("failed", 2), ("never", 2), ("always", 1)])
def test_what_may_have_been_submitted_is_asked_again_only_where_it_is_known_again(
    monkeypatch: pytest.MonkeyPatch, resubmit: str, calls: int
) -> None:
    """With always, to ask twice would submit twice."""
    asked = slurm(monkeypatch, [LOST, FAILED][:calls], resubmit=resubmit)
    assert asked.modules == ["slurm_job"] * calls
    assert asked.result["failed"]


@pytest.mark.parametrize("at", [1, 2])
def test_a_failure_after_the_submission_keeps_that_it_was_submitted(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    asked = slurm(monkeypatch, [*[FIRST, END][:at], FAILED])
    kept = {"changed": True, "submitted": True, "diff": FIRST["diff"], "failed": True, "msg": "no."}
    if at == 2:
        # How it ended is known; that it could not be noted is the failure.
        assert asked.modules == ["slurm_job", "slurm_job_info", "slurm_job"]
    assert {name: asked.result[name] for name in kept} == kept


def test_jobs_that_are_cancelled_are_followed_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = {"changed": True, "cancelled": [7, 8]}
    asked = slurm(monkeypatch, [cancelled, {**END, "succeeded": False}, FAILED], state="absent")
    assert asked.calls[1:] == [("slurm_job_info", {"job_id": 7}), ("slurm_job_info", {"job_id": 8})]
    assert (asked.result["failed"], asked.result["msg"], asked.result["cancelled"]) == (True, "no.", [7, 8])
    # That somebody has ended it is no failure.
    assert not slurm(monkeypatch, [cancelled, BAD, BAD], state="absent").result.get("failed")


@pytest.mark.parametrize(("check", "wait"), [(True, True), (False, False)])
def test_who_does_not_wait_gets_the_first_answer(monkeypatch: pytest.MonkeyPatch, check: bool, wait: bool) -> None:
    asked = slurm(monkeypatch, [FIRST], check, wait=wait)
    assert asked.modules == ["its own"]
    assert asked.result["job_id"] == 7


@pytest.mark.parametrize(("check", "wait"), [(True, True), (False, False), (False, True)])
def test_a_job_is_looked_at_once_or_followed(monkeypatch: pytest.MonkeyPatch, check: bool, wait: bool) -> None:
    arguments = {"job_id": 7, "log": "/l", "wait": wait}
    asked = Asked(monkeypatch, slurm_job_info.ActionModule, [END], check, **arguments)
    followed = wait and not check
    assert asked.calls == [("slurm_job_info", arguments) if followed else ("its own", {})]
    assert asked.result["succeeded"]


# --- nodes of Slurm ---

READY: Item = {"ready": ["n1"], "drained": [], "awaited": [], "text": "1 of 2"}
AWAITED: Item = {**READY, "awaited": ["n2"]}


@pytest.mark.parametrize(
    ("answers", "arguments", "failed"),
    [
        ([READY], {}, False),
        ([{**READY, "ready": [], "drained": ["n1"]}], {}, False),
        ([AWAITED, READY], {}, False),
        ([{**READY, "ready": []}, READY], {}, False),
        ([FAILED], {}, True),
        ([LOST, READY], {}, False),
        ([AWAITED] * 3, {"timeout": 3}, True),
        ([AWAITED] * 3, {"timeout": 3, "require": "any"}, False),
        ([{**AWAITED, "ready": []}] * 3, {"timeout": 3, "require": "any"}, True),
    ],
)
def test_until_there_is_nothing_to_wait_for(
    monkeypatch: pytest.MonkeyPatch, answers: list[Item], arguments: Item, failed: bool
) -> None:
    asked = Asked(monkeypatch, slurm_ready.ActionModule, answers, **arguments)
    assert bool(asked.result.get("failed")) == failed
    if failed and len(answers) > 1:
        begin = "slurm_ready: 1 of 2, still after 3 s; look into the logs of slurmctld there and of slurmd on the node."
        assert asked.result["msg"] == begin


def test_check_mode_looks_at_nodes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Asked(monkeypatch, slurm_ready.ActionModule, [AWAITED], True).result["awaited"] == ["n2"]


# --- trainings on Kubernetes ---

MADE: Item = {"changed": True, "submitted": True, "made": ["Job a-0"], "ended_others": [], "diff": {}, "job_id": "a"}
POD: Item = {**END, "stuck": False, "job_id": "a", "name": "", "state": "COMPLETED", "reason": "", "remedy": ""}
OBJECTS: Item = {"name": "a", "objects": [{"kind": "Job"}], "namespace": "n", "kubeconfig": "/k", "wait": True}


def kubernetes(monkeypatch: pytest.MonkeyPatch, answers: Iterable[Item], check: bool = False, **more: Any) -> Asked:
    return Asked(monkeypatch, kubernetes_job.ActionModule, answers, check, **{**OBJECTS, **more})


def test_a_training_on_kubernetes_is_followed_where_it_was_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = kubernetes(
        monkeypatch,
        [LOST, MADE, {**POD, "changed": False, "made": [], "ended_others": ["b"], "diff": {"a": 1}}],
        steps=9,
        success="done",
    )
    where = {"name": "a", "steps": 9, "success": "done", "namespace": "n", "kubeconfig": "/k"}
    arguments = {**OBJECTS, "steps": 9, "success": "done"}
    assert asked.calls == [("kubernetes_job", arguments)] * 2 + [("kubernetes_job_info", where)]
    kept = {name: MADE[name] for name in ("changed", "submitted", "made", "ended_others", "diff")}
    assert {name: asked.result[name] for name in kept} == kept
    assert (asked.result["state"], asked.result.get("failed")) == ("COMPLETED", None)


@pytest.mark.parametrize(
    ("answer", "check", "more"),
    [
        ({**MADE, **FAILED}, False, {}),
        (MADE, False, {"wait": False}),
        (MADE, False, {"state": "absent"}),
        (MADE, True, {}),
    ],
)
def test_what_is_not_followed_on_kubernetes(
    monkeypatch: pytest.MonkeyPatch, answer: Item, check: bool, more: Item
) -> None:
    asked = kubernetes(monkeypatch, [answer], check, **more)
    assert asked.modules == ["its own" if check else "kubernetes_job"]
    assert asked.result["made"] == MADE["made"]


def test_a_training_that_failed_or_cannot_go_on_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {**POD, **BAD, "job_id": "a", "name": ""}
    asked = kubernetes(monkeypatch, [MADE, bad])
    said = "x: job a ended as FAILED with exit code 3:0. See the end of its log, and those of the other ranks."
    assert (asked.result["failed"], asked.result["msg"], asked.shown[-1]) == (True, said, "  Boom")
    assert kubernetes(monkeypatch, [MADE, {**bad, "remedy": "Do."}]).result["msg"].endswith("code 3:0. Do.")
    stuck = {**bad, "ended": False, "stuck": True, "reason": "no image", "remedy": "Name another."}
    asked = kubernetes(monkeypatch, [MADE, stuck])
    said = "job a cannot go on (no image); it was left, since pods of it run or ran. Name another."
    assert (asked.result["failed"], asked.result["msg"]) == (True, f"x: {said}")
    assert asked.result["made"] == MADE["made"]


@pytest.mark.parametrize(
    ("check", "more", "calls"),
    [
        (False, {"wait": True}, ["kubernetes_job_info"]),
        (False, {"wait": True, "logs": "/logs"}, ["kubernetes_job_info", "its own"]),
        (False, {}, ["its own"]),
        (True, {"wait": True}, ["its own"]),
    ],
)
def test_logs_of_pods_are_fetched_once_at_the_end(
    monkeypatch: pytest.MonkeyPatch, check: bool, more: Item, calls: list[str]
) -> None:
    asked = Asked(monkeypatch, kubernetes_job_info.ActionModule, [POD] * len(calls), check, name="a", **more)
    assert asked.modules == calls
    assert "logs" not in asked.calls[0][1]


def test_no_logs_are_fetched_of_what_cannot_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, kubernetes_job_info.ActionModule, [FAILED], name="a", wait=True, logs="/logs")
    assert (asked.result["failed"], asked.modules) == (True, ["kubernetes_job_info"])
