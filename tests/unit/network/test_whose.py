"""Whose what was found is: owners, backends, strangers, key pairs."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import owner_of
from ansible_collections.trainium.cluster.plugins.module_utils._network import checks
from ansible_collections.trainium.cluster.plugins.module_utils._network.plan import Found

Item = dict[str, Any]
ROLE = "arn:aws:sts::123456789012:assumed-role"


def item(**tags: str) -> Item:
    return {"Tags": [{"Key": key.replace("_", ":"), "Value": value} for key, value in tags.items()]}


@pytest.mark.parametrize(
    ("arn", "owner"),
    [
        ("arn:aws:iam::123456789012:user/ada", "arn:aws:iam::123456789012:user/ada"),
        (f"{ROLE}/ml/i-1", f"{ROLE}/ml"),
        # The Identity Center's name of a session is the user's.
        (f"{ROLE}/AWSReservedSSO_ml_0/ada", f"{ROLE}/AWSReservedSSO_ml_0/ada"),
        ("somebody", "somebody"),
    ],
)
def test_a_session_is_its_role(arn: str, owner: str) -> None:
    assert owner_of(arn) == owner


def test_owners_are_told_once_without_their_sessions() -> None:
    found = [item(trainium_owner=f"{ROLE}/ml/one"), item(trainium_owner=f"{ROLE}/ml/two"), item(), {}]
    assert checks.owners_of([*found, item(trainium_owner="bob")]) == [f"{ROLE}/ml", "bob"]
    # A tag without a value is somebody's all the same.
    assert checks.owners_of([item(trainium_owner="")]) == [""]


def test_instances_are_counted_by_their_backend() -> None:
    found = [{"Tags": [{"Key": "eks:cluster-name", "Value": "x"}]}, item(), item(trainium_role="head")]
    found.append({"Tags": [{"Key": "parallelcluster:cluster-name", "Value": "x"}]})
    assert checks.backends_of(found) == {"eks": 1, "ec2": 2, "pcluster": 1}
    assert checks.backends_of([]) == {}


def test_a_stranger_is_what_takes_a_place_and_has_no_tag() -> None:
    ours, cidr = item(trainium_cluster="bert"), "10.77.0.0/20"
    subnet = {"SubnetId": "subnet-1", "CidrBlock": cidr}
    group, gateway = {"GroupId": "sg-1", "GroupName": "bert-efa"}, {"InternetGatewayId": "igw-1"}
    found = Found(vpc={"VpcId": "vpc-1"}, subnets=[subnet], security_groups=[group], internet_gateways=[gateway])
    said = checks.strangers(found, "bert", [cidr], ["bert-efa"])
    assert said.startswith(f"subnet-1 ({cidr}), sg-1 (bert-efa), igw-1 (its internet gateway) is in vpc-1, the VPC of")
    assert said.endswith(".")
    assert checks.strangers(found, "bert", [], []).startswith("igw-1 (its internet gateway) is in vpc-1")
    mine = Found(vpc={"VpcId": "vpc-1"}, subnets=[{**subnet, **ours}], internet_gateways=[{**gateway, **ours}])
    assert checks.strangers(mine, "bert", [cidr], []) == ""
    assert checks.strangers(Found(subnets=[subnet]), "bert", [cidr], []) == ""


def test_a_key_is_right_by_its_text_and_not_by_its_comment() -> None:
    pair = {**item(trainium_cluster="bert"), "PublicKey": "ssh-ed25519 AAAA somebody"}
    assert checks.key_state([pair], "ssh-ed25519 AAAA me\n", "bert") == {"exists": True, "ours": True, "right": True}
    assert checks.key_state([pair], "ssh-ed25519 BBBB me", "ann") == {"exists": True, "ours": False, "right": False}
    assert checks.key_state([], "ssh-ed25519 AAAA", "bert") == {"exists": False, "ours": False, "right": False}
