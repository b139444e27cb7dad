"""The wrapper of pcluster's library, with the real library where it needs no AWS."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls as pcluster
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import worker

CONFIGURATION: dict[str, Any] = {
    "Region": "us-west-2",
    "Image": {"Os": "ubuntu2404"},
    "HeadNode": {"InstanceType": "m5.large", "Networking": {"SubnetId": "subnet-12345678"}},
    "Scheduling": {
        "Scheduler": "slurm",
        "SlurmQueues": [
            {
                "Name": "train",
                "ComputeResources": [{"Name": "trn1", "InstanceType": "trn1.32xlarge", "MaxCount": 2}],
                "Networking": {"SubnetIds": ["subnet-12345678"]},
            }
        ],
    },
}


def test_the_version() -> None:
    assert pcluster.call(sys.executable, "version", {}).startswith("3.")


def test_the_schema_accepts_a_configuration() -> None:
    assert pcluster.call(None, "schema", {"configuration": CONFIGURATION, "cluster_name": "tc"}) == []


def test_the_schema_names_the_key() -> None:
    queue = {**CONFIGURATION["Scheduling"]["SlurmQueues"][0], "Nmae": "x", "Networking": {"SubnetIds": "no list"}}
    wrong = {**CONFIGURATION, "Scheduling": {"Scheduler": "slurm", "SlurmQueues": [queue]}}
    found = pcluster.call(None, "schema", {"configuration": wrong})
    assert {item["key"] for item in found} == {
        "Scheduling/SlurmQueues/0/Nmae",
        "Scheduling/SlurmQueues/0/Networking/SubnetIds",
    }
    assert all(item["message"] for item in found)


def test_an_unknown_operation_and_a_wrong_keyword_are_errors() -> None:
    with pytest.raises(pcluster.PclusterError, match="has no operation make_coffee"):
        pcluster.call(None, "make_coffee", {})
    with pytest.raises(pcluster.PclusterError, match=r"unexpected arguments: {'colour'}"):
        pcluster.call(None, "describe_cluster", {"cluster_name": "tc", "colour": "red"})


def test_an_interpreter_without_the_library(tmp_path: Path) -> None:
    with pytest.raises(pcluster.PclusterError, match="has no aws-parallelcluster; name the interpreter") as caught:
        pcluster.call(getattr(sys, "_base_executable", "/usr/bin/python3"), "describe_cluster", {})
    assert caught.value.code == pcluster.NO_LIBRARY
    with pytest.raises(pcluster.PclusterError, match=r"\(pcluster_python\): No such file"):
        pcluster.call(str(tmp_path / "python"), "version", {})


def test_an_interpreter_that_says_nonsense(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho hello\necho 'it burns' >&2\n")
    fake.chmod(0o755)
    with pytest.raises(pcluster.PclusterError, match=r"version broke in .*: it burns"):
        pcluster.call(str(fake), "version", {})


def test_a_home_that_cannot_be_written_to_is_replaced(tmp_path: Path) -> None:
    variables = pcluster._environment({"HOME": "/nonexistent"}, "us-west-2", str(tmp_path))
    assert variables["HOME"] == str(tmp_path)
    assert variables["AWS_DEFAULT_REGION"] == variables["AWS_REGION"] == "us-west-2"
    assert pcluster._environment({"HOME": str(tmp_path)}, None, "/other")["HOME"] == str(tmp_path)


def test_the_sentence_has_the_errors_and_not_the_warnings() -> None:
    content = {
        "message": "Invalid cluster configuration.",
        "configurationValidationErrors": [
            {"level": "WARNING", "type": "A", "message": "hm"},
            {"level": "ERROR", "type": "SubnetsValidator", "message": "no such\n subnet."},
        ],
    }
    failure = {"code": 400, "message": content["message"], "content": content}
    assert pcluster._sentence(failure, "x", "y") == ("Invalid cluster configuration: SubnetsValidator: no such subnet")


def test_flat_knows_levels_lists_and_indices() -> None:
    assert worker.flat({"A": {0: {"_schema": ["both"], "B": ["wrong", "bad"]}}}) == [
        {"key": "A/0", "message": "both"},
        {"key": "A/0/B", "message": "wrong"},
        {"key": "A/0/B", "message": "bad"},
    ]
