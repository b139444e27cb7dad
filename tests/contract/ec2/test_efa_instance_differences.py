"""What is asked for and existing nodes do not have: further nodes beside them are refused, the rest is warned of."""

from __future__ import annotations

import json
from typing import Any

import pytest

Account = Any


@pytest.fixture
def nodes(cloud: Account) -> Account:
    """Two nodes in a placement group, with a key pair, a profile and a volume that was asked for."""
    iam = cloud.client("iam")
    for name in ("one", "two"):
        cloud.ec2.create_placement_group(GroupName=name, Strategy="cluster")
        cloud.ec2.create_key_pair(KeyName=name)
        iam.create_instance_profile(InstanceProfileName=name)
    cloud.has = {
        "placement_group": "one",
        "key_name": "one",
        "instance_profile": "one",
        "volumes": [{"size": 512}, {"device_name": "/dev/sdf", "size": 10, "type": "gp3", "iops": 4000}],
    }
    cloud.efa(**cloud.has)
    cloud.api.clear_calls()
    return cloud


def warnings(cloud: Account, **changes: Any) -> str:
    result = cloud.efa(**{**cloud.has, **changes})
    assert not result["changed"]
    return json.dumps(result.get("warnings", []))


def other_group(cloud: Account) -> str:
    made = cloud.ec2.create_security_group(GroupName="other", Description="other", VpcId=cloud.vpc)
    return str(made["GroupId"])


def test_what_is_as_asked_for_is_not_warned_of(nodes: Account) -> None:
    assert warnings(nodes) == "[]"
    arn = nodes.instances()[0]["IamInstanceProfile"]["Arn"]
    # What is not asked for is not compared.
    assert warnings(nodes, instance_profile=arn, key_name=None, volumes=[]) == "[]"


def test_each_difference_is_warned_of(nodes: Account) -> None:
    group = other_group(nodes)
    told = warnings(
        nodes,
        interface_layout="efa-only",
        placement_group="two",
        key_name="two",
        instance_profile="two",
        security_groups=[group],
        volumes=[{"size": 256}, {"device_name": "/dev/sdg", "size": 1}],
    )
    for part in (
        "interface_layout 8 efa instead of 1 interface, 8 efa-only",
        "placement_group one instead of two",
        "key_name one instead of two",
        "instance-profile/one instead of two",
        f"security_groups {nodes.group} instead of {group}",
        "volume of the root device: size=512 type=gp3 instead of size=256 type=gp3",
        "volume /dev/sdg: no volume instead of size=1 type=gp3",
    ):
        assert part in told
    assert nodes.api.writes() == ["CreateSecurityGroup"]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"interface_layout": "efa-only"}, "interface_layout 8 efa"),
        ({"placement_group": None}, "placement_group one instead of none"),
        ({"security_groups": "other"}, "security_groups sg-"),
    ],
)
def test_no_node_is_added_that_would_not_fit(nodes: Account, changes: dict[str, Any], part: str) -> None:
    if "security_groups" in changes:
        changes = {"security_groups": [other_group(nodes)]}
    message = nodes.refused(**{**nodes.has, **changes, "count": 3})
    assert part in message
    assert "new nodes beside them would not fit" in message
    assert nodes.api.calls("RunInstances") == []


def test_other_volumes_and_keys_stop_no_growth(nodes: Account) -> None:
    result = nodes.efa(**{**nodes.has, "count": 3, "key_name": "two", "volumes": [{"size": 256}]})
    assert len(result["launched"]) == 1
    assert "key_name one instead of two" in json.dumps(result["warnings"])
