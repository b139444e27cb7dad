"""Slurm's files on ParallelCluster's head node in the sandbox, from a cluster's configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

TYPES = {
    "trn1.32xlarge": {"VCpuInfo": {"DefaultVCpus": 128, "DefaultCores": 64}, "MemoryInfo": {"SizeInMiB": 524288}},
    "m5.large": {"VCpuInfo": {"DefaultVCpus": 2, "DefaultCores": 1}, "MemoryInfo": {"SizeInMiB": 8192}},
}
CLUSTER = {"stack_name": "demo", "compute_node_bootstrap_timeout": 900}


@pytest.fixture
def slurm(cookbook: Callable[[str], ModuleType]) -> ModuleType:
    return cookbook("slurm")


def settings(*resources: dict[str, Any], **queue: Any) -> dict[str, Any]:
    networking = {"SubnetIds": ["subnet-1"]}
    first = {"Name": "train", "ComputeResources": list(resources), "Networking": networking, **queue}
    return {"Scheduling": {"Scheduler": "slurm", "SlurmSettings": {"ScaledownIdletime": 1}, "SlurmQueues": [first]}}


def test_static_and_dynamic_nodes(slurm: ModuleType) -> None:
    found = settings({"Name": "trn1", "InstanceType": "trn1.32xlarge", "MinCount": 1, "MaxCount": 3})
    text = slurm.slurm_conf(CLUSTER, found, TYPES, ("head", "10.0.0.4"))
    lines = text.splitlines()
    assert "SlurmctldHost=head(10.0.0.4)" in lines
    assert "SuspendTime=60" in lines
    assert "Prolog=/opt/slurm/etc/scripts/prolog.d/*" in lines
    assert "ResumeTimeout=900" in lines
    assert "SuspendExcNodes=train-st-trn1-[1-1]" in lines
    nodes = [line for line in lines if line.startswith("NodeName=")]
    assert [line.split()[0] for line in nodes] == ["NodeName=train-st-trn1-[1-1]", "NodeName=train-dy-trn1-[1-2]"]
    assert all("CPUs=128 RealMemory=498073 State=CLOUD" in line for line in nodes)
    assert (
        "PartitionName=train Nodes=train-st-trn1-[1-1],train-dy-trn1-[1-2] MaxTime=INFINITE State=UP Default=YES"
        in lines
    )


def test_exclusive_queue_and_single_threads(slurm: ModuleType) -> None:
    resource = {"Name": "a", "InstanceType": "m5.large", "MaxCount": 1, "DisableSimultaneousMultithreading": True}
    lines = slurm.queue_lines(settings(resource, JobExclusiveAllocation=True), TYPES)
    assert lines[0].startswith("NodeName=train-dy-a-[1-1] CPUs=1 ")
    assert lines[1].endswith("OverSubscribe=EXCLUSIVE")


def test_fleet_names_the_call_for_each_resource(slurm: ModuleType) -> None:
    several = {"Name": "mixed", "Instances": [{"InstanceType": "m5.large"}, {"InstanceType": "trn1.32xlarge"}]}
    found = json.loads(slurm.fleet(settings({"Name": "one", "InstanceType": "m5.large"}, several)))
    assert found["train"]["one"]["Api"] == "run-instances"
    assert found["train"]["mixed"]["Api"] == "create-fleet"
    assert [one["InstanceType"] for one in found["train"]["mixed"]["Instances"]] == ["m5.large", "trn1.32xlarge"]


def test_partitions_map_to_their_nodes(slurm: ModuleType) -> None:
    found = settings({"Name": "one", "InstanceType": "m5.large", "MaxCount": 2})
    assert json.loads(slurm.partitions(found)) == {"train": "train-dy-one-[1-2]"}


def node(name: str, state: str, reason: str = "") -> str:
    told = f"   Reason={reason} [slurm@2026-11-26T02:00:00]\n" if reason else ""
    return f"NodeName={name} Arch=x86_64 CoresPerSocket=1\n   State={state} ThreadsPerCore=1\n{told}\n"


def test_only_nodes_that_are_taken_for_rebooted_are_resumed(cookbook: Callable[[str], ModuleType]) -> None:
    shown = (
        node("train-st-trn1-1", "DOWN+CLOUD", "Node unexpectedly rebooted")
        + node("train-st-trn1-2", "IDLE+CLOUD")
        + node("train-st-trn1-3", "DOWN+CLOUD", "Not responding")
        + node("train-st-trn1-4", "DOWN*+CLOUD+NOT_RESPONDING", "Node unexpectedly rebooted")
        + node("train-st-trn1-5", "IDLE+CLOUD", "Node unexpectedly rebooted")
    )
    assert cookbook("scontrol").rebooted(shown) == ["train-st-trn1-1", "train-st-trn1-4"]
