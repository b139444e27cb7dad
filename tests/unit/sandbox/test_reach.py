"""Hosts that do not answer over ssh are noticed once for each start."""

from __future__ import annotations

import socket

import pytest

from sandbox import reach


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_host_that_does_not_answer_is_late_once() -> None:
    clock = Clock()
    asked: list[str] = []

    def answers(address: str) -> bool:
        asked.append(address)
        return False

    watch = reach.Reach(clock, answers)
    watch.started("i-1")
    late = []
    for clock.now in range(0, 300, 2):
        late += [clock.now] if watch.is_late("i-1", "10.77.0.4") else []
    assert len(late) == 1
    assert reach.SECONDS_TO_BOOT < late[0] < reach.SECONDS_TO_BOOT + 2 * reach.SECONDS_BETWEEN_LOOKS
    # Not at every step.
    assert len(asked) <= late[0] / reach.SECONDS_BETWEEN_LOOKS
    watch.started("i-1")
    clock.now += 2 * reach.SECONDS_TO_BOOT
    assert watch.is_late("i-1", "10.77.0.4")


@pytest.mark.parametrize("how", ["answers", "stopped"])
def test_a_host_that_has_answered_or_was_stopped_is_not_looked_at_again(how: str) -> None:
    clock = Clock()
    watch = reach.Reach(clock, lambda _address: how == "answers")
    watch.started("i-1")
    clock.now = 20
    assert not watch.is_late("i-1", "10.77.0.4")
    if how == "stopped":
        watch.forget("i-1")
    clock.now = 10 * reach.SECONDS_TO_BOOT
    assert not watch.is_late("i-1", "10.77.0.4")


def test_an_answer_is_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        monkeypatch.setattr(reach, "SSH", server.getsockname()[1])
        assert not reach.answers("127.0.0.1")
        server.listen()
        assert reach.answers("127.0.0.1")
