"""The one loop that waits, with a clock of the test's own, and the wait for one resource."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import (
    Goal,
    Pace,
    Seen,
    every,
    looks,
    wait_until,
)


def turns(timeout: float, pace: Pace | None, work: float = 0.0) -> list[float]:
    """When each look comes, where the clock goes on by pauses and by the ``work`` of each look."""
    now, seen = [100.0], []

    def sleep(seconds: float) -> None:
        assert seconds > 0
        now[0] += seconds

    for passed in looks(timeout, pace, lambda: now[0], sleep):
        seen.append(round(passed, 3))
        now[0] += work
    return seen


def test_pauses_grow_to_their_longest_and_the_last_look_comes_at_the_end() -> None:
    assert turns(12, Pace(1, 2, 4)) == [0, 1, 3, 7, 11, 12]
    assert turns(3, every(1)) == [0, 1, 2, 3]


@pytest.mark.parametrize("timeout", [0, -5])
def test_without_time_there_is_one_look(timeout: float) -> None:
    assert turns(timeout, None) == [0]


def test_the_time_that_looks_take_counts() -> None:
    assert turns(4, every(1), work=2) == [0, 3]


def test_the_usual_pace_begins_fast_and_is_never_slow() -> None:
    seen = turns(300, None)
    pauses = [round(after - before, 2) for before, after in zip(seen, seen[1:])]
    assert seen[-1] == 300
    assert pauses[0] <= 1
    assert pauses[:-1] == sorted(pauses[:-1])
    assert 5 <= max(pauses) <= 15


GOAL = Goal(
    "available",
    lambda seen: seen is not None and seen["state"] == "up",
    lambda seen: "fs-1 failed: no space" if seen and seen["state"] == "failed" else "",
    lambda seen: f"fs-1 ({(seen or {}).get('state')})",
)


def waited(tmp_path: Path, *states: str, timeout: float = 60) -> tuple[Seen, list[dict[str, object]]]:
    left, file = list(states), tmp_path / "progress"
    file.touch()
    progress = Progress(str(file))
    try:
        found = wait_until(GOAL, lambda: {"state": left.pop(0)}, timeout, progress, every(0.001))
    finally:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert left == []
    return found, lines


def test_what_was_seen_last_is_given_and_each_change_is_told(tmp_path: Path) -> None:
    found, lines = waited(tmp_path, "creating", "creating", "up")
    assert found == {"state": "up"}
    assert lines == [
        {"what": "available", "done": 0, "total": 1, "missing": ["fs-1 (creating)"]},
        {"what": "available", "done": 1, "total": 1, "missing": []},
    ]


def test_what_failed_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(TrainiumError, match="fs-1 failed: no space"):
        waited(tmp_path, "creating", "failed")


def test_the_end_of_the_time_says_how_far_it_is(tmp_path: Path) -> None:
    said = r"^fs-1 \(creating\) is not available after 0 s; run again, or raise wait_timeout$"
    with pytest.raises(TrainiumError, match=said):
        waited(tmp_path, "creating", timeout=0)
