"""Whoever may tag an instance does not choose what a playbook does: what becomes a host's name is a name."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.hosts import Options, plan_nodes, reduce_instance
from hypothesis import given
from hypothesis import strategies as st


def instance(number: int, name: str, **more: Any) -> dict[str, Any]:
    """A compute node with a name, as EC2 shows it."""
    tags = {"Name": name, "trainium:cluster": "bert", "trainium:role": "compute", **more}
    return {
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "trn1.32xlarge",
        "ImageId": "ami-0a",
        "State": {"Name": "running"},
        "LaunchTime": f"2026-01-01T00:00:{number:02d}+00:00",
        "AmiLaunchIndex": 0,
        "Placement": {"AvailabilityZone": "us-west-2d", "GroupName": ""},
        "SubnetId": "subnet-0a",
        "PrivateDnsName": f"ip-10-77-16-{number}.us-west-2.compute.internal",
        "PrivateIpAddress": f"10.77.16.{number}",
        "NetworkInterfaces": [],
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def names(*values: str, hostnames: tuple[str, ...] = ("tag:Name",)) -> list[str]:
    records = [reduce_instance(instance(number, value), "us-west-2") for number, value in enumerate(values, start=5)]
    return [node.name for node in plan_nodes(records, Options(hostnames=hostnames))]


ID = f"i-{5:017x}"
OTHER = f"i-{6:017x}"


@pytest.mark.parametrize("name", ["node-1", "Node_1", "a.b", "1", "_x", "a" * 255])
def test_a_name_is_taken(name: str) -> None:
    assert names(name) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "{{ lookup('pipe', 'touch /tmp/canary') }}",
        "{% set x = 1 %}",
        "{# x #}",
        "two words",
        "a\nb",
        "a\n",
        "node:1",
        "a/../b",
        "..",
        "-oProxyCommand=id",
        "$(id)",
        "`id`",
        "a;b",
        "a,b",
        "!a",
        "&a",
        "~a",
        "n[1:9]",
        "*",
        "größe",
        "٣",  # a digit, but no ASCII
        "a" * 256,
        "",
        # Plays, patterns and delegate_to mean something else by these.
        "localhost",
        "127.0.0.1",
        "all",
        "ungrouped",
        "head",
        "compute",
        "cluster_bert",
        "type_trn1_32xlarge",
    ],
)
def test_what_is_no_name_makes_way_for_the_instance_id(name: str) -> None:
    assert names(name) == [ID]


def test_what_is_no_name_makes_way_for_the_next_preference() -> None:
    assert names("{{ 1 }}", hostnames=("tag:Name", "private-ip-address")) == ["10.77.16.5"]


def test_nobody_goes_by_the_id_of_another() -> None:
    assert names(OTHER, "b") == [ID, "b"]
    # The second shares its name with the third, so that it needs its id itself.
    assert names(OTHER, "b", "b") == [ID, OTHER, f"i-{7:017x}"]


@given(st.lists(st.text(max_size=30) | st.sampled_from([ID, OTHER, "a", "head", "localhost"]), min_size=1, max_size=6))
def test_every_host_has_a_name_of_its_own(values: list[str]) -> None:
    found = names(*values)
    assert len(set(found)) == len(values)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name, re.ASCII) for name in found)
