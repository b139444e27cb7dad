"""How far a job is, and why it failed."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import (
    duration,
    failure_text,
    job_text,
    last_lines,
    node_exit_codes,
    ordinal,
    progress,
    requeue_reason,
)
from hypothesis import given
from hypothesis import strategies as st

JOB: dict[str, Any] = {
    "job_id": 12,
    "name": "bert",
    "state": "RUNNING",
    "reason": "None",
    "exit_code": "0:0",
    "batch_host": "n1",
    "nodes": "n[1-2]",
    "restarts": 0,
    "tasks": {},
    "requeue_reason": "",
}


def line(step: int, second: int) -> str:
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"LOG Sat Nov 21 {clock} 2026 - (0, {step}) step_loss : 10.5 learning_rate : 2.80e-06 throughput : 64.0\n"


@given(st.integers(1, 50), st.integers(2, 100), st.integers(0, 1000))
def test_the_time_left_is_that_of_the_steps_left(pace: int, done: int, left: int) -> None:
    text = "".join(line(step, step * pace) for step in range(1, done + 1))
    found = progress(text, done + left)
    assert (found["step"], found["steps"], found["seconds_left"]) == (done, done + left, left * pace)


def test_after_a_restart_the_pace_counts_anew() -> None:
    text = "".join(line(step, step) for step in range(1, 9)) + "".join(
        line(step, 900 + 10 * step) for step in (5, 6, 7)
    )
    assert progress(text, 10)["seconds_left"] == 30


def test_without_dates_the_pace_is_what_the_line_says() -> None:
    found = progress("Epoch 0:   0%|  | 10/90 [00:01<00:09, 2.50s/it, loss=7.75]\r", 90)
    assert found == {
        "epoch": 0,
        "step": 10,
        "steps": 90,
        "loss": 7.75,
        "learning_rate": None,
        "throughput": None,
        "seconds_left": 200,
    }


@pytest.mark.parametrize("text", ["", "nothing\n", "LOG torn - (0, 1"])
def test_no_steps_no_progress(text: str) -> None:
    assert progress(text, 10) == {}


def test_one_step_says_nothing_of_the_time_left() -> None:
    assert progress(line(3, 1), 10)["seconds_left"] is None
    assert progress(line(1, 1) + line(3, 3), None)["seconds_left"] is None
    assert progress(line(12, 1), 10)["seconds_left"] == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45, "45 s"), (90, "2 min"), (720, "12 min"), (12000, "3 h 20 min"), (187200, "2 d 4 h")],
)
def test_durations(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "job 12 RUNNING on n[1-2]"),
        ({"state": "PENDING", "nodes": "", "reason": "Resources"}, "job 12 PENDING (Resources)"),
        (
            {"progress": {"step": 14, "steps": 100, "loss": 10.7011, "throughput": 6449.36, "seconds_left": 180}},
            "job 12 RUNNING on n[1-2]: step 14 of 100, loss 10.70, 6449.4 examples/s, about 3 min left",
        ),
        (
            {"progress": {"step": 14, "steps": None, "loss": 10.7, "throughput": 6449.36, "seconds_left": None}},
            "job 12 RUNNING on n[1-2]: step 14, loss 10.70, 6449.4 examples/s",
        ),
        (
            {"state": "PENDING", "nodes": "", "reason": "BeginTime", "restarts": 2, "requeue_reason": "node failure"},
            "job 12 PENDING (BeginTime), requeued for the 2nd time because of node failure",
        ),
        (
            {"restarts": 1, "requeue_reason": "it stopped before the time limit at step 40"},
            "job 12 RUNNING on n[1-2], requeued for the 1st time because it stopped before the time limit at step 40",
        ),
        ({"restarts": 1}, "job 12 RUNNING on n[1-2], requeued for the 1st time"),
        ({"tasks": {"FAILED": 1, "RUNNING": 2}}, "job 12 RUNNING (1 FAILED, 2 RUNNING) on n[1-2]"),
    ],
)
def test_the_line_for_the_screen(changes: dict[str, Any], text: str) -> None:
    assert job_text({**JOB, **changes}) == text


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd")]
)
def test_ordinals(number: int, text: str) -> None:
    assert ordinal(number) == text


# As srun of Slurm 22.05 says it.
SRUN = """\
srun: error: n2: task 1: Exited with exit code 3
srun: error: n[3-4]: tasks 2-3: Exited with exit code 1
srun: error: n5: tasks 4,6: Killed
srun: error: n6: task 7: Segmentation fault (core dumped)
srun: error: Unable to create step for job 3: Job/step already completing or completed
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
"""


def test_exit_codes_by_node() -> None:
    assert [(code["node"], code["task"], code["exit_code"]) for code in node_exit_codes(SRUN)] == [
        ("n2", 1, 3),
        ("n3", 2, 1),
        ("n4", 3, 1),
        ("n5", 4, 137),
        ("n5", 6, 137),
        ("n6", 7, 139),
    ]


def test_exit_codes_of_more_tasks_than_nodes_name_the_nodes() -> None:
    text = "srun: error: n[1-2]: tasks 0-7: Exited with exit code 1\n"
    assert [(code["node"], code["task"]) for code in node_exit_codes(text)] == [("n1", None), ("n2", None)]


def test_exit_codes_by_accounting_where_the_log_has_none() -> None:
    steps = [
        {"step": "12.batch", "state": "FAILED", "exit_code": "3:0", "nodes": "n1"},
        {"step": "12.0", "state": "FAILED", "exit_code": "0:9", "nodes": "n[1-2]"},
        {"step": "12.1", "state": "COMPLETED", "exit_code": "0:0", "nodes": "n[1-2]"},
    ]
    assert node_exit_codes("", steps) == [{"node": "n[1-2]", "task": None, "exit_code": 137}]
    assert len(node_exit_codes(SRUN, steps)) == 6


def test_exit_code_of_the_batch_script() -> None:
    assert node_exit_codes("", [], {**JOB, "exit_code": "85:0"}) == [{"node": "n1", "task": None, "exit_code": 85}]
    assert node_exit_codes("", [], JOB) == []


# As torchrun of PyTorch 2 ends, shortened.
TORCHRUN = """\
LOG Sat Nov 21 16:10:20 2026 - (0, 8) step_loss : 10.1 learning_rate : 2.80e-06 throughput : 64.36
W1121 16:10:21.123000 4711 torch/distributed/run.py:766]
W1121 16:10:21.123000 4711 torch/distributed/run.py:766] *****************************************
Traceback (most recent call last):
  File "/opt/job/bert_pretrain.py", line 3, in <module>
    main()
ValueError: the data has no file for rank 1
E1121 16:10:22.456000 4711 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 0
Traceback (most recent call last):
  File "/opt/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
             ^^^^^^
  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/run.py", line 892, in main
    run(args)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
bert_pretrain.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_16:10:22
  host      : n1
  exitcode  : 1 (pid: 4712)
============================================================
srun: error: n1: task 0: Exited with exit code 1
"""


def test_the_end_of_a_log_without_the_noise_of_torchrun() -> None:
    assert last_lines(TORCHRUN) == [
        "LOG Sat Nov 21 16:10:20 2026 - (0, 8) step_loss : 10.1 learning_rate : 2.80e-06 throughput : 64.36",
        "Traceback (most recent call last):",
        '  File "/opt/job/bert_pretrain.py", line 3, in <module>',
        "    main()",
        "ValueError: the data has no file for rank 1",
        "srun: error: n1: task 0: Exited with exit code 1",
    ]


@given(st.lists(st.sampled_from([*TORCHRUN.splitlines(), "a line", "another: line", ""]), max_size=60))
def test_lines_of_the_job_are_kept_in_any_mixture(lines: list[str]) -> None:
    kept = last_lines("\n".join(lines) + "\n", 100)
    assert all(item in [*lines, ""] for item in kept)
    assert kept.count("srun: error: n1: task 0: Exited with exit code 1") == lines.count(
        "srun: error: n1: task 0: Exited with exit code 1"
    )


def test_srun_amid_a_traceback_of_torchrun() -> None:
    trace = ["Traceback (most recent call last):", '  File "/opt/venv/bin/torchrun", line 8, in <module>']
    end = "srun: error: n1: task 0: Exited with exit code 1"
    assert last_lines("\n".join([*trace, end, "    sys.exit(main())", "SystemExit: 1", "a line"])) == [end, "a line"]


@given(st.text())
def test_the_end_of_a_log_never_moves_the_cursor(text: str) -> None:
    lines = last_lines(text)
    assert len(lines) <= 25
    assert not any(character < " " and character != "\t" for item in lines for character in item)


def test_the_end_of_a_log_is_readable() -> None:
    assert last_lines("") == []
    assert last_lines(" 10%\r 20%\r 30%\r\n\x1b[31mred\x1b[0m\n") == [" 30%", "red"]
    assert len(last_lines("x" * 10000)[0]) < 600


STOPPED = "training: stopped before the time limit at step 40"
REQUEUED = "slurmstepd: error: *** JOB 2 ON n1 CANCELLED AT 2026-11-21T16 DUE TO JOB REQUEUE ***"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-21T16:05:01 DUE TO JOB REQUEUE ***", "job requeue"),
        (
            "slurmstepd-n1: error: *** JOB 2 ON n1 CANCELLED AT 2026-11-21T16 DUE TO NODE FAILURE, SEE ***",
            "node failure",
        ),
        (STOPPED, "it stopped before the time limit at step 40"),
        (
            f"{STOPPED}\n{REQUEUED}\n",
            "it stopped before the time limit at step 40",
        ),
        (
            f"{STOPPED}\n{REQUEUED}\n{REQUEUED}\n",
            "job requeue",
        ),
        ("nothing", ""),
    ],
)
def test_why_a_job_was_put_back(text: str, reason: str) -> None:
    assert requeue_reason(text) == reason


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"state": "FAILED", "exit_code": "3:0", "reason": "NonZeroExitCode"}, ["ended as FAILED with exit code 3:0"]),
        ({"state": "PENDING", "reason": "DependencyNeverSatisfied"}, ["can never start (DependencyNeverSatisfied)"]),
        ({"state": "TIMEOUT", "reason": "TimeLimit", "progress": {"step": 7}}, ["TIMEOUT (TimeLimit)", "after step 7"]),
        ({"state": "UNKNOWN", "reason": "", "exit_code": ""}, ["nothing tells how it ended"]),
        (
            {
                "state": "FAILED",
                "node_exit_codes": [{"node": f"n{number}", "task": number, "exit_code": 1} for number in range(6)],
            },
            ["1 on n0 task 0, 1 on n1 task 1", "and 2 more"],
        ),
    ],
)
def test_a_failure_in_one_sentence(changes: dict[str, Any], parts: list[str]) -> None:
    text = failure_text({**JOB, **changes}, "/a.log")
    assert all(part in text for part in parts), text
    assert text.startswith("job 12 (bert) ") and text.endswith("see the end of its log /a.log.")


@pytest.mark.parametrize("number", [1, 2, 3, 6, 9, 11, 15])
def test_a_task_that_a_signal_ended_has_the_code_that_a_shell_shows(number: int) -> None:
    name = signal.strsignal(number)
    for end in ("", " (core dumped)", "  "):
        found = node_exit_codes(f"srun: error: n1: task 0: {name}{end}\n", [])
        assert found == [{"node": "n1", "task": 0, "exit_code": 128 + number}]


def test_what_is_no_end_of_a_task_has_no_code() -> None:
    assert node_exit_codes("srun: error: n1: task 0: Some other trouble\n", []) == []


def test_a_task_without_memory_was_killed() -> None:
    found = node_exit_codes("srun: error: n1: task 3: Out Of Memory\n", [])
    assert found == [{"node": "n1", "task": 3, "exit_code": 128 + signal.SIGKILL}]
