"""Definitions of training jobs at their limits: the last value that is accepted, and the first that is refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training import checks
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import (
    MOST_NODES,
    enough_nodes,
    merged,
    preset_of,
)

from tests.unit.training.definition.test_definition import OWN, refusal, resolve

Item = dict[str, Any]
SUM = "sha256:" + "0" * 64


def fetch(**more: Any) -> Item:
    return {"fetch": [{"url": "https://x/y", "checksum": SUM, "dest": "y", **more}]}


@pytest.mark.parametrize(
    "definition",
    [
        {"name": "a" * 64},
        {"steps": 0},
        {"min_nodes": 1},
        {"processes_per_node": 1},
        {"processes_per_node": "999999"},
        {"reserved_port": 0},
        {"reserved_port": 65535},
        {"stop_before": 0},
        {"time_limit": "3", "stop_before": 179},
        {"time_limit": "UNLIMITED", "stop_before": 10**6},
        {"time_limit": "infinite"},
        {"compile": {"steps": 1}},
        {"compile": {"steps_argument": ""}},
        {"compile": {"success": ""}},
        {"checkpoint": {"keep": 1, "steps": 0}},
        {"cache": {"keep_days": 0, "directory": "/var/cache"}},
        {"cache": {"directory": "s3://bucket"}},
        {"env": {"TRAINIUM_TORCH_COMPILE": "1", "SLURMY": "x", "_A1": 0}},
        {"packages": ["jq=1.6-2"]},
        {"ends_at": ""},
        {"ends_at": "2030-01-31"},
        {"stopped_by": "job"},
        {**OWN, "files": ["a.py", "x" * 200]},
        {**fetch(dest="a/b")},
        fetch(url="http://x/y"),
        fetch(checksum="sha256:" + "A" * 64),
    ],
)
def test_a_definition_at_its_limits_is_accepted(definition: Item) -> None:
    assert resolve(definition)["digest"]


@pytest.mark.parametrize(
    ("definition", "begins"),
    [
        ({"name": "a" * 65}, "name of"),
        ({"processes_per_node": True}, "processes_per_node of"),
        ({"processes_per_node": "1000000"}, "processes_per_node of"),
        ({"reserved_port": 65536}, "reserved_port of"),
        ({"time_limit": "3", "stop_before": 180}, "stop_before of"),
        ({"time_limit": "0:0"}, "time_limit of"),
        ({"compile": {"time_limit": "0"}}, "compile.time_limit of"),
        ({"compile": {"command": []}}, "compile.command of"),
        ({"compile": {"command": ["a", ""]}}, "compile.command of"),
        ({"compile": {"command": ["a", 1]}}, "compile.command of"),
        ({"compile": {"args": {"-x": 1}}}, "an argument's name in compile.args of"),
        ({"compile": {"steps_argument": "--steps"}}, "compile.steps_argument of"),
        ({"compile": {"steps_argument": 1}}, "compile.steps_argument of"),
        ({"compile": {"success": "a\nb"}}, "compile.success of"),
        ({"compile": {"enabled": "yes"}}, "compile.enabled of"),
        ({"checkpoint": {"steps": -1}}, "checkpoint.steps of"),
        ({"checkpoint": "no"}, "checkpoint of"),
        ({"cache": {"keep_days": -1}}, "cache.keep_days of"),
        ({"cache": {"clear_locks": 1}}, "cache.clear_locks of"),
        ({"cache": {"directory": "/var"}}, "cache.directory of"),
        ({"cache": {"directory": "/var/../cache"}}, "cache.directory of"),
        ({"cache": {"directory": None}}, "cache.directory of"),
        ({"requeue": "no"}, "requeue of"),
        ({"driver_reload": 1}, "driver_reload of"),
        ({"steps": 1.5}, "steps of"),
        ({"steps": 10**12}, "steps of"),
        ({"min_nodes": -1}, "min_nodes of"),
        ({"stop_before": -1}, "stop_before of"),
        *(({"env": {name: "x"}}, "env of") for name in ("TRAINIUM_TORCH_COMPILED", "BASH_ENV", "IFS", "LD_PRELOAD", 1)),
        ({"env": {"A": True}}, "env.A of"),
        ({"env": ["A"]}, "env of"),
        ({"secrets": {"IFS": "~/a"}}, "secrets of"),
        ({"secrets": {"1": "~/a"}}, "secrets of"),
        ({"secrets": {"A": ""}}, "secrets.A of"),
        ({"secrets": {"A": 1}}, "secrets.A of"),
        ({"packages": ["Jq"]}, "packages of"),
        ({"packages": "jq"}, "packages of"),
        ({"requirements": ["-r a"]}, "requirements of"),
        ({"requirements": ["a\nb"]}, "requirements of"),
        ({**OWN, "files": ["a.py", "x" * 201]}, "files of"),
        ({**OWN, "files": ["a.py", ".."]}, "files of"),
        ({**OWN, "files": ["a.py", "-rf"]}, "files of"),
        ({**OWN, "files": ["a.py", 1]}, "files of"),
        ({**OWN, **fetch(dest="a.py")}, "files of"),
        ({**OWN, "script": None}, "script of"),
        (fetch(dest="/y"), "fetch.dest of"),
        (fetch(dest="a//y"), "fetch.dest of"),
        (fetch(dest="a/job.sh"), "fetch.dest of"),
        (fetch(dest=""), "fetch of"),
        (fetch(url="s3://x/y"), "fetch.url of"),
        (fetch(url=None), "fetch.url of"),
        (fetch(checksum="sha256:0"), "fetch.checksum of"),
        ({"fetch": [*fetch()["fetch"], *fetch()["fetch"]]}, "fetch.dest of"),
        ({"tensorboard": 1}, "tensorboard of"),
        ({"prepare": {"script": "bert_pretrain.py", "args": {"a b": 1}}}, "an argument's name in prepare.args of"),
        ({"prepare": {"script": "bert_pretrain.py", "args": 1}}, "prepare.args of"),
    ],
)
def test_this_is_refused_by_its_key(definition: Item, begins: str) -> None:
    assert refusal(definition).startswith(f"{begins} the training job is ")


@pytest.mark.parametrize("name", sorted(checks.RESERVED))
def test_no_file_takes_the_name_of_one_of_the_jobs(name: str) -> None:
    assert "use another name" in refusal({**OWN, "files": ["a.py", name]})


@pytest.mark.parametrize("path", ["opt", "/a\nb", "/a%b", "/a$b", "/a\\b", "/a'b", '/a"b', 7, "/\udc80"])
def test_folders_of_the_job_are_plain(path: Any) -> None:
    assert refusal({}, directory=path).startswith("training_job_directory of the training job is ")
    assert refusal({}, venv_path=path).startswith("training_job_venv_path of the training job is ")


@pytest.mark.parametrize(
    ("partition", "good"),
    [
        ("", True),
        ("a", True),
        ("a,b-1", True),
        ("a,,b", False),
        (",a", False),
        ("a b", False),
        ("a;b", False),
        (1, False),
    ],
)
def test_a_partition_is_a_name_or_several(partition: Any, good: bool) -> None:
    if good:
        assert resolve({}, partition=partition)["digest"]
    else:
        assert refusal({}, partition=partition).startswith("training_job_partition of the training job is ")


def test_a_launcher_that_there_is_not() -> None:
    said = refusal({}, launcher="mpirun")
    assert said == "training_job_launcher is 'mpirun'; use one of slurm, torchrun, kubernetes, torchx."


@pytest.mark.parametrize(
    ("value", "epoch"),
    [
        ("1970-01-01T00:00:07Z", 7),
        ("1970-01-01 00:00:07", 7),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02", 86400),
        (None, 0),
        ("", 0),
    ],
)
def test_when_nodes_go(value: Any, epoch: int) -> None:
    assert checks.end_epoch(value) == epoch


def test_what_the_role_is_told_of_a_job() -> None:
    job = resolve(
        {**OWN, "name": "n" * 64, "nodes": 2, "min_nodes": 1, "time_limit": "1:00:00", "args": {"a": [1, "b"]}}
    )
    assert (job["count"], job["least"], job["nodes_option"]) == (2, 1, "1-2")
    assert (job["log"], job["compile_log"]) == (f"{job['folder']}/train.log", f"{job['folder']}/compile.log")
    assert job["compile_name"] == "n" * 56 + "-compile"
    assert (job["limit_seconds"], job["ends_at_epoch"], job["ends_at"]) == (3600, 0, "")
    assert job["argv"] == ["--a", "1", "b"]
    assert job["cache_of_user"] is True
    assert len(job["digest"]) == 12 and job["folder"].endswith(f"/jobs/{'n' * 64}-{job['digest']}")
    own = resolve({**OWN, "nodes": 2, "cache": {"directory": "/var/tmp/own"}})  # noqa: S108
    assert (own["cache_of_user"], own["nodes_option"], own["least"]) == (False, "2", 2)


def test_a_run_that_compiles_has_its_own_number_of_steps_and_arguments() -> None:
    compiling = {"enabled": True, "steps": 3, "steps_argument": "max_steps", "args": {"save": False, "lr": 2}}
    job = resolve({**OWN, "args": {"max_steps": 100, "save": True, "lr": 1}, "compile": compiling})
    assert job["compile_argv"] == ["--max_steps", "3", "--lr", "2"]
    assert job["argv"] == ["--max_steps", "100", "--save", "--lr", "1"]
    without = resolve({**OWN, "args": {"lr": 1}, "compile": {**compiling, "steps_argument": "", "args": {}}})
    assert without["compile_argv"] == ["--lr", "1"]


@pytest.mark.parametrize(
    ("definition", "context", "begins"),
    [
        ({"nodes": 3}, {}, "nodes of the training job is '3'; the cluster has 2 nodes: raise trainium_node_count to 3"),
        ({"min_nodes": 3}, {}, "min_nodes of the training job is '3'; the cluster has 2 nodes"),
        ({"nodes": 2}, {"usable": ["n1"]}, "nodes of the training job is '2'; 1 of 2 nodes of the cluster take jobs"),
        ({"nodes": 1, "min_nodes": 2}, {}, "min_nodes of the training job is '2'; use no more than the 1 nodes"),
        ({}, {"usable": []}, "nodes of the training job is '0'; 0 of 2 nodes of the cluster take jobs"),
        (
            {"nodes": MOST_NODES + 1, "min_nodes": 1},
            {},
            "min_nodes of the training job is '1'; the cluster has 2 nodes",
        ),
    ],
)
def test_how_many_nodes_there_are_and_what_helps(definition: Item, context: Item, begins: str) -> None:
    assert refusal({**OWN, **definition}, **{"known": 2, **context}).startswith(begins)


def test_the_most_nodes_that_a_folders_name_can_tell() -> None:
    job = resolve({**OWN, "nodes": MOST_NODES, "min_nodes": 1})
    assert (job["nodes_option"], job["folder"][-4:]) == (f"1-{MOST_NODES}", "ffff")


def test_what_is_laid_over_what() -> None:
    base = {"a": {"x": 1, "y": {"z": 2}}, "b": [1], "c": {"d": 1}}
    over = {"a": {"y": {"w": 3}}, "b": [2], "c": 5}
    assert merged(base, over) == {"a": {"x": 1, "y": {"z": 2, "w": 3}}, "b": [2], "c": 5}
    presets: dict[str, Item] = {"bert": {"args": {"a": 1}, "name": "bert", "enough_nodes": 2}, "x": {"name": "x"}}
    assert preset_of({}, presets)["name"] == "bert"
    assert preset_of({"script": "a.py"}, presets) == {"name": "bert"}
    assert preset_of({"preset": "gone"}, presets) == {}
    definitions: list[Item] = [{}, {"script": "a"}, {"preset": "x"}]
    assert [enough_nodes(one, presets) for one in definitions] == [2, 0, 0]
