"""The training script under real torchrun: interrupted in every way, it learns what an undisturbed run does."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import LINE, SCRIPTS, Once, Run, Train

STEPS = 60
# Sums of floats in another order; the log has four digits.
NOISE = 2e-3


def agree(run: Run, reference: Run, steps: range) -> None:
    assert set(steps) <= set(run.losses), run.text[-3000:]
    for step in steps:
        assert run.losses[step] == pytest.approx(reference.losses[step], abs=NOISE), f"step {step}"


def checkpoints(folder: Path) -> list[int]:
    return sorted(json.loads(path.read_text(encoding="utf-8"))["step"] for path in folder.glob("ckpt_*.json"))


ACCUMULATED = "--grad_accum_usteps=2"


@pytest.fixture
def undisturbed(train: Train, once: Once) -> Run:
    """Two processes, from the first step to the last."""
    folder, run = once(
        "undisturbed",
        lambda folder: train(folder, f"--steps_this_run={STEPS}", ACCUMULATED, processes=2, as_command=True),
    )
    assert run.code == 0, run.text
    assert checkpoints(folder) == [STEPS]
    return run


@pytest.fixture
def killed(train: Train, once: Once, tmp_path: Path) -> Run:
    """Two processes that were killed after step 12; their checkpoints are in the test's folder."""
    options = (f"--steps_this_run={STEPS}", ACCUMULATED)
    ended = {"until": "(0, 12)", "with_signal": signal.SIGKILL, "TRAINIUM_CHECKPOINT_STEPS": "4"}
    folder, run = once("killed", lambda folder: train(folder, *options, processes=2, **ended))
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return run


@pytest.fixture
def half(train: Train, once: Once, tmp_path: Path) -> Run:
    """Two processes that have run to step 20; their checkpoints are in the test's folder."""
    every = {"TRAINIUM_CHECKPOINT_STEPS": "5"}
    folder, run = once("half", lambda folder: train(folder, "--steps_this_run=20", ACCUMULATED, processes=2, **every))
    assert run.code == 0, run.text
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return run


def test_learns(undisturbed: Run) -> None:
    assert list(undisturbed.losses) == list(range(1, STEPS + 1))
    assert undisturbed.losses[STEPS] < undisturbed.losses[1] - 0.5
    # In a line to the peak, which the fifth step has; without --max_steps it stays there.
    rates = [rate for *_step, rate in LINE.findall(undisturbed.text)]
    assert rates == ["1.00e-03", "2.00e-03", "3.00e-03", "4.00e-03", *["5.00e-03"] * (STEPS - 4)]


@pytest.mark.parametrize("processes", [2, 1, 3])
def test_killed_and_resumed_by_any_number_of_processes(
    train: Train, undisturbed: Run, killed: Run, tmp_path: Path, processes: int
) -> None:
    assert killed.code != 0
    assert STEPS not in killed.losses
    agree(killed, undisturbed, range(1, 13))
    # After a requeue the arguments are the same, whatever the number of processes.
    options = (f"--steps_this_run={STEPS}", ACCUMULATED)
    second = train(tmp_path, *options, processes=processes, SLURM_RESTART_COUNT="1")
    assert second.code == 0, second.text
    begun = re.search(r"^training: resumed from step (\d+)$", second.text, re.MULTILINE)
    assert begun
    assert int(begun[1]) in range(8, STEPS, 4)
    assert f"training: {processes} processes on cpu" in second.text
    assert ", 32 a step" in second.text
    assert min(second.losses) == int(begun[1]) + 1
    agree(second, undisturbed, range(int(begun[1]) + 1, STEPS + 1))


@pytest.mark.parametrize("harm", ["truncated", "corrupt", "gone"])
@pytest.mark.usefixtures("half")
def test_passes_over_a_checkpoint_that_is_not_whole(train: Train, undisturbed: Run, tmp_path: Path, harm: str) -> None:
    newest = tmp_path / "ckpt_20.pt"
    content = bytearray(newest.read_bytes())
    if harm == "truncated":
        newest.write_bytes(content[: len(content) // 2])
    elif harm == "corrupt":
        content[len(content) // 2] ^= 1
        newest.write_bytes(content)
    else:
        newest.unlink()
    rest = train(tmp_path, f"--steps_this_run={STEPS}", ACCUMULATED, processes=2)
    assert f"training: warning: {newest} is not whole and passed over" in rest.text
    assert "training: resumed from step 15" in rest.text
    agree(rest, undisturbed, range(16, STEPS + 1))


def test_keeps_the_newest(train: Train, tmp_path: Path) -> None:
    run = train(tmp_path, "--steps_this_run=22", TRAINIUM_CHECKPOINT_STEPS="4", TRAINIUM_CHECKPOINT_KEEP="2")
    assert run.code == 0, run.text
    assert checkpoints(tmp_path) == [20, 22]
    assert sorted(path.name for path in tmp_path.glob("ckpt_*.pt")) == ["ckpt_20.pt", "ckpt_22.pt"]
    assert not list(tmp_path.glob("*.part"))
    assert run.text.count("training: checkpoint ") == 6


def test_stops_before_its_time_and_goes_on(train: Train, tmp_path: Path, soon: Callable[[float], str]) -> None:
    at = soon(15)
    run = train(tmp_path, "--steps_this_run=100000", processes=2, TRAINIUM_STOP_AT=at)
    stopped = re.search(r"^training: stopped before the time limit at step (\d+)$", run.text, re.MULTILINE)
    assert stopped, run.text
    step = int(stopped[1])
    assert checkpoints(tmp_path) == [step]
    assert max(run.losses) == step
    # What the job script looks for: torchrun itself ends with 1.
    assert re.search(r"exitcode *: 85\b", run.text)
    # How long steps will take is guessed by those before, which a busy machine can make wrong.
    assert (tmp_path / f"ckpt_{step}.pt").stat().st_mtime <= int(at) + 2 or step == 1
    again = train(tmp_path, f"--steps_this_run={step + 3}", processes=2, SLURM_RESTART_COUNT="1")
    assert list(again.losses) == [step + 1, step + 2, step + 3]


def test_stops_at_sigterm_with_a_checkpoint(train: Train, tmp_path: Path) -> None:
    ended = {"until": "(0, 5)", "with_signal": signal.SIGTERM}
    run = train(tmp_path, "--steps_this_run=100000", processes=2, as_command=True, **ended)
    stopped = re.search(r"^training: stopped before the time limit at step (\d+)$", run.text, re.MULTILINE)
    assert stopped, run.text
    assert checkpoints(tmp_path) == [int(stopped[1])]
    assert "exitcode  : 85" not in run.text


def test_the_others_stop_where_one_node_shuts_down(train: Train, tmp_path: Path) -> None:
    """They end with the code at which the job goes back into the queue, and not as if the training were complete."""
    folders = [tmp_path / "one", tmp_path / "two"]
    run = train(folders, "--steps_this_run=100000", until="(0, 5)", with_signal=signal.SIGTERM, to_node=1)
    stopped = re.search(r"^training: stopped before the time limit at step (\d+)$", run.text, re.MULTILINE)
    assert stopped, run.text
    assert [checkpoints(folder) for folder in folders] == [[int(stopped[1])]] * 2
    assert re.search(r"exitcode *: 85\b", run.text)


def test_saves_at_sigterm_though_nobody_reads_its_log(train: Train, tmp_path: Path) -> None:
    """Slurm ends what writes the log by the same signal."""
    options = ("--steps_this_run=100000", "--warmup_steps=6")
    ended = {"until": "(0, 5)", "with_signal": signal.SIGTERM, "hang_up": True}
    train(tmp_path, *options, processes=2, as_command=True, **ended)
    assert len(checkpoints(tmp_path)) == 1
    assert checkpoints(tmp_path)[0] >= 5


def test_a_node_that_lacks_the_checkpoint_is_sent_it(train: Train, undisturbed: Run, tmp_path: Path) -> None:
    """Without shared storage each node has its own; one node is replaced by an empty one."""
    folders = [tmp_path / "one", tmp_path / "two"]
    options = (f"--steps_this_run={STEPS}", ACCUMULATED)
    half = train(folders, "--steps_this_run=20", options[1], TRAINIUM_CHECKPOINT_STEPS="10")
    assert half.code == 0, half.text
    assert [checkpoints(folder) for folder in folders] == [[10, 20], [10, 20]]
    replaced = [tmp_path / "three", tmp_path / "two"]
    rest = train(replaced, *options, as_command=True)
    assert rest.code == 0, rest.text
    assert "training: resumed from step 20" in rest.text
    assert [checkpoints(folder) for folder in replaced] == [[20, STEPS], [10, 20, STEPS]]
    agree(rest, undisturbed, range(21, STEPS + 1))


def test_a_compile_run_leaves_checkpoints_alone(train: Train, tmp_path: Path) -> None:
    whole = train(tmp_path, "--steps_this_run=4")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir())
    for variable in ("TRAINIUM_COMPILE", "NEURON_EXTRACT_GRAPHS_ONLY"):
        run = train(tmp_path, "--steps_this_run=2", TRAINIUM_CHECKPOINT_STEPS="1", **{variable: "1"})
        assert run.code == 0, run.text
        assert list(run.losses) == [1, 2]
        assert "checkpoint" not in run.text
        assert run.losses[1] == whole.losses[1]
    assert sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir()) == before


def test_a_run_that_has_ended_begins_anew(train: Train, tmp_path: Path) -> None:
    first = train(tmp_path, "--steps_this_run=6", TRAINIUM_CHECKPOINT_STEPS="3")
    second = train(tmp_path, "--steps_this_run=6", TRAINIUM_CHECKPOINT_STEPS="3")
    assert "the run that ended at step 6 is left aside" in second.text
    assert second.losses == first.losses
    # Lost between its last checkpoint and its end, it is not done again.
    third = train(tmp_path, "--steps_this_run=6", SLURM_RESTART_COUNT="1")
    assert (third.code, third.losses) == (0, {})


@pytest.mark.usefixtures("half")
def test_another_training_in_the_same_folder_does_not_count(train: Train, tmp_path: Path) -> None:
    other = train(tmp_path, "--steps_this_run=24", "--seed=7")
    assert "resumed" not in other.text
    assert min(other.losses) == 1


@pytest.mark.parametrize(
    "extra", [("--optimizer=lamb", "--lr=0.05"), ("--bf16",), ("--optimizer=lamb", "--lr=0.05", "--bf16")]
)
def test_optimizers_and_precisions_learn_and_resume(train: Train, tmp_path: Path, extra: tuple[str, ...]) -> None:
    options = ("--max_steps=40", *extra)
    whole = train(tmp_path / "whole", "--steps_this_run=40", *options, TRAINIUM_CHECKPOINT_STEPS="20")
    assert whole.code == 0, whole.text
    assert whole.losses[40] < whole.losses[1] - 0.2
    (tmp_path / "cut").mkdir()
    for kept in (tmp_path / "whole").glob("ckpt_20.*"):
        shutil.copy(kept, tmp_path / "cut")
    rest = train(tmp_path / "cut", "--steps_this_run=40", *options)
    assert min(rest.losses) == 21
    agree(rest, whole, range(21, 41))
    # In a line to 0 at step 40: the last step is made with 1/35 of the peak.
    assert "(0, 40)" in rest.text
    peak = 0.05 if "--lr=0.05" in extra else 0.005
    assert f"learning_rate : {peak / 35:.2e}" in rest.text


@pytest.mark.usefixtures("half")
def test_refuses_in_one_sentence_what_cannot_be_divided(train: Train, tmp_path: Path) -> None:
    run = train(tmp_path, "--steps_this_run=24", "--batch_size=7", processes=2)
    assert run.code != 0
    assert "A step of this training has 32 examples, which cannot be divided into micro-steps of 7" in run.text
    assert "bert_data.py" not in run.text


def test_refuses_in_one_sentence_a_checkpoint_of_an_earlier_release(python: Path) -> None:
    """It counted the updates of each weight by itself."""
    code = (
        "import torch, bert_optimizer\n"
        "kept = {'inner': {'state': {}, 'param_groups': [{'lr': 0.0}]}, 'masters': []}\n"
        "bert_optimizer.Optimizer(torch.nn.Linear(2, 2), 'adamw').load_state_dict(kept)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    ended = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("The checkpoint is of an earlier release of this script: set TRAINIUM_RESUME=0")


@pytest.mark.parametrize("name", ["TRAINIUM_STOP_AT", "TRAINIUM_CHECKPOINT_STEPS"])
def test_refuses_a_variable_that_is_no_number(train: Train, tmp_path: Path, name: str) -> None:
    started = time.monotonic()
    run = train(tmp_path, **{name: "tomorrow"})
    assert run.code != 0
    assert f"The environment variable {name} is 'tomorrow'; give a number." in run.text
    assert time.monotonic() - started < 60


def test_goes_on_where_a_checkpoint_cannot_be_written(train: Train, tmp_path: Path) -> None:
    """One on the way is done without, the last one is what the training was for."""
    limited = train(tmp_path / "limited", "--steps_this_run=6", largest_file=200_000, TRAINIUM_CHECKPOINT_STEPS="2")
    assert limited.code != 0
    assert list(limited.losses) == [1, 2, 3, 4, 5, 6]
    for step in (2, 4, 6):
        assert f"limited/ckpt_{step}.pt could not be written: File too large" in limited.text
    assert not list((tmp_path / "limited").iterdir())
    assert "bert_checkpoint.py" not in limited.text


def test_refuses_a_folder_that_cannot_be_written(train: Train) -> None:
    run = train(Path("/proc/nowhere"), "--steps_this_run=6")
    assert run.code != 0
    assert "/proc/nowhere, the --output_dir, cannot be written: No such file or directory." in run.text
    assert "bert_checkpoint.py" not in run.text
