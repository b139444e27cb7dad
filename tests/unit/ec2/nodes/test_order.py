"""The order of nodes: what a stop and a start, which give a node a new LaunchTime, must not change."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._ec2.hosts import Options, plan_nodes, reduce_instance
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import in_order, node_of
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.plan import plan_fleet
from hypothesis import given
from hypothesis import strategies as st

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
# (generation, index in the launch, hours until the interface was attached, hours until the last start); one generation
# is one launch, so that no two have the same place in it.
members = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)),
    max_size=8,
    unique_by=lambda item: item[:2],
)


def instance(number: int, generation: int | None, index: int, attached: int, started: int) -> dict[str, Any]:
    tags = {"trainium:cluster": "bert", "trainium:role": "compute"}
    if generation is not None:
        tags["trainium:generation"] = str(generation)
    attachment = {"NetworkCardIndex": 0, "DeviceIndex": 0, "AttachTime": START + timedelta(hours=attached)}
    return {
        "InstanceId": f"i-{number:017x}",
        "State": {"Name": "running"},
        "PrivateIpAddress": f"192.0.2.{number}",
        "PrivateDnsName": f"ip-192-0-2-{number}.us-west-2.compute.internal",
        "LaunchTime": START + timedelta(hours=started),
        "AmiLaunchIndex": index,
        "NetworkInterfaces": [{"NetworkInterfaceId": f"eni-{number}", "Attachment": attachment}],
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def ids(instances: list[dict[str, Any]]) -> list[str]:
    return [node["instance_id"] for node in in_order(node_of(item) for item in instances)]


@given(members, st.randoms(use_true_random=False))
def test_the_launch_decides_and_no_later_start(found: list[Any], shuffler: random.Random) -> None:
    instances = [instance(number, *item) for number, item in enumerate(found)]
    expected = [f"i-{number:017x}" for number, _item in sorted(enumerate(found), key=lambda pair: pair[1][:2])]
    shuffler.shuffle(instances)
    assert ids(instances) == expected
    nodes = plan_nodes([reduce_instance(item, "us-west-2") for item in instances], Options())
    assert [node.variables["instance_id"] for node in nodes] == expected
    assert [node.variables["node_rank"] for node in nodes] == list(range(len(expected)))
    assert [node.variables["instance_id"] for node in nodes if "head" in node.groups] == expected[:1]
    plan = plan_fleet([node_of(item) for item in instances], "present", 2)
    assert [node["instance_id"] for node in plan.terminate] == expected[2:]


def test_without_a_generation_the_attachment_decides() -> None:
    """Such as ParallelCluster's nodes, and those of before the tag was there."""
    found = [
        instance(1, None, 0, 2, 0),
        instance(2, None, 1, 1, 9),
        instance(3, None, 0, 1, 9),
        instance(4, 1, 0, 0, 0),
    ]
    assert ids(found) == [f"i-{number:017x}" for number in (3, 2, 1, 4)]


def test_before_ec2_shows_an_interface_the_launch_time_serves() -> None:
    new = {**instance(1, None, 0, 0, 5), "NetworkInterfaces": []}
    assert ids([new, instance(2, None, 0, 4, 4)]) == [f"i-{number:017x}" for number in (2, 1)]
