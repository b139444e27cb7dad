"""What sbatch is told, and what is refused before it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.submit import (
    checked_array,
    checked_environment,
    checked_nodes,
    checked_script,
    command,
    dependency_text,
    digest_in,
    digest_of,
    limit_seconds,
    log_path,
    sbatch_arguments,
    to_submit,
)
from hypothesis import given
from hypothesis import strategies as st

PLAIN: dict[str, Any] = {"name": "bert", "script": "/fsx/train.batch"}
SCRIPT = b"#!/bin/sh\n"
HOSTILE = [
    "",
    " ",
    "a b",
    "a\nb",
    "$(id)",
    "`id`",
    "a;b",
    "--wrap=id",
    "-J",
    "a'b",
    'a"b',
    "a\x00b",
    "ä",
    "日本",
    "a/b",
    "a" * 10000,
    "a,b\u2028c",
    "%j",
    "../x",
    "*",
]


def test_every_option_is_passed() -> None:
    options = {
        **PLAIN,
        "partition": "compute,spare",
        "nodes": "1-2",
        "ntasks_per_node": 1,
        "exclusive": True,
        "time_limit": "1-02:00:00",
        "account": "team.a",
        "qos": "high",
        "requeue": True,
        "array": "0-7:2%2",
        "output": "/fsx/a b/train-%j.log",
        "open_mode": "append",
        "chdir": "/data/it's here",
        "dependency": [{"type": "afterok", "job_ids": [12, 13]}, {"type": "singleton", "job_ids": []}],
        "args": ["--lr", "$(id)", ""],
    }
    assert command(options, "0123456789abcdef") == [
        "--comment=trainium:0123456789abcdef",
        "--job-name=bert",
        "--partition=compute,spare",
        "--account=team.a",
        "--qos=high",
        "--nodes=1-2",
        "--ntasks-per-node=1",
        "--exclusive",
        "--time=1-02:00:00",
        "--requeue",
        "--array=0-7:2%2",
        "--output=/fsx/a b/train-%j.log",
        "--open-mode=append",
        "--chdir=/data/it's here",
        "--dependency=afterok:12:13,singleton",
        "--kill-on-invalid-dep=yes",
        "/fsx/train.batch",
        "--lr",
        "$(id)",
        "",
    ]


def test_nothing_is_passed_that_was_not_asked_for() -> None:
    assert command(PLAIN, "0" * 16) == [f"--comment=trainium:{'0' * 16}", "--job-name=bert", "/fsx/train.batch"]
    assert "--no-requeue" in command({**PLAIN, "requeue": False}, "0" * 16)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("option", ["name", "partition", "account", "qos", "nodes", "time_limit", "array"])
def test_hostile_values_are_refused_in_one_sentence(option: str, value: str) -> None:
    if option != "name" and not value:
        assert sbatch_arguments({**PLAIN, option: value}) == ["--job-name=bert"]
        return
    if option == "partition" and value == "a,b":
        return
    with pytest.raises(ValueError, match=f"^{option} is ") as error:
        sbatch_arguments({**PLAIN, option: value})
    message = str(error.value)
    assert "\n" not in message and len(message) < 250 and message.endswith(".")


@pytest.mark.parametrize("option", ["output", "chdir", "script"])
@pytest.mark.parametrize("value", ["relative", "--wrap=id", "/a\nb", "/a\x00", "/a\u2028b", "/" + "a" * 5000])
def test_paths_that_are_refused(option: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"^{option} is "):
        command({**PLAIN, option: value}, "0" * 16)


@pytest.mark.parametrize("value", ["a\nb", "a\x00", "\x1b[2J"])
def test_arguments_with_control_characters_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"^args is .* remove its line breaks"):
        command({**PLAIN, "args": [value]}, "0" * 16)


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=50))
def test_other_arguments_reach_the_script_as_they_are(value: str) -> None:
    argv = command({**PLAIN, "args": [value]}, "0" * 16)
    assert argv[argv.index("/fsx/train.batch") + 1 :] == [value]


@given(st.text())
def test_a_name_is_taken_whole_or_refused(name: str) -> None:
    try:
        argv = sbatch_arguments({**PLAIN, "name": name})
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert argv == [f"--job-name={name}"]
    assert name.isascii() and name.isprintable() and " " not in name and not name.startswith("-")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("2:30", 150),
        ("1:00:00", 3600),
        ("2-12", 216000),
        ("1-2:30", 95400),
        ("1-02:30:05", 95405),
        ("UNLIMITED", None),
        ("infinite", None),
    ],
)
def test_time_limits(text: str, seconds: int | None) -> None:
    assert limit_seconds(text) == seconds


@pytest.mark.parametrize("text", ["0", "0:00", "0-0", "1h", "1:2:3:4", "1-", "-1", "1.5", "٣", "99999999999"])
def test_time_limits_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^time_limit is"):
        limit_seconds(text)


@given(st.integers(0, 999), st.integers(0, 23), st.integers(0, 59), st.integers(1, 59))
def test_a_time_limit_means_what_it_says(days: int, hours: int, minutes: int, seconds: int) -> None:
    assert (
        limit_seconds(f"{days}-{hours}:{minutes:02}:{seconds:02}")
        == ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    )


@pytest.mark.parametrize(("text", "nodes"), [("2", "2"), ("1-2", "1-2"), ("3-3", "3"), ("02", "2")])
def test_nodes(text: str, nodes: str) -> None:
    assert checked_nodes(text) == nodes


@pytest.mark.parametrize("text", ["0", "2-1", "0-1", "65537", "1-", "a", "1 2", "1-2-3", "-2"])
def test_nodes_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^nodes is"):
        checked_nodes(text)


@pytest.mark.parametrize("text", ["0", "0-3", "1,5,9", "0-15:4", "0-99%10", "1,3-5:2%1"])
def test_arrays(text: str) -> None:
    assert checked_array(text) == text


@pytest.mark.parametrize("text", ["3-1", "0-3:0", "0-3%0", "0-4000001", "a", "1,,2", ",", "0-3%", "0-3 ", "%3"])
def test_arrays_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^array is"):
        checked_array(text)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "afterok", "job_ids": []},
        {"type": "afterok", "job_ids": [0]},
        {"type": "afterok", "job_ids": [-3]},
        {"type": "afterok", "job_ids": ["12,afterany:1"]},
        {"type": "singleton", "job_ids": [1]},
        {"type": "expand", "job_ids": [1]},
    ],
)
def test_dependencies_that_are_refused(item: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^dependency "):
        dependency_text([item])


@pytest.mark.parametrize("name", ["", "a b", "1a", "a=b", "SLURM_CONF", "SBATCH_PARTITION", "a\n"])
def test_variables_that_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^environment has"):
        checked_environment({name: "1"})


def test_values_of_variables_are_text() -> None:
    assert checked_environment({"N": 3, "TEXT": "a, b\n$(id)"}) == {"N": "3", "TEXT": "a, b\n$(id)"}
    with pytest.raises(ValueError, match=r"null character in A"):
        checked_environment({"A": "\x00"})


@pytest.mark.parametrize("content", [b"", b"echo\n", b"#!/bin/sh\r\necho\r\n", b"#!/bin/sh\n\x00"])
def test_scripts_that_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^script /a "):
        checked_script("/a", content)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"args": ["1"]},
        {"identity": "x"},
        {"nodes": "2"},
        {"environment": {"A": "1"}},
        {"time_limit": "10"},
        {"partition": "spare"},
        {"ntasks_per_node": 2},
        {"exclusive": True},
        {"account": "team"},
        {"qos": "high"},
        {"requeue": True},
        {"requeue": False},
        {"array": "0-3"},
        {"output": "/x/%j.log"},
        {"open_mode": "append"},
        {"chdir": "/x"},
    ],
)
def test_another_job_has_another_digest(changes: dict[str, Any]) -> None:
    assert digest_of({**PLAIN, **changes}, SCRIPT) != digest_of(PLAIN, SCRIPT)


def test_another_script_has_another_digest() -> None:
    assert digest_of(PLAIN, SCRIPT) != digest_of(PLAIN, SCRIPT + b"true\n")


def test_what_a_job_waits_for_and_how_it_is_watched_is_no_part_of_it() -> None:
    watched = {"dependency": [{"type": "afterok", "job_ids": [1]}], "wait": True, "log": "/x", "script": "/elsewhere"}
    assert digest_of({**PLAIN, **watched}, SCRIPT) == digest_of(PLAIN, SCRIPT)


@pytest.mark.parametrize(
    ("comment", "digest"),
    [
        ("trainium:0123456789abcdef", "0123456789abcdef"),
        ("sbatch --parsable --comment=trainium:0123456789abcdef --job-name=a /x", "0123456789abcdef"),
        ("trainium:0123", ""),
        ("mytrainium:0123456789abcdef", ""),
        ("", ""),
    ],
)
def test_the_digest_is_found_again(comment: str, digest: str) -> None:
    assert digest_in(comment) == digest


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"output": "/a/%x-%j.log"}, "/a/bert-12.log"),
        ({"output": "/a/100%%.log"}, "/a/100%.log"),
        ({"output": "/a/%A_%a.log"}, ""),
        ({"output": "/a/%N.log", "log": "/b"}, "/b"),
        ({}, ""),
    ],
)
def test_the_log_to_follow(options: dict[str, Any], path: str) -> None:
    assert log_path({**PLAIN, **options}, 12) == path


RUNNING = {"job_id": 1, "ended": False, "succeeded": False}
GOOD = {"job_id": 1, "ended": True, "succeeded": True}
BAD = {"job_id": 1, "ended": True, "succeeded": False}


@pytest.mark.parametrize(
    ("found", "failed", "never", "always"),
    [(None, True, True, True), (RUNNING, False, False, True), (GOOD, False, False, True), (BAD, True, False, True)],
)
def test_when_a_job_is_submitted(found: dict[str, Any] | None, failed: bool, never: bool, always: bool) -> None:
    assert [to_submit(found, policy) for policy in ("failed", "never", "always")] == [failed, never, always]


def test_a_job_whose_end_nobody_knows_is_not_done_twice_by_mistake() -> None:
    with pytest.raises(ValueError, match=r"forgotten job 1 .* resubmit=always"):
        to_submit({**GOOD, "succeeded": None}, "failed")
