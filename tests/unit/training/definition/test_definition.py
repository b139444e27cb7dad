"""The definition of a training job: completed, refused, and known again."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training import checks
from ansible_collections.trainium.cluster.plugins.module_utils._training import definition as planner
from hypothesis import given, settings
from hypothesis import strategies as st

PRESETS: dict[str, Any] = {
    "bert": {
        "name": "bert",
        "files": ["bert/bert_pretrain.py"],
        "script": "bert_pretrain.py",
        "args": {"data_dir": "{directory}/data/bert", "output_dir": "{folder}/output", "steps_this_run": 100},
        "steps": 100,
        "compile": {"enabled": True},
        "enough_nodes": 2,
    },
}
CONTEXT: dict[str, Any] = {
    "directory": "/opt/trainium",
    "venv_path": "/opt/venv",
    "launcher": "slurm",
    "usable": ["n1", "n2"],
    "known": 3,
    "checksums": {},
    "active": [],
}
OWN: dict[str, Any] = {"preset": "none", "script": "a.py", "files": ["a.py"]}


def resolve(definition: Any, **context: Any) -> dict[str, Any]:
    return planner.resolve(definition, PRESETS, {**CONTEXT, **context})


def refusal(definition: Any, **context: Any) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        resolve(definition, **context)
    return str(caught.value)


def test_an_empty_definition_is_the_preset() -> None:
    job = resolve({})
    assert job["name"] == "bert"
    assert job["folder"] == f"/opt/trainium/jobs/bert-{job['digest']}"
    assert len(job["digest"]) == 12
    assert job["argv"] == [
        *("--data_dir", "/opt/trainium/data/bert"),
        *("--output_dir", f"{job['folder']}/output"),
        *("--steps_this_run", "100"),
    ]
    assert job["compile_argv"][-2:] == ["--steps_this_run", "10"]
    assert (job["count"], job["nodes_option"]) == (2, "2")


def test_a_script_of_ones_own_takes_nothing_from_the_preset() -> None:
    job = resolve({"script": "a.py", "files": ["x/a.py"]})
    assert (job["args"], job["compile"]["enabled"], job["packages"]) == ({}, False, [])


def test_a_part_of_a_dictionary_leaves_the_rest_as_it_was() -> None:
    job = resolve({"args": {"lr": 0.1}, "compile": {"steps": 3}, "checkpoint": {"steps": 5}})
    assert job["args"]["steps_this_run"] == 100
    assert job["compile"]["enabled"]
    assert job["checkpoint"] == {"steps": 5, "keep": 3, "resume": True, "shared": False}
    assert job["compile_argv"][-4:] == ["--steps_this_run", "3", "--lr", "0.1"]


def test_what_a_user_writes_is_taken_as_it_is() -> None:
    assert resolve({"args": {"text": "{directory}"}})["argv"][-1] == "{directory}"


@pytest.mark.parametrize(
    ("value", "words"),
    [(True, []), (0.001, ["0.001"]), ("", [""]), ("a b", ["a b"]), ([1, "b"], ["1", "b"]), (0, ["0"]), (1, ["1"])],
)
def test_arguments_as_argparse_takes_them(value: Any, words: list[str]) -> None:
    assert checks.arguments({"name": value, "absent": False}) == ["--name", *words]


def test_fewer_nodes_than_wanted_are_enough_where_min_nodes_says_so() -> None:
    job = resolve({"nodes": 3, "min_nodes": 1})
    assert (job["count"], job["nodes_option"]) == (3, "1-3")
    assert "2 of 3 nodes of the cluster take jobs" in refusal({"nodes": 3})
    assert "no more than the 1 nodes" in refusal({"nodes": 1, "min_nodes": 2})
    assert "'0'; 0 of 3 nodes" in refusal({}, usable=[])


def test_nodes_that_nobody_has_asked_for_are_not_all_started_for_a_small_preset() -> None:
    come = {"usable": [f"n{number}" for number in range(16)], "known": 16, "unasked": True}
    assert resolve({}, **come)["nodes_option"] == "2"
    assert resolve({"nodes": 5}, **come)["nodes_option"] == "5"
    assert resolve({"min_nodes": 3}, **come)["nodes_option"] == "3"
    assert resolve(OWN, **come)["count"] == 16
    assert resolve({"script": "a.py", "files": ["a.py"]}, **come)["count"] == 16
    assert resolve({}, **{**come, "unasked": False})["count"] == 16
    assert resolve({}, **{**come, "usable": ["n1"]})["count"] == 1


def test_a_job_in_the_queue_keeps_its_nodes() -> None:
    two = resolve({})
    one = resolve({}, usable=["n1"])
    assert one["digest"] != two["digest"]
    followed = resolve({}, usable=["n1"], active=["/x/other.sh", f"{two['folder']}/train.batch"])
    assert followed["folder"] == two["folder"]
    assert resolve({"steps": 7}, usable=["n1"], active=[f"{two['folder']}/train.batch"])["count"] == 1


@pytest.mark.parametrize(("count", "digits"), [(9, "0009"), (10, "000a"), (16, "0010"), (26, "001a"), (1000, "03e8")])
def test_with_how_many_nodes_a_job_runs_is_read_as_it_was_written(count: int, digits: str) -> None:
    """The number ends the name of the job's folder; from ten on its digits could be taken for other numbers."""
    nodes = [f"n{number}" for number in range(count)]
    job = resolve({}, usable=nodes, known=count)
    assert (job["count"], job["folder"][-4:]) == (count, digits)
    # Some of them are lost meanwhile, and the job goes on.
    again = resolve({}, usable=nodes[:3], known=count, active=[f"{job['folder']}/train.batch"])
    assert (again["count"], again["digest"]) == (count, job["digest"])


def test_variables_are_text_as_programs_get_them() -> None:
    assert resolve({"env": {"N": 3, "RATE": 0.5, "NAME": "x"}})["env"] == {"N": "3", "RATE": "0.5", "NAME": "x"}


def test_another_content_is_another_job() -> None:
    jobs = [
        resolve({}),
        resolve({}, checksums={"a.py": "1"}),
        resolve({}, checksums={"a.py": "2"}),
        resolve({"args": {"lr": 1}}),
        resolve({}, venv_path="/opt/other"),
        resolve({}, launcher="torchrun"),
        resolve({}, usable=["n1"]),
    ]
    assert len({job["digest"] for job in jobs}) == len(jobs)
    assert resolve({})["digest"] == jobs[0]["digest"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("1:30", 90),
        ("1:30:00", 5400),
        ("2-0", 172800),
        ("1-2:3", 93780),
        ("1-0:0:1", 86401),
        ("UNLIMITED", 0),
    ],
)
def test_time_limits(text: str, seconds: int) -> None:
    assert checks.limit_seconds(text) == seconds


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        ({"preset": "gone"}, "preset of the training job is 'gone'; use one of bert, none."),
        ({"nmae": "x"}, "has no key 'nmae'"),
        ({"name": "a b"}, "name of the training job is 'a b'; use at most 64 letters"),
        ({"name": "a\n"}, "use at most 64 letters"),
        ({"name": "$(id)"}, "use at most 64 letters"),
        ({"name": ""}, "use at most 64 letters"),
        ({"name": "x" * 10000}, "use at most 64 letters"),
        ({"script": "gone.py"}, "name one of its files"),
        ({**OWN, "files": ["a.py", "b/a.py"]}, "give each file of the job another name"),
        ({**OWN, "files": ["a.py", "job.sh"]}, "use another name"),
        ({**OWN, "files": ["a.py", "x\ny.py"]}, "without line breaks"),
        ({**OWN, "files": "a.py"}, "use a list"),
        ({"args": {"a b": 1}}, "an argument's name in args"),
        ({"args": {"x": None}}, "args.x of the training job is 'None'; use text"),
        ({"args": {"x": {"y": 1}}}, "args.x"),
        ({"args": {"x": "\0"}}, "args.x"),
        ({"args": {"x": "\udc80"}}, "args.x"),
        ({"args": ["x"]}, "args of the training job"),
        ({"env": {"A B": "1"}}, "use names of environment variables"),
        ({"env": {"SLURM_NODEID": "1"}}, "use another variable"),
        ({"env": {"TRAINIUM_RESUME": "1"}}, "use another variable"),
        ({"env": {"X": None}}, "env.X"),
        ({"processes_per_node": 0}, "use auto or a number of 1 or more"),
        ({"nodes": -1}, "use a whole number of 0 or more"),
        ({"nodes": True}, "use a whole number"),
        ({"time_limit": "soon"}, "use minutes, hours"),
        ({"time_limit": "0"}, "use minutes, hours"),
        ({"time_limit": "1", "stop_before": 120}, "which is 60 s"),
        ({"ends_at": "tomorrow"}, "use a time as 2030-01-31T11:00:00Z"),
        ({"packages": ["-o x"]}, "names of packages"),
        ({"prepare": {"script": "x.py"}}, "prepare.script"),
        ({"prepare": {"command": "x"}}, "a key of prepare"),
        ({"compile": {"comand": []}}, "a key of compile of the training job is 'comand'"),
        ({"compile": {"command": "neuron_parallel_compile"}}, "use a list of the command"),
        ({"compile": {"success": "("}}, "use a regular expression"),
        ({"compile": {"steps": 0}}, "compile.steps"),
        ({"checkpoint": {"keep": 0}}, "checkpoint.keep"),
        ({"checkpoint": {"shared": "yes"}}, "checkpoint.shared"),
        ({"stopped_by": "me"}, "use script or job"),
        ({"tensorboard": "runs"}, "tensorboard of the training job is 'runs'; use an absolute path"),
        ({"checkpoint": {"resume": "yes"}}, "use true or false"),
        ({"cache": {"directory": "/"}}, "use a folder of its own"),
        ({"cache": {"directory": "cache"}}, "use an absolute path"),
        ({"cache": {"directory": "s3://a b"}}, "use s3://bucket/prefix"),
        ({"fetch": [{"url": "https://x/y", "dest": "y"}]}, "use sha256:"),
        ({"fetch": [{"url": "file:///etc/passwd", "checksum": "sha256:" + "0" * 64, "dest": "y"}]}, "http or https"),
        (
            {"fetch": [{"url": "https://x/y", "checksum": "sha256:" + "0" * 64, "dest": "../y"}]},
            "path in the job's folder",
        ),
        ({"fetch": ["https://x/y"]}, "give each file a url"),
        ("bert", "write a dictionary"),
    ],
)
def test_refusals_are_one_sentence(definition: Any, sentence: str) -> None:
    message = refusal(definition)
    assert sentence in message
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 500


def test_the_one_variable_of_ours_that_the_preset_reads_is_taken() -> None:
    assert resolve({"env": {"TRAINIUM_TORCH_COMPILE": "1"}})["env"]["TRAINIUM_TORCH_COMPILE"] == "1"


@pytest.mark.parametrize("path", ["relative", '/a"b', "/a'b", "/a\\b", "/a%j", "/a\nb", "/a$(id)"])
def test_folders_that_somebody_would_take_for_something_else(path: str) -> None:
    assert "training_job_directory" in refusal({}, directory=path)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["preset", *planner.DEFAULTS]), ANY, max_size=4))
def test_whatever_is_written_is_resolved_or_refused_in_one_sentence(definition: dict[str, Any]) -> None:
    try:
        job = resolve(definition)
    except ValueError as error:
        message = str(error)
        assert "\n" not in message
        assert message.endswith(".")
    else:
        json.dumps(job)
        assert job["folder"].startswith("/opt/trainium/jobs/")


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=200))
def test_a_text_is_given_to_the_script_as_it_is_or_refused(text: str) -> None:
    definition = {"args": {"text": text}}
    if not checks.is_text(text):
        assert "args.text" in refusal(definition)
        return
    words = resolve(definition)["argv"]
    assert words[-1] == text
    assert subprocess.run(["printf", "%s", words[-1]], capture_output=True, check=True).stdout == text.encode()


def test_a_job_that_cannot_go_on_elsewhere_is_refused_without_shared_storage() -> None:
    parts = {**OWN, "checkpoint": {"shared": True}}
    assert refusal(parts) == (
        "checkpoint.resume of the training job is 'True'; the cluster's 3 nodes share no storage, so that each would "
        "go on from another step: set trainium_shared_storage to efs or fsx, or trainium_shared_dir to what "
        "shared_storage_mounts mount, or set checkpoint.resume and requeue to false."
    )
    assert "requeue of the training job is 'True'" in refusal({**OWN, "checkpoint": {"shared": True, "resume": False}})
    # On one node of several as well, since the next start may be on another.
    assert "share no storage" in refusal({**parts, "nodes": 1})
    assert resolve(parts, shared=True)["count"] == 2
    assert resolve(parts, known=1, usable=["n1"])["count"] == 1
    assert resolve({**OWN, "checkpoint": {"shared": True, "resume": False}, "requeue": False})["count"] == 2


def test_a_script_of_ones_own_does_not_resume_like_the_preset() -> None:
    presets = {"other": {"checkpoint": {"steps": 7, "shared": True}, "requeue": False}}
    job = planner.complete({**OWN, "preset": "other"}, presets)
    assert (job["checkpoint"], job["requeue"]) == (planner.DEFAULTS["checkpoint"], True)


def test_the_end_of_a_capacity_block_counts_where_it_is_earlier_and_makes_no_other_job() -> None:
    block = {"block_ends_at": "2030-01-31T11:00:00Z"}
    assert resolve(OWN)["ends_at_epoch"] == 0
    assert resolve(OWN, **block)["ends_at_epoch"] == 1896087600
    assert resolve({**OWN, "ends_at": "2030-01-31T12:30:00+02:00"}, **block)["ends_at"] == "2030-01-31T12:30:00+02:00"
    assert resolve({**OWN, "ends_at": "2031-01-31"}, **block)["ends_at"] == "2030-01-31T11:00:00Z"
    assert resolve(OWN, **block)["digest"] == resolve(OWN)["digest"]


@pytest.mark.parametrize(
    ("more", "context", "compiles"),
    [
        ({}, {"sdk": "2.29.1"}, True),
        ({}, {"sdk": ""}, True),
        ({}, {"sdk": "2.33.0"}, False),
        ({"compile": {"enabled": False}}, {"sdk": "2.33.0"}, False),
        # Whoever has a command of their own knows what it is for.
        ({"compile": {"enabled": True, "command": ["mine"]}}, {"sdk": "2.33.0"}, True),
        ({"image": "public.ecr.aws/neuron/a:2.9.0-sdk2.29.1-ubuntu24.04"}, {"sdk": "2.33.0"}, True),
        ({"image": "public.ecr.aws/neuron/a:2.14.0-sdk2.33.0-ubuntu26.04"}, {"sdk": ""}, False),
    ],
)
def test_torchneuron_has_no_step_that_compiles_for_xla(more: Any, context: Any, compiles: bool) -> None:
    assert resolve(more, **context)["compile"]["enabled"] == compiles


def test_asking_torchneuron_for_that_step_is_refused() -> None:
    sentence = refusal({"compile": {"enabled": True}}, sdk="2.33.0")
    assert sentence == (
        "compile.enabled of the training job is 'True'; neuron_parallel_compile is for XLA, and Neuron SDK 2.33.0 has "
        "TorchNeuron, which compiles in the training: set it to false, or name a compile.command."
    )
