"""What sbatch is told at the edges: the last value that is taken, the first that is refused; and a job's digest."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.submit import (
    checked_array,
    checked_environment,
    checked_name,
    checked_nodes,
    checked_script,
    command,
    dependency_text,
    digest_in,
    digest_of,
    limit_seconds,
    log_path,
    sbatch_arguments,
    shown,
    to_submit,
)

PLAIN: dict[str, Any] = {"name": "bert", "script": "/fsx/train.batch"}
SCRIPT = b"#!/bin/sh\n"


def test_the_largest_numbers_are_taken_and_the_next_refused() -> None:
    assert checked_nodes("65536") == "65536"
    assert checked_nodes("1-65536") == "1-65536"
    assert sbatch_arguments({**PLAIN, "ntasks_per_node": 65535})[1:] == ["--ntasks-per-node=65535"]
    assert sbatch_arguments({**PLAIN, "ntasks_per_node": 1})[1:] == ["--ntasks-per-node=1"]
    for tasks in (0, 65536):
        with pytest.raises(ValueError, match=f"^ntasks_per_node is {tasks}; use 1 to 65535"):
            sbatch_arguments({**PLAIN, "ntasks_per_node": tasks})
    assert limit_seconds("999999") == 60 * 999999
    with pytest.raises(ValueError, match="use minutes"):
        limit_seconds("1000000")


@pytest.mark.parametrize("text", ["4000000", "0-3999999", "0-4000000:2", "7-7", "0-3%1", "0-1:1"])
def test_an_array_of_the_most_tasks(text: str) -> None:
    assert checked_array(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4000001", "to 4000000 at most"),
        ("0-4000000", "4000001 tasks; use 4000000 at most"),
        ("0-3999999,5", "4000001 tasks"),
        ("2-1", "from the smaller number to the larger"),
        ("1-3:0", "from the smaller number to the larger"),
        ("1-3%0", "use numbers and ranges"),
    ],
)
def test_an_array_of_more(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        checked_array(text)


def test_names_and_paths_have_an_end() -> None:
    assert checked_name("a" * 64) == "a" * 64
    with pytest.raises(ValueError, match="up to 64 letters"):
        checked_name("a" * 65)
    assert f"--chdir=/{'a' * 4095}" in sbatch_arguments({**PLAIN, "chdir": f"/{'a' * 4095}"})
    with pytest.raises(ValueError, match="4096 characters at most"):
        sbatch_arguments({**PLAIN, "chdir": f"/{'a' * 4096}"})
    with pytest.raises(ValueError, match="use a name that Slurm knows"):
        sbatch_arguments({**PLAIN, "account": "a,b"})


def test_a_long_value_is_cut_in_a_message() -> None:
    assert shown("a" * 78) == repr("a" * 78)
    assert shown("a" * 79) == f"'{'a' * 59}... (79 characters)"


def test_jobs_that_are_waited_for_are_numbers() -> None:
    assert dependency_text([]) == ""
    assert dependency_text([{"type": "after", "job_ids": [1]}]) == "after:1"
    assert "--kill-on-invalid-dep=yes" not in command(PLAIN, "0" * 16)
    for number in (True, 0, "1", 1.0):
        with pytest.raises(ValueError, match="give the numbers that sbatch printed"):
            dependency_text([{"type": "after", "job_ids": [number]}])
    with pytest.raises(ValueError, match=r"dependency has the type ''"):
        dependency_text([{}])


@pytest.mark.parametrize("name", ["SLURM", "MY_SLURM_CONF", "_a1", "SBATCH"])
def test_variables_that_only_look_like_slurms(name: str) -> None:
    assert checked_environment({name: True}) == {name: "True"}


def test_a_script_is_taken_as_it_is() -> None:
    checked_script("/a", b"#!/bin/sh\n\r")
    with pytest.raises(ValueError, match="does not begin with #!"):
        checked_script("/a", b" #!/bin/sh\n")


def test_a_job_of_an_earlier_version_is_known_again() -> None:
    """By another digest, a training that runs would be submitted a second time."""
    options = {**PLAIN, "identity": "x", "args": ["1"], "environment": {"A": 1}, "nodes": "2", "requeue": False}
    assert (digest_of(PLAIN, SCRIPT), digest_of(options, SCRIPT)) == ("e6f9f5760c79e63b", "4d0478353537375d")


@pytest.mark.parametrize(
    "changes",
    [
        *({"partition": "a"}, {"account": "a"}, {"qos": "a"}, {"ntasks_per_node": 1}, {"exclusive": True}),
        *({"requeue": True}, {"requeue": False}, {"array": "0-1"}, {"output": "/a"}, {"open_mode": "append"}),
        *({"chdir": "/a"}, {"args": [""]}, {"environment": {"A": ""}}),
    ],
)
def test_whatever_sbatch_is_told_makes_another_job(changes: dict[str, Any]) -> None:
    assert digest_of({**PLAIN, **changes}, SCRIPT) != digest_of(PLAIN, SCRIPT)


def test_a_digest_is_a_word_of_its_own() -> None:
    assert digest_in("trainium:0123456789abcdef of mine") == "0123456789abcdef"
    assert digest_in("trainium:0123456789abcdef0") == ""


@pytest.mark.parametrize(
    ("output", "path"),
    [("/a/%j-%A-%x", "/a/12-12-bert"), ("/a/%%%j", "/a/%12"), ("/a/%%N", "/a/%N"), ("/a/%4j", ""), ("/a", "/a")],
)
def test_the_log_s_name(output: str, path: str) -> None:
    assert log_path({**PLAIN, "output": output}, 12) == path


def test_one_whose_end_nobody_knows_is_left_alone_where_that_was_asked() -> None:
    unknown = {"job_id": 1, "ended": True, "succeeded": None}
    assert to_submit(unknown, "never") is False
    assert to_submit(unknown, "always") is True
