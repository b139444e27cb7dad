"""Nodes without an address, over Session Manager, and a small head node beside them: from an empty account and back."""

from __future__ import annotations

import json
from collections import Counter

from tests.sandbox_driver import Sandbox

NO_WAY = ("-e", "trainium_private_access=false", "-e", "trainium_public_ip=none")
SETTINGS = ("trainium_connection=ssm", "trainium_head_instance_type=m5.2xlarge", "trainium_monitoring=true")
OVER_SSM = (*NO_WAY, *(word for setting in SETTINGS for word in ("-e", setting)))


def head(sandbox: Sandbox) -> str:
    (found,) = [one["PrivateIpAddress"] for one in sandbox.instances() if one["InstanceType"] == "m5.2xlarge"]
    return str(found)


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
    assert report["final_loss"] < 0.85 * report["initial_loss"]
    assert sandbox.on_node(head(sandbox), "sinfo --noheader --format='%D %T'").output.split() == ["2", "idle"]
    seen = "ls -d /opt/amazon/efa /opt/aws_neuron_venv_pytorch 2> /dev/null; systemctl is-active slurmd || :"
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


def test_a_second_run_changes_nothing(sandbox: Sandbox) -> None:
    run = sandbox.playbook("site", *OVER_SSM)
    assert run.returncode == 0, sandbox.why(run.output)
    assert len(run.changed) == 4
    assert set(run.changed.values()) == {0}


def test_the_head_stays_when_the_nodes_are_stopped(sandbox: Sandbox) -> None:
    nodes = [one["InstanceId"] for one in sandbox.instances() if one["InstanceType"] == "trn1.32xlarge"]
    ec2 = sandbox.client("ec2")
    ec2.stop_instances(InstanceIds=nodes)
    ec2.get_waiter("instance_stopped").wait(InstanceIds=nodes, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
    assert sandbox.on_node(head(sandbox), "systemctl is-active slurmctld; scontrol ping").output.startswith("active\n")
    status = sandbox.playbook("status", *OVER_SSM)
    assert status.returncode == 0, status.output


def test_teardown_leaves_nothing(sandbox: Sandbox) -> None:
    assert sandbox.playbook("teardown", *OVER_SSM).returncode == 0
    ec2, iam = sandbox.client("ec2"), sandbox.client("iam")
    assert sandbox.instances("pending", "running", "stopping", "stopped") == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == ec2.describe_volumes()["Volumes"] == []
    assert ec2.describe_addresses()["Addresses"] == ec2.describe_key_pairs()["KeyPairs"] == []
    assert [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]] == []
    assert iam.list_instance_profiles()["InstanceProfiles"] == []
    assert iam.list_roles(PathPrefix="/trainium/")["Roles"] == []
