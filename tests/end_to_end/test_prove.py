"""A proof as on a real account: a failure and a kill on the way, nothing left in the end, and its report."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.sandbox_driver import Sandbox

PRICE = ("-e", "accept_price_up_to=2")
# What a file for another cluster may say.
OTHER: dict[str, Any] = {
    "trainium_cluster_name": "other",
    "trainium_image": "own",
    "trainium_shared_storage": "efs",
    "network_cluster_name": "other",
    "efa_nodes_count": 4,
    "efa_nodes_image_id": "ami-0123456789abcdef0",
    "teardown_cluster_name": "other",
}


def report(sandbox: Sandbox) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sandbox.reports / "prove/report.json").read_text(encoding="utf-8"))
    return found


def check_nothing_is_left(sandbox: Sandbox) -> None:
    ec2 = sandbox.client("ec2")
    assert sandbox.instances("pending", "running", "stopping", "stopped") == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == ec2.describe_volumes()["Volumes"] == []
    assert ec2.describe_addresses()["Addresses"] == ec2.describe_key_pairs()["KeyPairs"] == []
    assert [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]] == []


def test_a_price_that_was_not_accepted_makes_nothing(sandbox: Sandbox) -> None:
    sandbox.forget()
    run = sandbox.playbook("prove", "-e", "accept_price_up_to=1")
    assert run.returncode != 0
    assert "run it again with -e accept_price_up_to=" in run.output
    assert sandbox.writes() == []


def test_a_step_that_fails_is_torn_down(sandbox: Sandbox) -> None:
    sandbox.command("capacity", "trn1.2xlarge", "us-west-2b", "0")
    sandbox.command("capacity", "trn1.2xlarge", "us-west-2d", "0")
    run = sandbox.playbook("prove", *PRICE)
    assert run.returncode != 0
    found = report(sandbox)
    assert [step["name"] for step in found["steps"]] == ["validate", "network", "account", "compute", "teardown"]
    assert [step["ok"] for step in found["steps"]] == [True, True, True, False, True]
    assert "no capacity for 1 x trn1.2xlarge" in found["steps"][3]["why"]
    assert not found["proved"]
    check_nothing_is_left(sandbox)
    sandbox.command("capacity", "--clear")


def test_a_proof_that_was_killed_is_taken_up_and_ends_well(sandbox: Sandbox) -> None:
    sandbox.forget()
    sandbox.kill_playbook_when("prove", lambda: bool(sandbox.instances("running")), *PRICE)
    assert len(sandbox.instances()) == 1
    theirs = sandbox.client("ec2").create_volume(
        AvailabilityZone="us-west-2b",
        Size=8,
        TagSpecifications=[{"ResourceType": "volume", "Tags": [{"Key": "trainium:cluster", "Value": "other"}]}],
    )["VolumeId"]
    run = sandbox.playbook("prove", *PRICE, "-e", json.dumps(OTHER))
    assert run.returncode == 0, sandbox.why(run.output)
    sandbox.client("ec2").delete_volume(VolumeId=theirs)
    check_nothing_is_left(sandbox)
    found = report(sandbox)
    assert found["proved"]
    assert found["left"] == {}
    assert len(sandbox.launches()) == 1
    assert found["endpoint"].startswith("http://127.0.0.1")
    assert found["training"]["steps"] == 10
    assert {run["instance_type"]: run["accepted"] for run in found["dry_runs"]} == {
        "trn1.32xlarge": True,
        "trn1n.32xlarge": True,
        "trn2.48xlarge": False,
    }
    verdicts = Counter(row["verdict"] for row in found["rows"])
    assert verdicts["refuted"] == 0, [row for row in found["rows"] if row["verdict"] == "refuted"]
    assert verdicts["seen"] >= 18, found["rows"]
    assert {"kernel", "Neuron driver", "EFA installer", "torch-neuronx"} <= set(found["versions"])


@pytest.mark.parametrize("secret", ["arn:aws", "123456789012"])
def test_the_report_has_no_account(sandbox: Sandbox, secret: str) -> None:
    page = (sandbox.reports / "prove/report.md").read_text(encoding="utf-8")
    assert "says nothing about AWS" in page
    assert secret not in page
