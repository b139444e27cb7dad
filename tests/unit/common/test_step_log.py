"""What the log of a training says."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.step_log import (
    last_step,
    parse_line,
    parse_log,
    report,
)
from hypothesis import given
from hypothesis import strategies as st

TUTORIAL = "LOG Wed Dec 21 00:51:01 2022 - (0, 14) step_loss : 10.7011 learning_rate : 2.80e-06 throughput : 6449.36"


def line(step: int, loss: float, throughput: float = 100.0, epoch: int = 0) -> str:
    return (
        f"LOG Wed Dec 21 00:51:01 2022 - ({epoch}, {step}) step_loss : {loss:.4f} "
        f"learning_rate : 2.80e-06 throughput : {throughput:.2f}"
    )


def test_the_tutorials_own_line() -> None:
    assert parse_line(TUTORIAL) == (0, 14, 10.7011, 2.8e-06, 6449.36)


@pytest.mark.parametrize(
    "other", ["", "LOG", "JOB nodes=2 processes=4", TUTORIAL[:60], TUTORIAL.replace("10.7011", "-")]
)
def test_other_lines_are_no_steps(other: str) -> None:
    assert parse_line(other) is None


def test_a_loss_that_is_no_number_is_still_a_step() -> None:
    step = parse_line(TUTORIAL.replace("10.7011", "nan"))
    assert step is not None
    assert step.loss != step.loss


def test_a_label_before_the_line_is_allowed() -> None:
    assert parse_line("0: " + TUTORIAL) == parse_line(TUTORIAL)


def test_a_step_that_was_done_twice_counts_once() -> None:
    text = "\n".join([line(1, 9), line(2, 8), line(3, 7), line(2, 6), line(3, 5)])
    assert [(step.step, step.loss) for step in parse_log(text)] == [(1, 9.0), (2, 6.0), (3, 5.0)]


def test_the_report_of_an_empty_log_says_so() -> None:
    assert report("torchrun: no such file") == {
        "steps": 0,
        "initial_loss": None,
        "final_loss": None,
        "throughput": None,
    }
    assert last_step("") is None


def test_the_throughput_leaves_the_start_out() -> None:
    slow = [line(step, 9, 1.0) for step in range(1, 6)]
    fast = [line(step, 8, 100.0 + step) for step in range(6, 11)]
    assert report("\n".join(slow + fast))["throughput"] == 108.0


@given(st.lists(st.floats(0, 50, allow_nan=False).map(lambda loss: round(loss, 4)), min_size=1, max_size=40))
def test_first_and_last_loss_are_those_of_the_log(losses: list[float]) -> None:
    text = "\n".join(line(number, loss) for number, loss in enumerate(losses, start=1))
    summary = report("noise\n" + text + "\nnoise")
    assert (summary["steps"], summary["initial_loss"], summary["final_loss"]) == (len(losses), losses[0], losses[-1])


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    assert report(text)["steps"] >= 0
