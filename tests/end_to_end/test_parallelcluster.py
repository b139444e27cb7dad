"""The same training on a cluster that the real pcluster makes, from an empty account and back. One story, in order."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from tests.sandbox_driver import REPOSITORY, Sandbox

# As ``make demo`` has it.
BACKEND = ("-e", "trainium_backend=pcluster", "-e", '{"trainium_training": {"nodes": 2, "processes_per_node": 2}}')
CLUSTER = "trainium"
# A node is given back a minute after its last job; then Slurm powers it down and clustermgtd ends its instance.
SECONDS_UNTIL_GIVEN_BACK = 240


def computes(sandbox: Sandbox) -> list[dict[str, Any]]:
    """The compute nodes' instances that run."""
    return [
        one for one in sandbox.instances("pending", "running") if tag(one, "parallelcluster:node-type") == "Compute"
    ]


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
    assert report["final_loss"] < 0.85 * report["initial_loss"]


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
