"""Nodes without an address, over Session Manager, a small head node beside them, and a file system that all share: from
an empty account over nodes that are replaced, and back."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from typing import Any

import pytest

from tests.sandbox_driver import DEMO_LOSS, Sandbox

NO_WAY = ("-e", "trainium_private_access=false", "-e", "trainium_public_ip=none")
SETTINGS = (
    "trainium_connection=ssm",
    "trainium_head_instance_type=m5.2xlarge",
    "trainium_shared_storage=efs",
    "trainium_monitoring=true",
)
OVER_SSM = (*NO_WAY, *(word for setting in SETTINGS for word in ("-e", setting)))


def head(sandbox: Sandbox) -> str:
    (found,) = [one["PrivateIpAddress"] for one in sandbox.instances() if one["InstanceType"] == "m5.2xlarge"]
    return str(found)


def nodes(sandbox: Sandbox) -> dict[str, str]:
    """The ids of the compute nodes' instances by address, in the order of their ranks: by launch and index in it,
    or those of the node whose place they took."""

    def rank(one: dict[str, Any]) -> list[int]:
        tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
        own = f"{tags['trainium:generation']}/{one['AmiLaunchIndex']}"
        return [int(number) for number in tags.get("trainium:place", own).split("/")[:2]]

    found = [one for one in sandbox.instances() if one["InstanceType"] == "trn1.32xlarge"]
    return {one["PrivateIpAddress"]: one["InstanceId"] for one in sorted(found, key=rank)}


def name_of(address: str) -> str:
    return f"ip-{address.replace('.', '-')}"


def wait_for_end(sandbox: Sandbox, job: str) -> str:
    """What Slurm tells of a job that has succeeded."""
    until = time.monotonic() + 300
    while "JobState=COMPLETED" not in (said := sandbox.on_node(head(sandbox), f"scontrol show job {job}").output):
        assert time.monotonic() < until, said
        time.sleep(1)
    return str(said)


def test_nodes_that_nobody_could_log_in_to_are_refused(sandbox: Sandbox) -> None:
    sandbox.forget()
    run = sandbox.playbook("site", *NO_WAY)
    assert run.returncode != 0
    assert "Nobody could log in to the nodes of trainium: trainium_public_ip is none" in run.output
    assert sandbox.writes() == []


def test_two_nodes_train_and_the_head_does_not(sandbox: Sandbox) -> None:
    run = sandbox.playbook("site", *OVER_SSM)
    assert run.returncode == 0, sandbox.why(run.output)
    assert Counter(one["InstanceType"] for one in sandbox.instances()) == {"trn1.32xlarge": 2, "m5.2xlarge": 1}
    assert [one.get("PublicIpAddress") for one in sandbox.instances()] == [None] * 3
    report = json.loads((sandbox.reports / "report.json").read_text(encoding="utf-8"))
    assert (report["nodes"], report["processes"], report["head_type"]) == (2, 4, "m5.2xlarge")
    assert report["final_loss"] == pytest.approx(DEMO_LOSS, abs=0.01)
    assert sandbox.on_node(head(sandbox), "sinfo --noheader --format='%D %T'").output.split() == ["2", "idle"]
    # It has an environment, since it prepares for all what is on shared storage.
    seen = "ls -d /opt/amazon/efa 2> /dev/null; systemctl is-active slurmd || :"
    assert sandbox.on_node(head(sandbox), seen).output.split() == ["inactive"]
    address = "http://127.0.0.1:9090/api/v1/targets?state=active"
    asked = sandbox.on_node(
        head(sandbox), f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{address}\").read().decode())'"
    )
    targets = json.loads(asked.output)["data"]["activeTargets"]
    assert Counter(one["labels"]["job"] for one in targets if one["health"] == "up") == {
        "node": 3,
        "neuron": 2,
        "prometheus": 1,
    }
    assert "-L 9090:127.0.0.1:9090" in run.output
    assert "http://127.0.0.1:9090/consoles/trainium.html" in run.output


def test_a_second_run_changes_nothing(sandbox: Sandbox) -> None:
    run = sandbox.playbook("site", *OVER_SSM)
    assert run.returncode == 0, sandbox.why(run.output)
    assert len(run.changed) == 4
    assert set(run.changed.values()) == {0}


def test_a_node_that_lost_a_device_is_replaced_and_has_jobs_again(sandbox: Sandbox) -> None:
    before = nodes(sandbox)
    other, broken = before
    sandbox.on_node(broken, "mkdir -p /etc/simulated && echo 15 > /etc/simulated/neuron-devices")
    checked = sandbox.playbook("nodes", *OVER_SSM)
    assert checked.returncode == 0, sandbox.why(checked.output)
    # What runs on the other is not disturbed.
    submit = f"cd /tmp && sbatch --parsable --nodelist={name_of(other)} --wrap='sleep 3600'"
    job = sandbox.on_node(head(sandbox), submit).output.strip()
    run = sandbox.playbook("replace", *OVER_SSM)
    assert run.returncode == 0, sandbox.why(run.output)
    assert f"To be replaced by another instance: {name_of(broken)} (drained, acceptance: 15 of 16" in run.output
    after = nodes(sandbox)
    assert list(after) == [other, broken]
    assert (after[other] == before[other], after[broken] == before[broken]) == (True, False)
    asked = sandbox.on_node(head(sandbox), f"squeue --noheader --jobs={job} --format=%T; scancel {job}")
    assert asked.output.split() == ["RUNNING"]
    ran = sandbox.on_node(head(sandbox), f"cd /tmp && srun --nodelist={name_of(broken)} cat /proc/sys/kernel/hostname")
    assert ran.output.split()[-1] == name_of(broken)
    assert sandbox.on_node(broken, "findmnt --noheadings --output=FSTYPE /neuron_shared").output.strip() != ""


def test_a_node_with_a_job_goes_only_where_that_is_said_and_the_job_goes_on(sandbox: Sandbox) -> None:
    before = nodes(sandbox)
    _other, busy = before
    work = "test ${SLURM_RESTART_COUNT:-0} = 1 || sleep 3600; srun true"
    submit = f"cd /tmp && sbatch --parsable --requeue --nodes=2 --wrap={shlex.quote(work)}"
    job = sandbox.on_node(head(sandbox), submit).output.strip()
    named = ("-e", json.dumps({"trainium_replace": [name_of(busy)]}))
    refused = sandbox.playbook("replace", *OVER_SSM, *named)
    assert refused.returncode != 0
    assert f"jobs run on {name_of(busy)} ({job}), which would be replaced" in refused.output
    assert nodes(sandbox) == before
    run = sandbox.playbook("replace", *OVER_SSM, *named, "-e", "trainium_replace_busy=true")
    assert run.returncode == 0, sandbox.why(run.output)
    after = nodes(sandbox)
    assert list(after) == list(before)
    assert [address for address in before if after[address] != before[address]] == [busy]
    assert "Restarts=1" in wait_for_end(sandbox, job)


def test_the_head_stays_when_the_nodes_are_stopped(sandbox: Sandbox) -> None:
    nodes = [one["InstanceId"] for one in sandbox.instances() if one["InstanceType"] == "trn1.32xlarge"]
    ec2 = sandbox.client("ec2")
    ec2.stop_instances(InstanceIds=nodes)
    ec2.get_waiter("instance_stopped").wait(InstanceIds=nodes, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
    assert sandbox.on_node(head(sandbox), "systemctl is-active slurmctld; scontrol ping").output.startswith("active\n")
    status = sandbox.playbook("status", *OVER_SSM)
    assert status.returncode == 0, status.output


def test_what_was_stopped_comes_back_with_ranks_and_queue(sandbox: Sandbox) -> None:
    """EC2 gives each a new LaunchTime, at which nothing may be ordered."""
    every, controller = [one["InstanceId"] for one in sandbox.instances("stopped")], head(sandbox)
    assert sandbox.playbook("compute", *OVER_SSM).returncode == 0
    before = nodes(sandbox)
    assert sorted(before.values()) == sorted(every)
    assert sandbox.playbook("nodes", *OVER_SSM).returncode == 0
    job = sandbox.on_node(controller, "cd /tmp && sbatch --parsable --hold --nodes=2 --wrap='srun true'").output.strip()

    ec2, every = sandbox.client("ec2"), [one["InstanceId"] for one in sandbox.instances()]
    ec2.stop_instances(InstanceIds=every)
    ec2.get_waiter("instance_stopped").wait(InstanceIds=every, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
    for name in ("compute", "nodes"):
        run = sandbox.playbook(name, *OVER_SSM)
        assert run.returncode == 0, sandbox.why(run.output)
    assert (list(nodes(sandbox).items()), head(sandbox)) == (list(before.items()), controller)
    asked = sandbox.on_node(controller, f"squeue --noheader --jobs={job} --format='%T %r'; scontrol release {job}")
    assert asked.output.split() == ["PENDING", "JobHeldUser"]
    wait_for_end(sandbox, job)


def test_fewer_nodes_are_had_only_where_that_is_said_and_no_job_ends(sandbox: Sandbox) -> None:
    two, three = nodes(sandbox), ("-e", "trainium_node_count=3")
    for name in ("compute", "nodes"):
        run = sandbox.playbook(name, *OVER_SSM, *three)
        assert run.returncode == 0, sandbox.why(run.output)
    first, *_others, last = nodes(sandbox)
    # The idle one is not that which came last.
    busy = f"{name_of(first)},{name_of(last)}"
    # Until it is told that it may end: how long two playbooks take, nobody knows.
    work = "srun true; trap 'exit 0' USR1; while :; do sleep 1; done"
    submit = f"cd /tmp && sbatch --parsable --nodelist={busy} --nodes=2 --wrap={shlex.quote(work)}"
    job = sandbox.on_node(head(sandbox), submit).output.strip()
    refused = sandbox.playbook("compute", *OVER_SSM)
    assert refused.returncode != 0
    assert "trainium_allow_shrink=true" in refused.output
    assert len(nodes(sandbox)) == 3
    run = sandbox.playbook("compute", *OVER_SSM, "-e", "trainium_allow_shrink=true")
    assert run.returncode == 0, sandbox.why(run.output)
    left = nodes(sandbox)
    assert list(left) == [first, last]
    assert left[first] == two[first]
    sandbox.on_node(head(sandbox), f"scancel --batch --signal=USR1 {job}")
    assert "Restarts=0" in wait_for_end(sandbox, job)


def test_teardown_leaves_nothing(sandbox: Sandbox) -> None:
    assert sandbox.playbook("teardown", *OVER_SSM).returncode == 0
    ec2, iam = sandbox.client("ec2"), sandbox.client("iam")
    assert sandbox.instances("pending", "running", "stopping", "stopped") == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == ec2.describe_volumes()["Volumes"] == []
    assert ec2.describe_addresses()["Addresses"] == ec2.describe_key_pairs()["KeyPairs"] == []
    assert [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]] == []
    assert {one["State"] for one in ec2.describe_nat_gateways()["NatGateways"]} <= {"deleted"}
    assert sandbox.client("efs").describe_file_systems()["FileSystems"] == []
    assert iam.list_instance_profiles()["InstanceProfiles"] == []
    assert iam.list_roles(PathPrefix="/trainium/")["Roles"] == []
