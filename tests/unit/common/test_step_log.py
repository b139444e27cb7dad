"""What the log of a training says."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.step_log import (
    Step,
    StepReader,
    last_step,
    parse_log,
    report,
    step_text,
    time_of,
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
    assert StepReader().step(TUTORIAL) == Step(0, 14, 10.7011, 2.8e-06, 6449.36)


@pytest.mark.parametrize(
    "other", ["", "LOG", "JOB nodes=2 processes=4", TUTORIAL[:60], TUTORIAL.replace("10.7011", "-")]
)
def test_other_lines_are_no_steps(other: str) -> None:
    assert StepReader().step(other) is None


NXD = (
    "LOG Thu Aug  1 10:00:02 2024 - (0, 3) step_loss : 11.2031 learning_rate : 4.50e-06 throughput : 5.31 seq/s "
    "grad-norm : 7.25"
)
PIPELINE = "step 13 step_time 3.25s throughput 51.5 seq/s step loss 10.7011 grad norm 1.5"
# From the Neuron documentation, of Llama 2 with NeMo and of Llama 3 8B with its successor.
NEMO = (
    "Epoch 0:   0%|          | 189/301501 [59:12<1573:03:24, 18.79s/it, loss=7.75, v_num=3-16, "
    "reduced_train_loss=7.560, global_step=188.0, consumed_samples=24064.0]"
)
SUCCESSOR = (
    "Epoch 0:   5%|█         | 3/62 [02:59<58:44,  0.02it/s, v_num=8-06, reduced_train_loss=6.930, lr=2.73e-5, "
    "global_step=1.000, consumed_samples=32.00, throughput=0.108, throughput_peak=0.0677, gradient_norm=8.600]"
)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (NXD, Step(0, 3, 11.2031, 4.5e-06, 5.31)),
        # It counts from 0.
        (PIPELINE, Step(0, 14, 10.7011, throughput=51.5, pace=3.25)),
        (NEMO, Step(0, 189, 7.56, pace=18.79)),
        (SUCCESSOR, Step(0, 3, 6.93, 2.73e-5, 0.108, 50.0)),
        (
            "Epoch 0: :  47%|████▋     | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000]",
            Step(0, 7, 11.5),
        ),
        ("Epoch 2:  50%|█████     | 31/62 [02:59<58:44, 2.00it/s, loss=3.1, v_num=1]", Step(2, 155, 3.1, pace=0.5)),
        ("{'loss': 1.8, 'learning_rate': 5e-05, 'epoch': 1.02, 'step': 10}", Step(1, 10, 1.8, 5e-05)),
    ],
)
def test_the_lines_of_other_projects(text: str, step: Step) -> None:
    assert StepReader().step(text) == step


TRAINER = (
    "Map: 100%|██████████| 15011/15011 [00:09<00:00, 1588.21 examples/s]\n"
    "\r  0%|          | 0/1000 [00:00<?, ?it/s]\r  1%|          | 10/1000 [00:38<1:02:13,  3.77s/it]"
    "\r                    \r{'loss': 2.5, 'grad_norm': 1.25, 'learning_rate': 9.9e-05, "
    "'epoch': 0.01}\n"
    "\r  1%|          | 10/1000 [00:38<1:02:13,  3.77s/it]\r  2%|▏         | 20/1000 [01:16<1:01:43,  3.78s/it]"
    "\r                    \r{'loss': '1.5', 'learning_rate': '9.8e-05', 'epoch': '1.02'}\n"
    "{'eval_loss': 1.2, 'eval_runtime': 3.1, 'epoch': 1.02}\n"
    "{'train_runtime': 76.4, 'train_loss': 2.0, 'epoch': 1.02}\n"
)


def test_the_trainers_step_is_in_the_bar_before_its_loss() -> None:
    assert parse_log(TRAINER) == [
        Step(0, 10, 2.5, 9.9e-05, pace=3.77),
        Step(1, 20, 1.5, 9.8e-05, pace=3.78),
    ]
    assert report(TRAINER) == {"steps": 20, "initial_loss": 2.5, "final_loss": 1.5, "throughput": None}
    assert parse_log("{'loss': 2.5, 'epoch': 0.01}") == []
    last = last_step(TRAINER)
    assert last is not None
    assert step_text(last.shown(), 1000) == "step 20 of 1000, loss 1.50"


@pytest.mark.parametrize("text", [NXD, PIPELINE, NEMO, SUCCESSOR])
def test_a_torn_line_is_no_step(text: str) -> None:
    assert StepReader().step(text[: len(text) // 2]) is None


def test_numbers_that_no_step_can_have_are_passed_over() -> None:
    assert StepReader().step("{'loss': 1.8, 'epoch': inf, 'step': 10}") is None
    assert StepReader().step("{'loss': 1.8, 'epoch': 1, 'step': 1e400}") is None


def test_a_loss_that_is_no_number_is_still_a_step() -> None:
    step = StepReader().step(TUTORIAL.replace("10.7011", "nan"))
    assert step is not None
    assert step.loss != step.loss


def test_a_label_before_the_line_is_allowed() -> None:
    assert StepReader().step("0: " + TUTORIAL) == StepReader().step(TUTORIAL)


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


@pytest.mark.parametrize(
    ("text", "step"),
    [
        # A bar that has not begun, or says no loss, is none.
        (NEMO.replace("189/301501", "0/301501"), None),
        (NEMO.replace("reduced_train_loss=7.560, ", "").replace("loss=7.75, ", ""), None),
        # What is averaged over the nodes comes before what one of them has.
        (NEMO.replace("reduced_train_loss=7.560, ", ""), Step(0, 189, 7.75, pace=18.79)),
        (NEMO.replace("reduced_train_loss", "train_loss"), Step(0, 189, 7.56, pace=18.79)),
        (NEMO.replace("18.79s/it", "0.00it/s"), Step(0, 189, 7.56)),
        (NEMO.replace("Epoch 0", "Epoch 1"), Step(1, 301690, 7.56, pace=18.79)),
        (PIPELINE.removesuffix(" grad norm 1.5"), Step(0, 14, 10.7011, throughput=51.5, pace=3.25)),
        (PIPELINE.replace("step 13", "onestep 13"), None),
        ("{'loss': 1.8, 'step': 10}", Step(0, 10, 1.8)),
        ("{'loss': 1.8, 'step': 0}", None),
        ("{'eval_loss': 1.8, 'step': 10}", None),
        (TUTORIAL.replace("(0, 14)", "(3, 14)"), Step(3, 14, 10.7011, 2.8e-06, 6449.36)),
    ],
)
def test_what_a_line_says_and_leaves_out(text: str, step: Step | None) -> None:
    assert StepReader().step(text) == step


def test_a_step_is_shown_with_none_for_what_no_line_says() -> None:
    whole = Step(1, 14, 10.7, 2.8e-06, 6449.36, pace=3.0).shown()
    assert whole == {"epoch": 1, "step": 14, "loss": 10.7, "learning_rate": 2.8e-06, "throughput": 6449.36}
    bare = Step(0, 14, 10.704)
    assert (bare.shown()["learning_rate"], bare.shown()["throughput"]) == (None, None)
    assert step_text(whole, 100) == "step 14 of 100, loss 10.70, 6449.4 examples/s"
    assert step_text(bare.shown(), None) == step_text(bare.shown(), 0) == "step 14, loss 10.70"


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Thu Jan  1 00:00:00 1970", 0),
        ("Wed Dec 21 00:51:01 2022", 1671583861),
        ("Dec 21 00:51:01 2022", 1671583861),
        ("Thu Feb 29 12:00:00 2024", 1709208000),
        ("Wed Feb 29 12:00:00 2023", None),
        ("Sun Dec 31 23:59:60 2023", 1704067200),
        ("Sun Dec 31 23:59:61 2023", None),
        ("Sun Dec 31 24:00:00 2023", None),
        ("Sun Dec 31 23:60:00 2023", None),
        ("Sun Dec 32 23:00:00 2023", None),
        ("Sun Dec  0 23:00:00 2023", None),
        ("Wed Dec 31 23:59:59 1969", None),
        ("Sun Dez 31 23:00:00 2023", None),
        ("2023-12-31T23:00:00Z", None),
    ],
)
def test_the_date_of_a_line(date: str, seconds: int | None) -> None:
    assert time_of(TUTORIAL.replace("Wed Dec 21 00:51:01 2022", date)) == seconds


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2199, 12, 31)))
def test_a_date_as_c_writes_it_is_read(date: datetime) -> None:
    text = f"LOG {date.ctime()} - (0, 1)"
    assert time_of(text) == int(date.replace(microsecond=0, tzinfo=timezone.utc).timestamp())


def test_the_median_is_of_the_second_half_and_of_those_that_say_one() -> None:
    steps = [line(step, 9, 100.0 + step) for step in range(1, 6)]
    assert report("\n".join(steps))["throughput"] == 104.0
    assert report("\n".join([*steps, "{'loss': 1.8, 'step': 9}"]))["throughput"] == 105.0
    assert report(line(1, 9, 7.0))["throughput"] == 7.0


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    assert report(text)["steps"] >= 0
