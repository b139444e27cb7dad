"""A policy that is bound to one cluster allows nothing with another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.emulator.access.statements import allowed

ROOT = Path(__file__).resolve().parents[3]
EC2, IAM = "arn:aws:ec2:us-west-2:123456789012:", "arn:aws:iam::123456789012:"
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
    ("capacity", "ec2:CancelCapacityReservation", f"{EC2}capacity-reservation/cr-1", True),
    ("eks", "eks:CreateCluster", "*", False),
]


def bound(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs/tools/bind_policy.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
        ("sessions", "iam:DeleteRole", *(f"{IAM}role/trainium/us-west-2/{one}/a" for one in ("bert", "bert-2"))),
    ],
)
def test_paths_are_those_of_the_cluster(name: str, action: str, mine: str, theirs: str) -> None:
    for arn, may in ((mine, True), (theirs, False)):
        assert allowed(statements(name), {"action": action, "resources": [(arn, {})], "context": {}}) == may


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
