"""The same training on a cluster that the real pcluster makes, from an empty account and back. One story, in order."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_driver import DEMO_LOSS, REPOSITORY, Run, Sandbox

# As ``make demo`` has it.
BACKEND = ("-e", "trainium_backend=pcluster", "-e", '{"trainium_training": {"nodes": 2, "processes_per_node": 2}}')
CLUSTER = "trainium"
# A node is given back a minute after its last job; then Slurm powers it down and clustermgtd ends its instance.
SECONDS_UNTIL_GIVEN_BACK = 240
SECONDS_UNTIL_TRAINING = 600
# The report of the demo, to which that of a training with an accident is compared.
UNDISTURBED: dict[str, Any] = {}


# Of EC2's instances.
LIVING = ("pending", "running")
ALL = (*LIVING, "stopping", "stopped", "shutting-down", "terminated")


def computes(sandbox: Sandbox, *states: str) -> list[dict[str, Any]]:
    """The compute nodes' instances; those that live, unless other states are named."""
    found = sandbox.instances(*(states or LIVING))
    return [one for one in found if tag(one, "parallelcluster:node-type") == "Compute"]


def tag(instance: dict[str, Any], key: str) -> str:
    return next((one["Value"] for one in instance["Tags"] if one["Key"] == key), "")


def test_the_demo_trains_on_nodes_that_come_with_the_job(sandbox: Sandbox) -> None:
    assert sandbox.instances("pending", "running") == []
    sandbox.forget()
    command = ["make", "demo", "BACKEND=pcluster"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0

    # The fleet was launched by Slurm on the head node, not by Ansible.
    templates = [launch.get("LaunchTemplate.LaunchTemplateName") for launch in sandbox.launches()]
    assert templates == [f"{CLUSTER}-compute1-trn1"]
    report = json.loads((sandbox.reports / "report.json").read_text(encoding="utf-8"))
    assert (report["nodes"], report["processes"]) == (2, 4)
    assert report["hosts"].startswith("compute1-dy-trn1-")
    assert report["final_loss"] == pytest.approx(DEMO_LOSS, abs=0.01)
    UNDISTURBED.update(report)


def test_a_second_run_changes_nothing(sandbox: Sandbox) -> None:
    sandbox.forget()
    run = sandbox.playbook("site", *BACKEND)
    assert run.returncode == 0
    assert set(run.changed.values()) == {0}
    writes = [call for call in sandbox.writes() if call not in HEAD_NODE_WRITES]
    # The lease of the cluster, taken and given back.
    assert writes == ["PutParameter", "PutParameter"]


# What the head node's daemons do by themselves meanwhile.
HEAD_NODE_WRITES = {"PutLogEvents", "CreateLogStream", "TerminateInstances", "PutItem"}


def test_a_node_lost_in_mid_training_is_replaced(sandbox: Sandbox) -> None:
    """The one playbook that is running follows the job to the loss of the demo, which has the same definition."""
    job = {"name": "lost", "nodes": 2, "processes_per_node": 2, "checkpoint": {"steps": 10}}
    given = (*BACKEND, "-e", json.dumps({"trainium_training": job, "training_job_wait_timeout": 1800}))
    running = "squeue --noheader --name=lost --states=RUNNING --format=%N"
    with ThreadPoolExecutor(max_workers=1) as pool:
        following = pool.submit(sandbox.playbook, "training", *given)
        wait(following, lambda: bool(ask(sandbox, running).strip()))
        names = ask(sandbox, f"scontrol show hostnames $({running})").split()
        before = {one["PrivateIpAddress"]: one["InstanceId"] for one in computes(sandbox)}
        lost = before[address(sandbox, names[1])]
        known = {one["InstanceId"] for one in computes(sandbox, *ALL)}
        log = "cat /shared/trainium/jobs/lost-*/train.log || :"
        wait(following, lambda: "training: checkpoint" in ask(sandbox, log))
        sandbox.client("ec2").stop_instances(InstanceIds=[lost], Force=True)
        wait(following, lambda: state(sandbox, lost) == "stopped")
        # Slurm itself does so after the SlurmdTimeout of ParallelCluster, three minutes.
        ask(sandbox, f"scontrol update NodeName={names[1]} State=DOWN Reason=gone")
        assert following.result().returncode == 0

    # clustermgtd ended the lost one, and Slurm had others launched. It lets a job that has lost a node wait for two
    # minutes, and here the other node is given back as well by then.
    assert state(sandbox, lost) in ("shutting-down", "terminated")
    launched = {one["InstanceId"] for one in computes(sandbox, *ALL)} - known
    assert len(launched) in (1, 2)
    report = json.loads((sandbox.reports / "report.json").read_text(encoding="utf-8"))
    assert (report["name"], report["restarts"], report["nodes"], report["processes"]) == ("lost", 1, 2, 4)
    resumed = re.findall(r"training: resumed from step (\d+)", Path(report["log"]).read_text(encoding="utf-8"))
    assert len(resumed) == 1
    assert 10 <= int(resumed[0]) < 100
    with (sandbox.reports / "metrics.csv").open(encoding="utf-8", newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == list(range(1, 101))
    assert report["initial_loss"] == UNDISTURBED["initial_loss"]
    assert report["final_loss"] == pytest.approx(UNDISTURBED["final_loss"], abs=0.001)


def ask(sandbox: Sandbox, command: str) -> str:
    """What a command says as root on the head node, which has Slurm's programs at a place of their own."""
    head = next(one for one in sandbox.instances("running") if tag(one, "parallelcluster:node-type") == "HeadNode")
    return sandbox.on_node(head["PrivateIpAddress"], f"PATH=$PATH:/opt/slurm/bin; {command}").output


def address(sandbox: Sandbox, name: str) -> str:
    """Where a node of Slurm is."""
    shown = ask(sandbox, f"scontrol show node {name}")
    found = re.search(r"NodeAddr=(\S+)", shown)
    assert found, shown
    return found[1]


def state(sandbox: Sandbox, instance_id: str) -> str:
    found = sandbox.client("ec2").describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    return str(found["State"]["Name"])


def wait(following: Future[Run], condition: Callable[[], bool]) -> None:
    """Until something is so, while the playbook runs."""
    until = time.monotonic() + SECONDS_UNTIL_TRAINING
    while not condition():
        assert not following.done(), "the playbook ended before that"
        assert time.monotonic() < until, "that does not happen"
        time.sleep(0.2)


def test_the_nodes_are_given_back(sandbox: Sandbox) -> None:
    until = time.monotonic() + SECONDS_UNTIL_GIVEN_BACK
    while computes(sandbox):
        assert time.monotonic() < until, f"{len(computes(sandbox))} compute nodes still run"
        time.sleep(1)
    heads = [one for one in sandbox.instances("running") if tag(one, "parallelcluster:node-type") == "HeadNode"]
    assert len(heads) == 1


def test_other_variables_of_the_nodes_stop_the_fleet_only_where_that_is_wanted(sandbox: Sandbox) -> None:
    other = (*BACKEND, "-e", "efa_nofile=32768")
    refused = sandbox.playbook("site", *other)
    assert refused.returncode != 0
    assert "run playbooks/update_nodes.yml" in refused.output

    assert sandbox.playbook("update_nodes", *other).returncode == 0
    head = next(one for one in sandbox.instances("running") if tag(one, "parallelcluster:node-type") == "HeadNode")
    files = "/etc/security/limits.d/60-trainium-nofile.conf /etc/trainium-compile-cache"
    shown = sandbox.on_node(head["PrivateIpAddress"], f"/opt/slurm/bin/srun --chdir=/tmp cat {files}").output
    assert "soft nofile 32768" in shown
    assert f"s3://trainium-{CLUSTER}-" in shown
    # The prolog has found the node good, or there would be no answer.
    accepted = "/opt/slurm/bin/srun --chdir=/tmp ls /run/trainium-accepted /opt/aws_neuron_venv_pytorch/bin/torchrun"
    sandbox.on_node(head["PrivateIpAddress"], accepted)
    assert set(sandbox.playbook("update_nodes", *other).changed.values()) == {0}


def test_teardown_leaves_nothing(sandbox: Sandbox) -> None:
    run = sandbox.playbook("teardown", *BACKEND, "-e", "parallelcluster_keep_logs=false")
    assert run.returncode == 0
    assert sandbox.instances("pending", "running", "stopping", "stopped", "shutting-down") == []
    stacks = sandbox.client("cloudformation").list_stacks()["StackSummaries"]
    assert {stack["StackStatus"] for stack in stacks} <= {"DELETE_COMPLETE"}
    groups = [group["logGroupName"] for group in sandbox.client("logs").describe_log_groups()["logGroups"]]
    assert [name for name in groups if CLUSTER in name] == []
    buckets = [bucket["Name"] for bucket in sandbox.client("s3").list_buckets()["Buckets"]]
    assert [name for name in buckets if name.startswith(f"trainium-{CLUSTER}-")] == []
    assert sandbox.client("dynamodb").list_tables()["TableNames"] == []
    assert (
        sandbox.client("ec2").describe_vpcs(Filters=[{"Name": "tag-key", "Values": ["trainium:cluster"]}])["Vpcs"] == []
    )


def test_nodes_with_gpus_come_with_a_job(sandbox: Sandbox) -> None:
    """None is trained on; the preset's four p4d are there for Slurm, and one is launched when a job asks for it."""
    command = ["make", "demo", "BACKEND=pcluster", "ARGS=-e parallelcluster_preset=gpu"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, sandbox.why(done.stdout + done.stderr)
    assert "p4d.24xlarge without Neuron devices" in done.stdout
    named = [f"compute-gpu-dy-distributed-ml-{number}" for number in range(1, 5)]
    assert sorted(ask(sandbox, "sinfo --noheader --Node --format=%N").split()) == named
    assert computes(sandbox) == []

    assert ask(sandbox, "srun --nodes=1 --chdir=/tmp hostname").split() == named[:1]
    assert [one["InstanceType"] for one in computes(sandbox)] == ["p4d.24xlarge"]
    assert sandbox.playbook("teardown", "-e", "trainium_backend=pcluster").returncode == 0
    assert sandbox.instances("pending", "running", "stopping", "stopped", "shutting-down") == []
