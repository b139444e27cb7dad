"""From an empty account to a falling loss and back. The tests tell one story and run in the order they stand in."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox_driver import DEMO_LOSS, REPOSITORY, Sandbox, execute

# The report of the demo, to which that of a training with accidents is compared.
UNDISTURBED: dict[str, Any] = {}
CARDS = {"trn1.32xlarge": 8, "trn1n.32xlarge": 16}


@pytest.fixture(autouse=True)
def interpreters(request: pytest.FixtureRequest, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo and its second run are as a user has them; around them modules start from a warm interpreter."""
    if "as_a_user" not in request.keywords:
        for name, value in sandbox.warm().items():
            monkeypatch.setitem(sandbox.environment, name, value)


def interface_entries(parameters: dict[str, Any], field: str) -> list[str]:
    """The values of one field over the NetworkInterface entries of a RunInstances call."""
    return [v for k, v in parameters.items() if re.fullmatch(rf"NetworkInterface\.\d+\.{field}", k)]


def assert_efa_on_every_card(sandbox: Sandbox, nodes: int, instance_type: str) -> None:
    """DescribeInstances shows an EFA interface on each network card of each node."""
    instances = sandbox.instances()
    assert [i["InstanceType"] for i in instances] == [instance_type] * nodes
    for instance in instances:
        interfaces = instance["NetworkInterfaces"]
        cards = sorted(i["Attachment"]["NetworkCardIndex"] for i in interfaces if i["InterfaceType"] == "efa")
        assert cards == list(range(CARDS[instance_type]))


def test_check_mode_on_an_empty_account_reaches_the_end(sandbox: Sandbox) -> None:
    sandbox.forget()
    run = sandbox.playbook("site", "--check", "--diff")
    assert run.returncode == 0
    assert sandbox.writes() == []
    assert "trn1.32xlarge" in run.output
    assert sandbox.instances() == []


REFUSED = {
    "trainium_node_count=0": "trainium_node_count",
    "trainium_instance_type=trn9.32xlarge": "trn9.32xlarge",
    "trainium_image_id=ami-0123456789abcdef0": "ami-0123456789abcdef0",
    '{"trainium_cluster_name": "two words"}': "two words",
    '{"trainium_training": {"time_limit": "soon"}}': "time_limit",
    '{"trainium_ssh_allowed_cidrs": ["0.0.0.0/0"]}': "trainium_ssh_allowed_cidrs",
    "neuron_sdk_version=2.32.0": "set neuron_sdk_version to 2.29.1",
}


def test_bad_input_is_refused_before_anything_starts(sandbox: Sandbox) -> None:
    sandbox.forget()
    # One run has one processor.
    with ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda variable: sandbox.playbook("site", "-e", variable), REFUSED)
        for (variable, sentence), run in zip(REFUSED.items(), runs, strict=True):
            assert run.returncode != 0, variable
            assert sentence in run.output, variable
            assert "Traceback" not in run.output, variable
    assert sandbox.writes() == []


def test_a_run_killed_after_the_launch_is_taken_up(sandbox: Sandbox) -> None:
    sandbox.forget()
    assert sandbox.playbook("network").returncode == 0
    sandbox.kill_playbook_when("compute", lambda: bool(sandbox.launches()))
    assert len(sandbox.launches()) == 1


@pytest.mark.as_a_user
def test_the_demo_trains_on_two_nodes(sandbox: Sandbox) -> None:
    done = subprocess.run(["make", "demo"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, sandbox.why(done.stdout + done.stderr)

    (launch,) = sandbox.launches()
    assert len(interface_entries(launch, "DeviceIndex")) == 8
    assert interface_entries(launch, "DeviceIndex").count("0") == 1
    assert_efa_on_every_card(sandbox, 2, "trn1.32xlarge")

    report = json.loads((sandbox.reports / "report.json").read_text(encoding="utf-8"))
    assert (report["nodes"], report["processes"]) == (2, 4)
    assert report["steps"] > 0
    assert report["throughput"] > 0
    assert report["final_loss"] == pytest.approx(DEMO_LOSS, abs=0.01)
    UNDISTURBED.update(report)
    log = Path(report["log"])
    assert "step_loss" in log.read_text(encoding="utf-8")
    for value in (str(sandbox.reports / "report.json"), str(log)):
        assert value in done.stdout
    head = min(sandbox.instances(), key=lambda one: one["AmiLaunchIndex"])["PrivateIpAddress"]
    compiled = sandbox.on_node(head, "cat /opt/trainium/jobs/bert-*/compile.log").output
    assert compiled.count("Total failed compilations: 0") == 2


@pytest.mark.as_a_user
def test_a_second_run_changes_nothing(sandbox: Sandbox) -> None:
    sandbox.forget()
    run = sandbox.playbook("site")
    assert run.returncode == 0
    assert len(run.changed) == 3
    assert set(run.changed.values()) == {0}
    # The lease of the cluster, taken and given back.
    assert sandbox.writes() == ["PutParameter", "PutParameter"]


def test_what_is_changed_by_hand_on_a_node_is_mended(sandbox: Sandbox) -> None:
    """What belongs to the account is in tests/contract/network/test_changed_by_hand.py."""
    head, node = sorted(sandbox.instances(), key=lambda one: one["AmiLaunchIndex"])
    other = f"ip-{head['PrivateIpAddress'].replace('.', '-')}"
    python = "/opt/aws_neuron_venv_pytorch/bin/python"
    # What somebody does, and what shows it.
    by_hand = {
        f"sed '/{other}/d' /etc/hosts > /tmp/hosts && cat /tmp/hosts > /etc/hosts": f"grep {other} /etc/hosts",
        "echo '* hard nofile 1024' > /etc/security/limits.d/60-trainium-nofile.conf": (
            "cat /etc/security/limits.d/60-trainium-nofile.conf"
        ),
        "rm /etc/profile.d/trainium-neuron.sh": "cat /etc/profile.d/trainium-neuron.sh",
        "sed -i 's#^URIs: .*#URIs: http://192.0.2.1/#' /etc/apt/sources.list.d/neuron.sources": (
            "cat /etc/apt/sources.list.d/neuron.sources"
        ),
        "apt-mark unhold aws-neuronx-tools": "apt-mark showhold | sort",
        f"{python} -m pip uninstall --yes neuronx-cc": f"{python} -m pip show neuronx-cc",
        "sed -i 's/^ClusterName=.*/ClusterName=another/' /etc/slurm/slurm.conf": "sha256sum /etc/slurm/slurm.conf",
        "chmod 0666 /etc/slurm/cgroup.conf": "stat --format='%U %a' /etc/slurm/cgroup.conf",
        "chmod 0644 /etc/munge/munge.key": "stat --format='%U %a' /etc/munge/munge.key",
        "systemctl disable --now slurmd": "systemctl is-active slurmd; systemctl is-enabled slurmd",
    }

    def look() -> list[str]:
        looks = [f"{{ {command}; }} 2>&1 || :; echo ----" for command in by_hand.values()]
        return sandbox.on_node(node["PrivateIpAddress"], "\n".join(looks)).output.split("----\n")

    wanted = look()
    sandbox.on_node(node["PrivateIpAddress"], "set -e\n" + "\n".join(by_hand))
    assert [done for done, was, now in zip(by_hand, wanted, look()) if was == now] == []
    run = sandbox.playbook("nodes")
    assert run.returncode == 0
    assert look() == wanted
    name = f"ip-{node['PrivateIpAddress'].replace('.', '-')}"
    assert run.changed[name] > 0
    assert (
        f"{name} idle" in sandbox.on_node(head["PrivateIpAddress"], "sinfo --Node --noheader --format='%N %T'").output
    )


def test_a_broken_node_is_drained_and_named_and_the_others_train(sandbox: Sandbox) -> None:
    head, broken = (
        node["PrivateIpAddress"] for node in sorted(sandbox.instances(), key=lambda one: one["AmiLaunchIndex"])
    )
    sandbox.on_node(broken, "mkdir -p /etc/simulated && echo 15 > /etc/simulated/neuron-devices")
    nodes = sandbox.playbook("nodes")
    assert nodes.returncode == 0
    name = f"ip-{broken.replace('.', '-')}"
    assert name in nodes.output
    assert "15 of 16" in nodes.output
    assert "15 of 16" in sandbox.on_node(head, f"scontrol show node {name}").output
    assert sandbox.playbook("training").returncode == 0
    report = json.loads((sandbox.reports / "report.json").read_text(encoding="utf-8"))
    assert report["nodes"] == 1
    assert report["final_loss"] < 0.85 * report["initial_loss"]

    sandbox.on_node(broken, "rm /etc/simulated/neuron-devices")
    assert sandbox.playbook("nodes").returncode == 0
    assert "State=IDLE" in sandbox.on_node(head, f"scontrol show node {name}").output


def test_a_training_outlives_its_playbook_and_a_node(sandbox: Sandbox) -> None:
    """The playbook that follows is killed, then a node; the job goes on with the other, to the same loss."""
    head, lost = sorted(sandbox.instances(), key=lambda one: one["AmiLaunchIndex"])
    name = f"ip-{lost['PrivateIpAddress'].replace('.', '-')}"
    job = ("-e", json.dumps({"trainium_training": {"name": "lost", "min_nodes": 1, "processes_per_node": 2}}))

    def ask(command: str) -> str:
        return sandbox.on_node(head["PrivateIpAddress"], command).output.strip()

    def wait(command: str, wanted: str) -> None:
        until = time.monotonic() + 600
        while not re.search(wanted, ask(command)):
            assert time.monotonic() < until, f"{command} does not say {wanted}"
            time.sleep(0.5)

    log = "/opt/trainium/jobs/lost-*/train.log"
    sandbox.kill_playbook_when("training", lambda: "checkpoint" in ask(f"cat {log} 2> /dev/null || :"), *job)
    number, *running = ask("squeue --noheader --name=lost --format='%A %T %D'").split()
    assert running == ["RUNNING", "2"]
    sandbox.client("ec2").stop_instances(InstanceIds=[lost["InstanceId"]], Force=True)
    wait("squeue --noheader --name=lost --format=%T", "^(?!RUNNING)")
    logs = sandbox.reports.parent / "logs" / "playbooks"
    earlier = set(logs.glob("*-training.log"))
    with ThreadPoolExecutor(1) as pool:
        # It follows before the job starts again, which otherwise may have ended by then.
        run = pool.submit(sandbox.playbook, "training", *job)
        while not any("Follow the training" in one.read_text() for one in set(logs.glob("*-training.log")) - earlier):
            assert not run.done(), run.result().output
            time.sleep(0.5)
        # Slurm itself does so after its SlurmdTimeout of five minutes.
        ask(f"scontrol update NodeName={name} State=DOWN Reason=gone")
        assert run.result().returncode == 0
    report = json.loads((sandbox.reports / "report.json").read_text(encoding="utf-8"))
    said = ask(f"tail -n 40 {log}; scontrol show job {number} || :")
    assert (report["job_id"], report["restarts"], report["nodes"], report["steps"]) == (int(number), 1, 1, 100), said
    assert "training: resumed from step" in Path(report["log"]).read_text(encoding="utf-8")
    with (sandbox.reports / "metrics.csv").open(encoding="utf-8", newline="") as file:
        steps = [int(row["step"]) for row in csv.DictReader(file)]
    assert steps == list(range(1, 101))
    # A step has the same examples whatever the number of processes, so that only rounding differs.
    assert report["final_loss"] == pytest.approx(UNDISTURBED["final_loss"], abs=0.02)


def test_teardown_leaves_nothing_and_can_be_repeated(sandbox: Sandbox) -> None:
    assert sandbox.playbook("teardown").returncode == 0
    again = sandbox.playbook("teardown")
    assert again.returncode == 0
    assert set(again.changed.values()) == {0}

    ec2 = sandbox.client("ec2")
    ours = [{"Name": "tag-key", "Values": ["trainium:cluster"]}]
    assert sandbox.instances("pending", "running", "stopping", "stopped") == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    assert ec2.describe_addresses()["Addresses"] == []
    assert ec2.describe_key_pairs()["KeyPairs"] == []
    assert ec2.describe_placement_groups()["PlacementGroups"] == []
    assert ec2.describe_volumes()["Volumes"] == []
    for describe, field in (
        ("describe_security_groups", "SecurityGroups"),
        ("describe_subnets", "Subnets"),
        ("describe_route_tables", "RouteTables"),
        ("describe_internet_gateways", "InternetGateways"),
        ("describe_vpcs", "Vpcs"),
    ):
        assert getattr(ec2, describe)(Filters=ours)[field] == [], field
    gateways = ec2.describe_nat_gateways()["NatGateways"]
    assert [g for g in gateways if g["State"] != "deleted"] == []


def test_three_nodes_with_sixteen_cards(sandbox: Sandbox) -> None:
    """They are reached over Session Manager, whose instance profile comes and goes with them."""
    sandbox.forget()
    given = {"trainium_instance_type": "trn1n.32xlarge", "trainium_node_count": 3, "trainium_connection": "ssm"}
    variables = ("-e", json.dumps(given))
    assert sandbox.playbook("network", *variables).returncode == 0
    assert sandbox.playbook("compute", *variables).returncode == 0
    (launch,) = sandbox.launches()
    assert len(interface_entries(launch, "DeviceIndex")) == 16
    assert interface_entries(launch, "DeviceIndex").count("0") == 1
    assert_efa_on_every_card(sandbox, 3, "trn1n.32xlarge")
    ready = ("compute", "--module-name", "trainium.cluster.internal.node_ready", "--args", "timeout=300")
    program = str(Path(sys.executable).with_name("ansible"))
    assert execute([program, *ready, *variables], sandbox.environment).output.count("SUCCESS") == 3
    assert [call["parameters"]["Target"] for call in sandbox.calls() if call["action"] == "StartSession"]
    assert sandbox.playbook("teardown", *variables).returncode == 0
    assert sandbox.client("iam").list_instance_profiles()["InstanceProfiles"] == []


def test_the_second_zone_serves_when_the_first_is_full(sandbox: Sandbox) -> None:
    ec2 = sandbox.client("ec2")
    offerings = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["trn1.32xlarge"]}]
    )["InstanceTypeOfferings"]
    first, *others = sorted(offering["Location"] for offering in offerings)
    assert others
    assert sandbox.playbook("network").returncode == 0

    sandbox.forget()
    for zone in (first, *others):
        leave_room(sandbox, zone, 0)
    refused = sandbox.playbook("compute")
    assert refused.returncode != 0
    assert "InsufficientInstanceCapacity" in refused.output
    assert all(zone in refused.output for zone in (first, *others))
    assert "Traceback" not in refused.output
    assert sandbox.instances() == []

    leave_room(sandbox, others[0], 2)
    assert sandbox.playbook("compute").returncode == 0
    assert {i["Placement"]["AvailabilityZone"] for i in sandbox.instances()} == {others[0]}
    sandbox.command("capacity", "--clear")
    assert sandbox.playbook("teardown").returncode == 0


def leave_room(sandbox: Sandbox, zone: str, count: int) -> None:
    """Leave room for so many trn1.32xlarge in a zone."""
    sandbox.command("capacity", "trn1.32xlarge", zone, str(count))
