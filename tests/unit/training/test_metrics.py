"""What a training's log says, step by step and start by start."""

from __future__ import annotations

import json
import math

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.step_log import parse_log, time_of
from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import (
    averages,
    parse,
    steady,
    versions_of,
    warm_up,
    window_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.page import page
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.record import as_json, record_of
from hypothesis import given
from hypothesis import strategies as st


def line(step: int, loss: float = 1.0, throughput: float = 100.0, second: int = 0) -> str:
    return (
        f"LOG Wed Dec 21 00:51:{second:02} 2022 - (0, {step}) step_loss : {loss:.4f} "
        f"learning_rate : 2.80e-06 throughput : {throughput:.2f}\n"
    )


def start(nodes: int = 2) -> str:
    return f"JOB nodes={nodes} processes={nodes * 32}\n"


RESUMED = (
    start()
    + 'JOB versions {"python": "3.12.3", "torch": "2.9.0", "kernel": ""}\n'
    + "".join(line(step, 10 - step, second=step) for step in range(1, 9))
    + start(1)
    + "training: resumed from step 5\n"
    + "".join(line(step, 20 - step, second=20 + step) for step in range(6, 11))
)


def test_a_resumed_run_counts_each_step_once_the_later_one() -> None:
    found = parse([RESUMED])
    assert [sample.step for sample in found.samples] == list(range(1, 11))
    assert [sample.loss for sample in found.samples] == [9, 8, 7, 6, 5, 14, 13, 12, 11, 10]
    assert [sample.segment for sample in found.samples] == [1] * 5 + [2] * 5


def test_each_start_is_told_apart() -> None:
    first, second = parse([RESUMED]).segments
    assert (first.nodes, first.processes, first.resumed_from, first.redone) == (2, 64, None, 3)
    assert (first.first_step, first.last_step, first.steps) == (1, 5, 5)
    assert (second.nodes, second.processes, second.resumed_from, second.redone) == (1, 32, 5, 0)
    assert (second.first_step, second.last_step, second.steps) == (6, 10, 5)
    assert second.ended_at is not None and first.started_at is not None
    assert second.ended_at - first.started_at == 29


def test_a_training_lasts_from_its_first_start() -> None:
    """Slurm says when the job was started last; the log's dates may be of another time zone."""
    metrics = parse([RESUMED])
    first, second = metrics.segments
    assert first.started_at is not None and second.started_at is not None
    report = {"started_at": 1000.0, "ended_at": 1060.0}
    found = record_of(metrics, report, {}, running=False)["summary"]
    assert found["started_at"] == 1000.0 - (second.started_at - first.started_at)
    assert found["seconds"] == found["ended_at"] - found["started_at"] > 60


def test_the_logs_of_two_submissions_are_one_training() -> None:
    head, separator, tail = RESUMED.partition(start(1))
    assert parse([head, separator + tail]) == parse([RESUMED])


def test_steps_lost_with_a_start_and_not_done_again_are_not_counted() -> None:
    text = start() + line(1) + line(2) + line(3) + start() + "training: resumed from step 1\n"
    found = parse([text])
    assert [sample.step for sample in found.samples] == [1]
    assert found.segments[0].redone == 2
    assert found.segments[1].steps == 0


def test_a_step_that_a_bar_shows_again_was_not_done_again() -> None:
    def drawn(step: int) -> str:
        return f"Epoch 0:   0%|  | {step}/9 [00:01<00:09, 1.00s/it, reduced_train_loss={9 - step}.50]\r"

    found = parse([start() + "".join(map(drawn, (1, 1, 2, 3))) + start() + drawn(3) + drawn(4)])
    assert [(sample.step, sample.loss, sample.segment) for sample in found.samples] == [
        *((1, 8.5, 1), (2, 7.5, 1)),
        *((3, 6.5, 2), (4, 5.5, 2)),
    ]
    assert [segment.redone for segment in found.segments] == [1, 0]
    record = record_of(found, {}, {})
    assert record["summary"]["throughput"] is None
    assert as_json(record).count(b'"learning_rate": null') == 4
    text = page(record).decode()
    assert ">Loss<" in text and "Learning rate" not in text


def test_a_start_without_a_checkpoint_begins_anew() -> None:
    found = parse([start() + line(1) + line(2) + line(3) + start() + line(1, 7)])
    assert [(sample.step, sample.loss) for sample in found.samples] == [(1, 7)]


def test_a_step_that_every_process_logs_counts_once() -> None:
    found = parse([start() + line(1) + line(1, 2) + line(3) + line(2) + line(3, 4)])
    assert [(sample.step, sample.loss) for sample in found.samples] == [(1, 2), (2, 1), (3, 4)]


def test_versions_are_those_that_are_known() -> None:
    assert parse([RESUMED]).versions == {"python": "3.12.3", "torch": "2.9.0"}
    assert parse(["JOB versions {broken\nJOB versions {}\nJOB versions " + '{"a": ' * 5 + "\n"]).versions == {}
    hostile: dict[str, object] = {
        "torch": "2.9.0+cpu",
        "python": "{{ lookup('pipe', 'id') }}",
        "{% x": "1",
        "kernel": "1" * 65,
        "a": None,
        "b": {},
    }
    said = f"JOB versions {json.dumps(hostile)}\n"
    assert versions_of("JOB versions {}\n" + said) == parse([said]).versions == {"torch": "2.9.0+cpu"}


def test_a_script_without_marks_is_one_start() -> None:
    found = parse([line(1) + line(2)])
    assert [segment.steps for segment in found.segments] == [2]
    # Nobody has said on how many nodes.
    assert [(segment.nodes, segment.processes, segment.redone) for segment in found.segments] == [(0, 0, 0)]
    assert parse([""]) == ([], [], {})


def test_half_a_line_of_a_running_job_does_not_count() -> None:
    torn = line(1) + line(2).rstrip()[:-4]
    assert [sample.step for sample in parse([torn], running=True).samples] == [1]
    assert [sample.step for sample in parse([torn]).samples] == [1, 2]


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Wed Dec 21 00:51:01 2022", 1671583861),
        ("Thu Jan  1 00:00:07 1970", 7),
        ("Sun Feb 31 00:00:00 2022", None),
        ("Mit Dez 21 00:51:01 2022", None),
        ("2022-12-21", None),
    ],
)
def test_the_date_of_a_line(date: str, seconds: int | None) -> None:
    assert time_of(f"LOG {date} - (0, 1)") == seconds


def test_warming_up_ends_at_nine_tenths_of_the_steady_throughput() -> None:
    rates = [1.0, 50.0, 89.0, 91.0, 100.0, 100.0, 100.0, 100.0]
    assert steady(rates) == 100
    assert warm_up(rates) == 3
    assert (steady([]), warm_up([]), warm_up([0.0])) == (None, 0, 0)
    assert steady([math.nan]) is None


def test_a_number_of_endless_length_is_no_step() -> None:
    assert parse([line(1).replace("(0, 1)", f"(0, {'9' * 6000})")]).samples == []


numbers = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(numbers, max_size=60), st.integers(1, 20))
def test_a_mean_lies_among_its_values(values: list[float], window: int) -> None:
    found = averages(values, window)
    assert len(found) == len(values)
    for index, mean in enumerate(found):
        around = [v for v in values[max(0, index - window + 1) : index + 1] if math.isfinite(v) and abs(v) <= 1e30]
        assert mean is None if not around else (mean is not None and min(around) <= mean <= max(around))


@given(st.lists(st.integers(1, 30), max_size=60))
def test_without_marks_the_steps_are_those_of_the_summary(steps: list[int]) -> None:
    text = "".join(line(step, number) for number, step in enumerate(steps))
    assert [(s.step, s.loss) for s in parse([text]).samples] == [(s.step, s.loss) for s in parse_log(text)]


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=6))
def test_every_line_of_a_step_counts_or_was_redone(starts: list[tuple[int, int]]) -> None:
    text, logged = "", 0
    for after, count in starts:
        text += start() + f"training: resumed from step {after}\n"
        text += "".join(line(step) for step in range(after + 1, after + 1 + count))
        logged += count
    found = parse([text])
    steps = [sample.step for sample in found.samples]
    assert steps == sorted(set(steps))
    assert sum(segment.steps + segment.redone for segment in found.segments) == logged
    assert sum(segment.steps for segment in found.segments) == len(steps)
    assert max(steps, default=0) <= sum(starts[-1])


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    parse([text, "LOG " + text, "JOB versions " + text])


@given(st.integers(0, 10**7))
def test_the_window_has_a_size(count: int) -> None:
    assert 1 <= window_of(count) <= 100
