"""eks_nodegroup makes a group in one zone that has room, changes it, replaces nodes when told to, and deletes it."""

from __future__ import annotations

import pytest

from tests.contract.eks.conftest import Eks, Result


@pytest.fixture
def template(eks: Eks) -> dict[str, str]:
    """Of a cluster that is there."""
    eks.cluster(security_groups=[eks.cloud.group])
    made = eks.template()
    eks.cloud.api.clear_calls()
    return made


def test_made_once_with_every_interface(eks: Eks, template: dict[str, str]) -> None:
    api = eks.cloud.api
    promised = eks.group(check=True, launch_template=template)
    assert promised["changed"] and api.writes() == []
    labels, taints = {"team": "speech"}, [{"key": "neuron", "effect": "NO_SCHEDULE"}]
    asked: Result = {"launch_template": template, "labels": labels, "taints": taints}
    first = eks.group(**asked)
    assert first["changed"] and first["nodegroup"]["status"] == "ACTIVE", first
    assert first["nodegroup"]["subnets"] == eks.cloud.subnets[:1]
    nodes = eks.cloud.instances("running")
    assert [len(node["NetworkInterfaces"]) for node in nodes] == [8, 8]
    assert {tag["Key"]: tag["Value"] for tag in nodes[0]["Tags"]}["trainium:cluster"] == "bert"
    api.clear_calls()
    again = eks.group(**asked)
    assert not again["changed"] and api.writes() == [] and again["diff"]["before"] == again["diff"]["after"]
    assert not eks.group(check=True, **asked)["changed"]


def test_a_group_of_another_type_beside_it_on_spot(eks: Eks, template: dict[str, str]) -> None:
    eks.group(launch_template=template, count=1)
    own = eks.template(name="bert-wide", instance_type="trn1n.32xlarge")
    made = eks.group(name="wide", launch_template=own, count=1, capacity_type="SPOT")
    assert made.get("changed"), made
    there = eks.client.describe_nodegroup(clusterName="bert", nodegroupName="wide")["nodegroup"]
    assert there["capacityType"] == "SPOT"
    (node,) = [one for one in eks.cloud.instances("running") if one["InstanceType"] == "trn1n.32xlarge"]
    cards = [one["Attachment"]["NetworkCardIndex"] for one in node["NetworkInterfaces"]]
    assert (sorted(cards), node["InstanceLifecycle"]) == (list(range(16)), "spot")
    assert sorted(eks.client.list_nodegroups(clusterName="bert")["nodegroups"]) == ["trn", "wide"]


def test_the_next_zone_is_tried_and_what_failed_is_gone(eks: Eks, template: dict[str, str]) -> None:
    zones = eks.cloud.zones
    eks.cloud.api.capacity("trn1.32xlarge", zones[0], 1)
    made = eks.group(launch_template=template)
    if len(zones) > 1:
        assert [one["outcome"] for one in made["attempts"]] == ["CREATE_FAILED", "made"]
        assert {node["Placement"]["AvailabilityZone"] for node in eks.cloud.instances("running")} == {zones[1]}
        eks.group(state="absent")
        for zone in zones[1:]:
            eks.cloud.api.capacity("trn1.32xlarge", zone, 0)
        made = eks.group(launch_template=template)
    assert "could not be made in" in made["msg"] and "InsufficientInstanceCapacity" in made["msg"]
    assert len(made["attempts"]) == len(zones)
    assert eks.client.list_nodegroups(clusterName="bert")["nodegroups"] == []
    assert eks.cloud.instances("pending", "running") == []


def test_a_group_that_is_late_does_not_go_on_launching(eks: Eks, template: dict[str, str]) -> None:
    late = eks.group(launch_template=template, wait_timeout=0)
    assert late["attempts"][0]["outcome"] == "CREATING", late
    assert "was deleted again" in late["msg"] and "wait_timeout" in late["msg"], late["msg"]
    assert eks.client.list_nodegroups(clusterName="bert")["nodegroups"] == []
    assert eks.cloud.instances("pending", "running") == []


def test_changed_and_replaced_only_when_told_to(eks: Eks, template: dict[str, str]) -> None:
    eks.group(launch_template=template)
    nodes = {node["InstanceId"] for node in eks.cloud.instances("running")}
    newer = eks.template(tags={"team": "speech"})
    assert newer["version"] == "2"
    warned = eks.group(launch_template=newer, count=3, labels={"a": "b"})
    assert warned["changed"] and warned["outdated"] and "would replace every one of them" in str(warned["warnings"])
    assert warned["nodegroup"]["count"] == 3 and warned["nodegroup"]["labels"] == {"a": "b"}
    assert nodes < {node["InstanceId"] for node in eks.cloud.instances("pending", "running")}
    assert "which would terminate nodes" in eks.group(launch_template=template, count=2)["msg"]
    assert eks.group(launch_template=template, count=2, allow_shrink=True)["changed"]
    # There is no room for one more.
    gone = [node["InstanceId"] for node in eks.cloud.instances("shutting-down", "terminated")]
    eks.cloud.ec2.get_waiter("instance_terminated").wait(InstanceIds=gone, WaiterConfig={"Delay": 0.1})
    eks.cloud.api.capacity("trn1.32xlarge", eks.cloud.zones[0], 0)
    replaced = eks.group(launch_template=newer, replace_nodes=True, release_version="1.34.7-20260505")
    assert replaced["changed"] and not replaced["outdated"]
    assert replaced["nodegroup"]["release_version"] == "1.34.7-20260505"
    assert not nodes & {node["InstanceId"] for node in eks.cloud.instances("pending", "running")}
    older = replaced["nodegroup"]["release_version"]
    third = eks.template(tags={"team": "vision"})
    replaced = eks.group(launch_template=third, replace_nodes=True, release_version=None)
    assert replaced["changed"] and replaced["nodegroup"]["release_version"] == older
    assert "which EKS cannot change" in eks.group(launch_template=newer, ami_type="AL2023_x86_64_STANDARD")["msg"]


def test_a_group_without_nodes_gets_its_release_before_its_nodes(eks: Eks, template: dict[str, str]) -> None:
    """A Capacity Block's takes the other order for an error, and nodes of others would be launched twice."""
    eks.group(launch_template=template, count=0, release_version="1.34.7-20260505")
    eks.cloud.api.clear_calls()
    changed = eks.group(launch_template=template, replace_nodes=True, wait=False)
    assert changed["changed"], changed
    updates = [call.rpartition("/")[2] for call in eks.cloud.api.writes()]
    assert updates == ["update-version", "update-config"]


def test_a_reservation_decides_on_the_zone_and_a_group_that_cannot_join_is_deleted(eks: Eks) -> None:
    eks.cluster()
    zone = eks.cloud.zones[-1]
    arguments = {"name": "pool", "cluster_name": "bert", "instance_type": "trn1.32xlarge", "count": 2}
    reserved = eks.cloud.run("capacity_reservation", {**arguments, "availability_zone": zone})
    template = eks.template(capacity_reservation={"id": reserved["capacity_reservation_id"]})
    # The group's security groups are none of the cluster's: its nodes do not reach the control plane.
    failed = eks.group(launch_template=template)
    assert "NodeCreationFailure: Instances failed to join the kubernetes cluster" in failed["msg"]
    (attempt,) = failed["attempts"]
    assert attempt["subnets"] == [eks.cloud.subnets[-1]]
    assert eks.client.list_nodegroups(clusterName="bert")["nodegroups"] == []
    block = eks.group(launch_template=template, capacity_type="CAPACITY_BLOCK")
    assert "needs the market type capacity-block" in block["msg"]
