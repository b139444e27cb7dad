"""A policy that is bound to one cluster allows nothing with another."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.emulator.access.statements import allowed

ROOT = Path(__file__).resolve().parents[3]
EC2, IAM = "arn:aws:ec2:us-west-2:123456789012:", "arn:aws:iam::123456789012:"
ECR = "arn:aws:ecr:us-west-2:123456789012:repository/"
CASES = [
    ("nodes", "ec2:TerminateInstances", f"{EC2}instance/i-1", True),
    ("nodes", "ec2:GetConsoleOutput", f"{EC2}instance/i-1", True),
    ("nodes", "ec2:RunInstances", f"{EC2}instance/new", False),
    ("network", "ec2:DeleteKeyPair", f"{EC2}key-pair/a", True),
    ("network", "ec2:CreateVpc", f"{EC2}vpc/new", False),
    ("network", "ec2:CreateSubnet", f"{EC2}vpc/vpc-1", True),
    ("teardown", "ec2:DeleteVolume", f"{EC2}volume/vol-1", True),
    ("teardown", "eks:DeleteCluster", "arn:aws:eks:us-west-2:123456789012:cluster/a", True),
    ("sessions", "ssm:StartSession", f"{EC2}instance/i-1", True),
    ("fsx", "fsx:DeleteFileSystem", "arn:aws:fsx:us-west-2:123456789012:file-system/fs-1", True),
    ("efs", "elasticfilesystem:DeleteFileSystem", "arn:aws:elasticfilesystem:us-west-2:1:file-system/fs-1", True),
    ("efs", "elasticfilesystem:CreateMountTarget", "arn:aws:elasticfilesystem:us-west-2:1:file-system/fs-1", True),
    ("capacity", "ec2:CancelCapacityReservation", f"{EC2}capacity-reservation/cr-1", True),
    ("eks", "eks:CreateCluster", "*", False),
    ("ecr", "ecr:CreateRepository", f"{ECR}trainium/bert/training", False),
    ("ecr", "ecr:PutImage", f"{ECR}trainium/bert/training", True),
    ("teardown", "ecr:DeleteRepository", f"{ECR}trainium/bert/training", True),
]
BY_TEMPLATE = {"ec2:LaunchTemplate": [f"{EC2}launch-template/lt-1"]}
# What a launch may make, and what another call of EC2 may.
MADE = ("instance", "network-interface", "spot-instances-request", "volume", "vpc", "security-group", "launch-template")
LENT = ("capacity-reservation", "key-pair", "launch-template", "placement-group", "security-group", "subnet")


def bound(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs/tools/bind_policy.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@functools.cache
def statements(name: str) -> list[dict[str, Any]]:
    done = bound("bert", name)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["Statement"]
    return found


@pytest.mark.parametrize(("name", "action", "arn", "there"), CASES)
def test_it_is_for_one_cluster(name: str, action: str, arn: str, there: bool) -> None:
    for cluster, may in (("bert", True), ("bert-2", False), ("", False)):
        tags = {"trainium:cluster": cluster} if cluster else {}
        given = {f"aws:RequestTag/{key}": [value] for key, value in tags.items()}
        need = {"action": action, "resources": [(arn, tags if there else {})], "context": {} if there else given}
        assert allowed(statements(name), need) == may


@pytest.mark.parametrize(
    ("name", "action", "mine", "theirs"),
    [
        (
            *("network", "ssm:PutParameter"),
            *(f"arn:aws:ssm:us-west-2:123456789012:parameter/trainium/{one}/lease" for one in ("bert", "bert-2")),
        ),
        ("ecr", "ecr:DescribeImages", *(f"{ECR}trainium/{one}/training" for one in ("bert", "bert-2"))),
        ("sessions", "iam:DeleteRole", *(f"{IAM}role/trainium/us-west-2/{one}/a" for one in ("bert", "bert-2"))),
    ],
)
def test_paths_are_those_of_the_cluster(name: str, action: str, mine: str, theirs: str) -> None:
    for arn, may in ((mine, True), (theirs, False)):
        assert allowed(statements(name), {"action": action, "resources": [(arn, {})], "context": {}}) == may


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "docs" / "iam").glob("*.json")))
def test_nobody_tags_or_launches_for_another_cluster(name: str) -> None:
    """Neither what is made nor what is there, whatever its tags are; ParallelCluster's policy binds nothing."""
    theirs = {"aws:RequestTag/trainium:cluster": ["bert-2"]}
    more = {"ec2:CreateAction": ["RunInstances"], "ec2:Encrypted": ["true"], **BY_TEMPLATE, **theirs}
    mine = {**more, "aws:RequestTag/trainium:cluster": ["bert"]}
    may = {
        (action, kind, str(given), tags.get("trainium:cluster"))
        for action in ("ec2:RunInstances", "ec2:CreateTags")
        for kind in MADE
        for given in (more, {key: value for key, value in more.items() if key != "ec2:CreateAction"})
        for tags in ({}, {"trainium:cluster": "bert"}, {"trainium:cluster": "bert-2"})
        if allowed(statements(name), {"action": action, "resources": [(f"{EC2}{kind}/a", tags)], "context": given})
    }
    # A group that carries no tag may be lent, or is one's own; a tag in a request says nothing of what is there.
    lent = {one for one in may if one[0] == "ec2:RunInstances" and one[1] in LENT and one[3] != "bert-2"}
    assert may - lent == set() or name == "parallelcluster"
    for kind in MADE[:4] if name in ("nodes", "eks") else ():
        need: dict[str, Any] = {"action": "ec2:RunInstances", "resources": [(f"{EC2}{kind}/new", {})], "context": mine}
        assert allowed(statements(name), need)
        assert not allowed(statements(name), {**need, "context": BY_TEMPLATE})


@pytest.mark.parametrize("name", ["nodes", "eks"])
@pytest.mark.parametrize("kind", LENT)
def test_what_is_another_cluster_s_is_launched_into_by_nobody_else(name: str, kind: str) -> None:
    # Nodes of role efa_nodes have no launch template.
    ours = (name, kind) != ("nodes", "launch-template")
    for tag, may in (("bert", ours), ("", ours), ("bert-2", False)):
        there = [(f"{EC2}{kind}/a", {"trainium:cluster": tag} if tag else {})]
        need = {"action": "ec2:RunInstances", "resources": there, "context": BY_TEMPLATE}
        assert allowed(statements(name), need) == may


def test_interfaces_of_pods_are_those_of_the_cluster() -> None:
    for cluster, may in (("bert", True), ("bert-2", False)):
        there = [(f"{EC2}network-interface/eni-1", {"cluster.k8s.amazonaws.com/name": cluster})]
        need = {"action": "ec2:DeleteNetworkInterface", "resources": there, "context": {}}
        assert allowed(statements("teardown"), need) == may


@pytest.mark.parametrize(
    ("action", "arn"),
    [
        ("ec2:DeleteSecurityGroup", f"{EC2}security-group/sg-1"),
        ("elasticloadbalancing:DeleteLoadBalancer", "arn:aws:elasticloadbalancing:us-west-2:1:loadbalancer/a1"),
        ("elasticloadbalancing:DeleteTargetGroup", "arn:aws:elasticloadbalancing:us-west-2:1:targetgroup/a/1"),
    ],
)
def test_what_kubernetes_made_is_that_of_the_cluster(action: str, arn: str) -> None:
    for tags, may in (
        ({"kubernetes.io/cluster/bert": "owned"}, True),
        ({"kubernetes.io/cluster/bert": "shared"}, False),
        ({"kubernetes.io/cluster/bert-2": "owned"}, False),
        ({"elbv2.k8s.aws/cluster": "bert"}, True),
        ({"elbv2.k8s.aws/cluster": "bert-2"}, False),
        ({}, False),
    ):
        need = {"action": action, "resources": [(arn, tags)], "context": {}}
        assert allowed(statements("teardown"), need) == may


def test_it_names_what_changes_something_and_is_not_bound() -> None:
    said = bound("bert", "network", "nodes", "teardown", "eks", "ecr").stderr
    assert "in network.json" not in said
    assert "in teardown.json: GiveItsKeysBack;" in said
    assert "in ecr.json: EncryptWithAKey;" in said
    assert (
        "Not bound to bert in nodes.json: LaunchFrom, LetEc2MakeItsSpotRole, EncryptWithAKey, LendItToVolumes; "
        "see docs/security.md.\n" in said
    )
    assert "in eks.json: LaunchByATemplate, LetEksMakeItsRoles, KeepTheLogsOfItsControlPlane;" in said


def test_no_tag_is_left_open() -> None:
    """What has no condition on the tag is the same as before."""
    for path in sorted((ROOT / "docs" / "iam").glob("*.json")):
        for before, after in zip(json.loads(path.read_text(encoding="utf-8"))["Statement"], statements(path.stem)):
            left = after.get("Condition", {}).get("Null", {})
            assert not [key for key, value in left.items() if key.endswith("/trainium:cluster") and value == "false"]
            assert {**before, "Resource": 0, "Condition": 0} == {**after, "Resource": 0, "Condition": 0}


@pytest.mark.parametrize("words", [(), ("bert",), ("bert", "nothing"), ("be*t", "nodes")])
def test_what_it_cannot_do_it_says(words: tuple[str, ...]) -> None:
    done = bound(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Give the name of a cluster and one or several of capacity,")
