"""The module training_unit_info, which asks systemd, and what its action shows while a training goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.action.internal import training_unit_info as action
from ansible_collections.trainium.cluster.plugins.modules.internal import training_unit_info
from ansible_collections.trainium.cluster.plugins.plugin_utils import _patient

from tests.in_process import ended
from tests.unit.passing_time import Clock

Item = dict[str, Any]
DIGEST = "0123456789ab"
STEP = "LOG Wed Dec 21 00:51:01 2022 - (0, {}) step_loss : 8.31 learning_rate : 2.80e-06 throughput : 155.20\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The module where systemctl notes what it is asked and says ``says``."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def call(says: str, **arguments: Any) -> Item:
        stub = tmp_path / "systemctl"
        stub.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{says}\n')
        stub.chmod(0o755)
        given = {"name": "trainium-bert", "record": str(tmp_path / "node.0.json"), **arguments}
        return ended(training_unit_info.main, given, capsys)[0]

    return call


def test_a_training_that_runs_is_told_with_its_last_step(run: Any, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(map(STEP.format, range(1, 500))))
    assert log.stat().st_size > training_unit_info.TAIL
    found = run(f"echo ActiveState=active; echo 'Description=trainium job {DIGEST}'", log=str(log))
    assert (tmp_path / "asked").read_text() == "show --property=ActiveState,Description -- trainium-bert.service\n"
    assert (found["active"], found["digest"], found["ended"], found["changed"]) == (True, DIGEST, False, False)
    assert (found["given_up"], found["progress"]["step"], found["progress"]["loss"]) == (False, 499, 8.31)


def test_a_training_that_has_ended_is_told_by_its_record(run: Any, tmp_path: Path) -> None:
    record = {"exit_code": 3, "phase": "train", "restarts": 2, "started_at": 5, "ended_at": 9}
    (tmp_path / "node.0.json").write_text(json.dumps(record))
    found = run("echo ActiveState=inactive", log=str(tmp_path / "none.log"))
    assert {name: found[name] for name in record} == record
    assert (found["active"], found["ended"], found["succeeded"], found["progress"]) == (False, True, False, {})
    assert run("echo ActiveState=inactive")["progress"] == {}


@pytest.mark.parametrize(
    ("says", "reason"), [("echo no bus >&2; exit 1", "no bus"), ("echo no bus; exit 4", "exit code 4")]
)
def test_a_systemd_that_does_not_answer_is_named(run: Any, says: str, reason: str) -> None:
    found = run(says)
    assert found["failed"]
    assert found["msg"] == (
        f"training_unit_info: systemd does not answer for trainium-bert.service ({reason}); see the host's journal."
    )


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The action with these answers of its module: its result, and the lines that it showed."""
    clock = Clock()
    clock.governs(monkeypatch, action)
    told: list[str] = []
    monkeypatch.setattr(_patient, "tell", told.append)

    def follow(answers: list[Item], **arguments: Any) -> tuple[Item, list[str]]:
        told.clear()
        task = SimpleNamespace(
            action="x", args={"name": "trainium-bert", "wait": True, **arguments}, check_mode=False, async_val=0
        )
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/tmp"))  # noqa: S108 - nothing is written there
        made: Any = action.ActionModule(task, connection, None, None, None)
        made.call = lambda *_arguments: dict(answers.pop(0) if len(answers) > 1 else answers[0])
        return made.run(), list(told)

    return follow


def state(step: int = 0, **more: Any) -> Item:
    progress = {"step": step, "loss": 8.31, "throughput": 155.2} if step else {}
    return {"active": True, "ended": False, "succeeded": False, "progress": progress, **more}


ENDED = state(active=False, ended=True, succeeded=True)


def test_the_steps_of_the_first_node_are_shown(followed: Any) -> None:
    result, told = followed([state(), state(1), state(2), ENDED], steps=100)
    assert result["succeeded"]
    # That it runs is shown once; the step that is shown has the number of all steps.
    assert [line.rpartition(": ")[2] for line in told] == [
        "trainium-bert runs",
        *(f"step {step} of 100, loss 8.31, 155.2 examples/s" for step in (1, 2)),
    ]
    assert all(line.startswith("training_unit_info: ") for line in told)
    assert "step 1, loss" in followed([state(1), ENDED])[1][0]


def test_another_node_that_runs_is_shown_once(followed: Any) -> None:
    assert len(followed([state(), state(), state(), ENDED])[1]) == 1


def test_a_node_that_cannot_be_reached_is_shown(followed: Any) -> None:
    lost = {"failed": True, "transient": True, "msg": "x: it cannot be reached."}
    _result, told = followed([state(1), lost, ENDED])
    assert told[1] == "x: it cannot be reached."


def test_a_unit_that_failed_to_be_asked_ends_the_waiting(followed: Any, tmp_path: Path) -> None:
    result, _told = followed([state(), {**state(), "failed": True, "msg": "no"}], together=str(tmp_path))
    assert (result["failed"], result["msg"]) == (True, "no")
    assert (tmp_path / "failed").exists()


def test_one_that_nobody_runs_any_more_ends_it_as_well(followed: Any) -> None:
    result, _told = followed([state(), state(active=False)])
    assert (result["active"], result["ended"], result.get("failed")) == (False, False, None)
