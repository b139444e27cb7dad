"""Waiting for nodes, with a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.waiting import WaitError, wait_for


class Cloud:
    """Shows one list of nodes after the other, the last one for ever; a second passes by sleeping only."""

    def __init__(self, *views: dict[str, str]) -> None:
        self.views = list(views)
        self.looks = 0
        self.now = 0.0

    def look(self) -> list[dict[str, Any]]:
        view = self.views[min(self.looks, len(self.views) - 1)]
        self.looks += 1
        return [{"instance_id": key, "state": state, "state_reason": "why"} for key, state in view.items()]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, goal: str, *ids: str, timeout: float = 60) -> list[dict[str, Any]]:
        return wait_for(goal, ids, self.look, timeout, Progress(""), clock=lambda: self.now, sleep=self.sleep)


def test_until_all_run() -> None:
    cloud = Cloud({"a": "pending"}, {"a": "running", "b": "pending"}, {"a": "running", "b": "running"})
    assert [node["state"] for node in cloud.wait("running", "a", "b")] == ["running", "running"]
    assert cloud.looks == 3


def test_others_do_not_matter() -> None:
    assert Cloud({"a": "running", "old": "terminated"}).wait("running", "a")


@pytest.mark.parametrize(
    ("goal", "state"), [("running", "terminated"), ("running", "shutting-down"), ("stopped", "terminated")]
)
def test_what_can_no_longer_be_ends_at_once(goal: str, state: str) -> None:
    cloud = Cloud({"a": state})
    with pytest.raises(WaitError, match=f"1 of 1 nodes can no longer become {goal}: a {state} why"):
        cloud.wait(goal, "a")
    assert cloud.now == 0


def test_the_time_is_kept() -> None:
    cloud = Cloud({"a": "running", "b": "pending"})
    with pytest.raises(WaitError, match="1 of 2 nodes are running after 7 s, waiting for b") as caught:
        cloud.wait("running", "a", "b", timeout=7)
    assert cloud.now == pytest.approx(7)
    assert caught.value.missing == ["b"]


def test_what_is_no_longer_shown_is_terminated() -> None:
    assert Cloud({"a": "shutting-down", "b": "shutting-down"}, {"a": "terminated"}).wait("terminated", "a", "b")


def test_looks_grow_rarer() -> None:
    cloud = Cloud({"a": "pending"})
    with pytest.raises(WaitError, match="0 of 1 nodes are running after 600 s"):
        cloud.wait("running", "a", timeout=600)
    assert cloud.looks < 75


class Trouble(Cloud):
    """Some looks fail before the views are seen."""

    def __init__(self, failures: int, transient: bool, *views: dict[str, str]) -> None:
        super().__init__(*views)
        self.failures, self.transient = failures, transient

    def look(self) -> list[dict[str, Any]]:
        if self.failures:
            self.failures -= 1
            raise AwsCallError("slow down", "RequestLimitExceeded", transient=self.transient)
        return super().look()


def test_a_throttled_look_says_nothing_of_the_nodes() -> None:
    assert Trouble(3, True, {"a": "pending"}, {"a": "running"}).wait("running", "a")


def test_a_look_that_will_not_succeed_is_not_repeated() -> None:
    cloud = Trouble(1, False, {"a": "running"})
    with pytest.raises(AwsCallError):
        cloud.wait("running", "a")
    assert cloud.now == 0


def test_without_an_answer_at_the_end_nobody_knows_about_the_nodes() -> None:
    cloud = Trouble(1000, True, {"a": "running"})
    with pytest.raises(AwsCallError, match="slow down"):
        cloud.wait("running", "a", timeout=7)
    assert cloud.now == pytest.approx(7)
