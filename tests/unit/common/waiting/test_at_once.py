"""Several calls at the same time, and how many a second."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.at_once import AT_ONCE, Bucket, at_once

from tests.unit.passing_time import Clock


@pytest.mark.parametrize("count", [2, AT_ONCE])
def test_all_run_at_the_same_time_and_answer_in_order(count: int) -> None:
    meeting = threading.Barrier(count, timeout=60)

    def work(number: int) -> int:
        meeting.wait()
        return number

    assert at_once(*[lambda number=number: work(number) for number in range(count)]) == list(range(count))


def test_nothing_to_do() -> None:
    assert at_once() == []
    assert at_once(lambda: 1) == [1]


def test_the_first_error_in_order_when_all_have_ended() -> None:
    ended = []
    second = threading.Event()

    def fail(name: str, before: threading.Event | None = None) -> None:
        if before:
            before.wait(60)
        else:
            second.set()
        ended.append(name)
        raise ValueError(name)

    with pytest.raises(ValueError, match="first"):
        at_once(lambda: fail("first", second), lambda: fail("second"), lambda: ended.append("third"))
    assert sorted(ended) == ["first", "second", "third"]


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    clock = Clock(100.0)
    bucket = Bucket(3, 5, lambda: clock.now, clock.sleep)
    begun = []
    for _call in range(6):
        bucket.take()
        begun.append(round(clock.now - 100, 3))
    assert begun == [0, 0, 0, 0.2, 0.4, 0.6]


def test_a_bucket_fills_again_and_not_over_its_size() -> None:
    clock = Clock(100.0)
    bucket = Bucket(2, 5, lambda: clock.now, clock.sleep)
    for _call in range(2):
        bucket.take()
    clock.now += 60
    begun = []
    for _call in range(3):
        bucket.take()
        begun.append(round(clock.now - 160, 3))
    assert begun == [0, 0, 0.2]
