"""A training without Slurm: what its nodes say, and what to do next."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.unit import decide, state_of, text_of
from hypothesis import given
from hypothesis import strategies as st

DIGEST = "0123456789ab"
RUNS = f"ActiveState=active\nDescription=trainium job {DIGEST}\n"
GONE = "ActiveState=inactive\nDescription=trainium-bert.service\n"
WELL = {"exit_code": 0, "phase": "train", "started_at": 1, "ended_at": 2, "restarts": 0}


def running(digest: str = DIGEST) -> dict[str, Any]:
    return state_of(RUNS.replace(DIGEST, digest), None)


def test_a_unit_that_runs_has_not_ended_whatever_the_record_of_an_earlier_one_says() -> None:
    state = state_of(RUNS, WELL)
    assert (state["active"], state["digest"], state["ended"], state["succeeded"]) == (True, DIGEST, False, False)


def test_the_record_tells_how_it_ended() -> None:
    assert state_of(GONE, WELL)["succeeded"]
    failed = state_of(GONE, {**WELL, "exit_code": 3, "phase": "compile"})
    assert (failed["ended"], failed["succeeded"], failed["exit_code"], failed["phase"]) == (True, False, 3, "compile")


def test_a_unit_that_was_killed_has_no_record() -> None:
    state = state_of(GONE, None)
    assert (state["active"], state["ended"], state["succeeded"], state["exit_code"]) == (False, False, False, -1)


def test_what_a_record_does_not_say_is_empty() -> None:
    state = state_of(GONE, {"exit_code": "x"})
    assert {name: state[name] for name in ("exit_code", "phase", "restarts", "started_at", "ended_at")} == {
        "exit_code": -1,
        "phase": "",
        "restarts": 0,
        "started_at": 0,
        "ended_at": 0,
    }
    assert (state["ended"], state["succeeded"]) == (True, False)
    assert state_of(GONE, {"phase": "train"})["exit_code"] == -1
    assert state_of(GONE, WELL)["ended_at"] == 2


@pytest.mark.parametrize("word", ["activating", "deactivating", "reloading"])
def test_what_starts_or_ends_is_active(word: str) -> None:
    assert state_of(RUNS.replace("active", word), None)["active"]
    assert not state_of(RUNS.replace("active", "failed"), None)["active"]


def test_the_step_is_shown() -> None:
    assert text_of("trainium-bert", {"progress": {}}, 9) == "trainium-bert runs"
    progress = {"step": 14, "loss": 10.7, "throughput": 6449.36}
    assert text_of("u", {"progress": progress}, 100) == "u runs: step 14 of 100, loss 10.70, 6449.4 examples/s"


@pytest.mark.parametrize(
    ("states", "action", "nodes"),
    [
        ({"a": state_of(GONE, None), "b": state_of(GONE, None)}, "start", ["a", "b"]),
        ({"a": running(), "b": running()}, "follow", []),
        ({"a": running(), "b": state_of(GONE, None)}, "follow", ["b"]),
        ({"a": running(), "b": state_of(GONE, {**WELL, "exit_code": 1})}, "follow", []),
        ({"a": state_of(GONE, WELL), "b": state_of(GONE, WELL)}, "done", []),
        ({"a": state_of(GONE, WELL), "b": state_of(GONE, {**WELL, "exit_code": 1})}, "start", ["a", "b"]),
    ],
)
def test_what_to_do(states: dict[str, Any], action: str, nodes: list[str]) -> None:
    assert decide(states, DIGEST) == {"refused": "", "action": action, "nodes": nodes}


def test_two_trainings_of_one_name_are_refused() -> None:
    decision = decide({"a": running("ffffffffffff"), "b": state_of(GONE, None)}, DIGEST)
    assert decision["action"] == ""
    assert decision["refused"].startswith("Another training of this name runs on a; ")


@given(st.text(), st.none() | st.dictionaries(st.text(), st.integers()))
def test_whatever_systemd_says_is_a_state(shown: str, record: dict[str, int] | None) -> None:
    state = state_of(shown, record)
    assert not (state["active"] and state["ended"])
    assert state["succeeded"] <= state["ended"]
