"""Action plugins that ask a node again, with a clock of the test's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.action.internal import training_unit_info
from ansible_collections.trainium.cluster.plugins.action.slurm_job_info import ActionModule as SlurmJobInfo
from ansible_collections.trainium.cluster.plugins.plugin_utils import _patient, _slurm_wait

from tests.unit.passing_time import Clock

Item = dict[str, Any]
LOST: Item = {"failed": True, "transient": True, "msg": "x: the node cannot be reached."}
RUNS: Item = {"ended": False, "active": True, "succeeded": False, "progress": None}
ENDED: Item = {**RUNS, "ended": True, "active": False}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    clock.governs(monkeypatch, _patient, _slurm_wait, training_unit_info)
    monkeypatch.setattr(_patient, "tell", lambda text: None)
    return clock


def asking(kind: Any, answers: list[Item], check_mode: bool = False, **arguments: Any) -> Any:
    """An action whose module gives one answer after the other, the last one for ever."""
    task = SimpleNamespace(action="trainium.cluster.x", args=arguments, check_mode=check_mode, async_val=0)
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/tmp"))  # noqa: S108 - nothing is written there
    action: Any = kind(task, connection, None, None, None)
    action.call = lambda *_arguments: dict(answers.pop(0) if len(answers) > 1 else answers[0])
    return action


def unit(tmp_path: Path, answers: list[Item], **arguments: Any) -> Item:
    wanted = {"name": "bert", "wait": True, "together": str(tmp_path), **arguments}
    result: Item = asking(training_unit_info.ActionModule, answers, **wanted).run()
    return result


def test_a_training_is_followed_over_a_lost_connection(clock: Clock, tmp_path: Path) -> None:
    result = unit(tmp_path, [RUNS, LOST, LOST, {**ENDED, "succeeded": True}])
    assert result["succeeded"] and not result.get("failed")
    assert clock.now == 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("answers", "seconds"), [([RUNS, ENDED], 2), ([RUNS, LOST], 300)])
def test_the_others_hear_of_a_failure(clock: Clock, tmp_path: Path, answers: list[Item], seconds: float) -> None:
    unit(tmp_path, answers)
    assert clock.now == seconds
    assert [path.name for path in tmp_path.iterdir()] == ["failed"]
    assert unit(tmp_path, [RUNS])["given_up"]


def test_check_mode_looks_once_and_tells_nobody(clock: Clock, tmp_path: Path) -> None:
    assert unit(tmp_path, [LOST], check_mode=True)["failed"]
    assert (clock.now, list(tmp_path.iterdir())) == (0, [])


def test_the_time_of_a_training_ends(clock: Clock, tmp_path: Path) -> None:
    result = unit(tmp_path, [RUNS], wait_timeout=7)
    assert result["failed"] and result["msg"].endswith("still after the wait_timeout; it goes on.")
    assert clock.now == 7


def test_what_does_not_pass_in_minutes_is_a_failure(clock: Clock) -> None:
    action = asking(SlurmJobInfo, [LOST])
    assert action.patiently(action.call)["failed"]
    assert clock.now == _patient.SECONDS_WITHOUT_ANSWER


def test_a_long_job_is_looked_at_less_often(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_slurm_wait, "job_text", lambda job: "job 7 RUNNING")
    job = {"ended": False, "restarts": 0}
    looks = 0
    action = asking(SlurmJobInfo, [job])
    action.show = lambda text: None
    call = action.call

    def counted(*arguments: Any) -> Item:
        nonlocal looks
        looks += 1
        answer: Item = call(*arguments)
        return answer

    action.call = counted
    assert action.follow({}, 120, None)["failed"]
    assert 40 < looks <= 61
    looks = 0
    assert action.follow({}, 86400, None)["failed"]
    assert 86400 / 30 < looks < 86400 / 30 + 400
