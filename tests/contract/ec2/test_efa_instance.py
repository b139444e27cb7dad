"""efa_instance launches, grows, shrinks, stops and removes a set of nodes."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import pytest

Account = Any


def interfaces(instance: dict[str, Any]) -> list[tuple[int, int, str]]:
    """(card, device, kind) of each interface."""
    return sorted(
        (item["Attachment"].get("NetworkCardIndex", 0), item["Attachment"]["DeviceIndex"], item["InterfaceType"])
        for item in instance["NetworkInterfaces"]
    )


def sent(call: dict[str, Any], name: str) -> list[str]:
    """The values of a field of all NetworkInterfaces of a RunInstances call."""
    found = [(key, value) for key, value in call["parameters"].items() if key.startswith("NetworkInterface.")]
    return [value for key, value in sorted(found) if key.endswith(f".{name}")]


def launches(cloud: Account) -> list[dict[str, Any]]:
    """RunInstances calls that were no dry runs."""
    return [call for call in cloud.api.calls("RunInstances") if call["write"]]


def ids(instances: list[dict[str, Any]]) -> set[str]:
    return {item["InstanceId"] for item in instances}


def test_one_call_for_the_whole_set(cloud: Account) -> None:
    result = cloud.efa(count=3)
    assert result["changed"]
    (call,) = launches(cloud)
    assert (call["parameters"]["MinCount"], call["parameters"]["MaxCount"]) == ("3", "3")
    assert sorted(sent(call, "DeviceIndex")) == ["0"] + ["1"] * 7
    assert sorted(sent(call, "NetworkCardIndex")) == [str(card) for card in range(8)]
    nodes = cloud.instances()
    expected = [(0, 0, "efa")] + [(card, 1, "efa") for card in range(1, 8)]
    assert [interfaces(node) for node in nodes] == [expected] * 3
    assert {node["State"]["Name"] for node in nodes} == {"running"}
    assert len({node["Placement"]["AvailabilityZone"] for node in nodes}) == 1
    assert [node["efa_interface_count"] for node in result["instances"]] == [8, 8, 8]
    assert result["instance_ids"] == [node["instance_id"] for node in result["instances"]]


def test_describe_calls_do_not_grow_with_the_set(cloud: Account) -> None:
    cloud.efa(name="small", count=1, wait=False)
    small = collections.Counter(call["action"] for call in cloud.api.calls())
    cloud.api.clear_calls()
    cloud.efa(name="large", count=12, wait=False)
    assert collections.Counter(call["action"] for call in cloud.api.calls()) == small


def test_second_run_changes_nothing_and_writes_nothing(cloud: Account) -> None:
    first = cloud.efa(public_ip="primary", tags={"team": "speech"})
    cloud.api.clear_calls()
    second = cloud.efa(public_ip="primary", tags={"team": "speech"})
    assert not second["changed"]
    assert cloud.api.writes() == []
    assert second["diff"]["before"] == second["diff"]["after"]
    assert second["instance_ids"] == first["instance_ids"]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("efa-only", [(0, 0, "interface")] + [(card, 1, "efa-only") for card in range(8)]),
        ("parallelcluster", [(0, 0, "interface")] + [(card, 1, "efa-only") for card in range(8)]),
        ("none", [(0, 0, "interface")]),
    ],
)
def test_layouts(cloud: Account, layout: str, expected: list[tuple[int, int, str]]) -> None:
    cloud.efa(count=1, interface_layout=layout, wait=False)
    assert interfaces(cloud.instances()[0]) == sorted(expected)


def test_sixteen_cards_of_trn1n(cloud: Account) -> None:
    zone = cloud.offering("trn1n.32xlarge")[0]
    cloud.efa(count=3, instance_type="trn1n.32xlarge", subnets=[cloud.subnet(zone, 9)], wait=False)
    assert len(launches(cloud)) == 1
    assert [len(node["NetworkInterfaces"]) for node in cloud.instances()] == [16, 16, 16]


def test_a_type_without_efa_is_launched_plainly(cloud: Account) -> None:
    cloud.efa(count=1, instance_type="trn1.2xlarge", wait=False)
    (call,) = launches(cloud)
    assert sent(call, "InterfaceType") == ["interface"]
    assert sent(call, "AssociatePublicIpAddress") == ["false"]


def test_what_is_launched(cloud: Account) -> None:
    """Encryption, IMDSv2 and tags without asking, the rest as asked."""
    cloud.ec2.create_placement_group(GroupName="pg", Strategy="cluster")
    cloud.ec2.create_key_pair(KeyName="key")
    cloud.efa(
        count=1,
        cluster_name="c1",
        role="head",
        key_name="key",
        placement_group="pg",
        market="spot",
        user_data="#!/bin/sh\ntrue\n",
        volumes=[{"size": 512}, {"device_name": "/dev/sdf", "size": 10, "type": "gp3", "iops": 4000}],
        tags={"team": "speech"},
        wait=False,
    )
    (call,) = launches(cloud)
    sent_fields = call["parameters"]
    assert sent_fields["MetadataOptions.HttpTokens"] == "required"
    assert sent_fields["InstanceMarketOptions.MarketType"] == "spot"
    assert sent_fields["Placement.GroupName"] == "pg"
    devices = {sent_fields[f"BlockDeviceMapping.{n}.DeviceName"]: n for n in (1, 2)}
    for device, size in (("/dev/sda1", "512"), ("/dev/sdf", "10")):
        assert sent_fields[f"BlockDeviceMapping.{devices[device]}.Ebs.VolumeSize"] == size
        assert sent_fields[f"BlockDeviceMapping.{devices[device]}.Ebs.Encrypted"] == "true"
    tags = {
        "Name": "bert",
        "team": "speech",
        "trainium:cluster": "c1",
        "trainium:role": "head",
        "trainium:set": "bert",
        "trainium:generation": "1",
    }
    node = cloud.instances()[0]
    assert {tag["Key"]: tag["Value"] for tag in node["Tags"]} == tags
    nic = cloud.ec2.describe_network_interfaces()["NetworkInterfaces"][0]
    assert {tag["Key"]: tag["Value"] for tag in nic["TagSet"]} == tags
    assert node["KeyName"] == "key"


def test_the_next_subnet_when_the_first_has_no_room(cloud: Account) -> None:
    cloud.api.capacity("trn1.32xlarge", cloud.zones[0], 1)
    result = cloud.efa()
    assert [(item["subnet_id"], item["outcome"]) for item in result["attempts"]] == [
        (cloud.subnets[0], "InsufficientInstanceCapacity"),
        (cloud.subnets[1], "launched"),
    ]
    assert result["availability_zone"] == cloud.zones[1]
    assert len(cloud.instances()) == 2


def test_a_server_error_for_capacity_is_asked_once_per_subnet(cloud: Account) -> None:
    """EC2 reports missing capacity with status 500, which SDKs repeat by themselves."""
    cloud.api.fault("RunInstances", "InsufficientInstanceCapacity", status=500, times=1)
    cloud.efa(wait=False)
    assert len(cloud.api.calls("RunInstances")) == 2


def test_no_room_anywhere_leaves_nothing(cloud: Account) -> None:
    for zone in cloud.zones:
        cloud.api.capacity("trn1.32xlarge", zone, 1)
    result = cloud.run("efa_instance", cloud.arguments(public_ip="primary"))
    assert result["failed"]
    assert "no capacity for 2 x trn1.32xlarge" in result["msg"]
    for subnet in cloud.subnets:
        assert subnet in result["msg"]
    assert [item["outcome"] for item in result["attempts"]] == ["InsufficientInstanceCapacity"] * 2
    assert cloud.instances() == []
    assert cloud.ec2.describe_addresses()["Addresses"] == []


def test_killed_after_the_launch(cloud: Account) -> None:
    cloud.kill_after("RunInstances", cloud.arguments())
    result = cloud.efa()
    assert len(result["instance_ids"]) == 2
    assert len(cloud.instances()) == 2


def test_a_launch_that_cannot_be_seen_yet_is_not_repeated(cloud: Account) -> None:
    """Nodes without tags stand for those that DescribeInstances does not show yet."""
    first = cloud.efa(wait=False)
    cloud.ec2.delete_tags(Resources=first["instance_ids"], Tags=[{"Key": "trainium:set"}])
    second = cloud.efa(wait=False)
    assert second["launched"] == first["launched"]
    assert len(cloud.instances()) == 2


def test_a_forgotten_launch_whose_nodes_are_gone_is_stepped_over(cloud: Account) -> None:
    first = cloud.efa()
    cloud.ec2.terminate_instances(InstanceIds=first["instance_ids"])
    cloud.ec2.delete_tags(Resources=first["instance_ids"], Tags=[{"Key": "trainium:set"}])
    second = cloud.efa()
    assert [item["outcome"] for item in second["attempts"]] == ["replayed", "launched"]
    assert second["instances"][0]["tags"]["trainium:generation"] == "2"
    assert ids(cloud.instances("running")) == set(second["instance_ids"])


def test_the_generation_follows_the_dead(cloud: Account) -> None:
    first = cloud.efa()
    cloud.ec2.terminate_instances(InstanceIds=first["instance_ids"])
    second = cloud.efa()
    assert [item["outcome"] for item in second["attempts"]] == ["launched"]
    assert {node["tags"]["trainium:generation"] for node in second["instances"]} == {"2"}


def test_raising_the_count_adds_in_the_same_zone(cloud: Account) -> None:
    cloud.api.capacity("trn1.32xlarge", cloud.zones[0], 0)
    first = cloud.efa()
    cloud.api.control("DELETE", "capacity")
    second = cloud.efa(count=5)
    assert set(first["instance_ids"]) < set(second["instance_ids"])
    assert len(second["instance_ids"]) == 5
    assert {node["availability_zone"] for node in second["instances"]} == {cloud.zones[1]}
    assert launches(cloud)[-1]["parameters"]["MinCount"] == "3"


def test_lowering_the_count_removes_the_newest(cloud: Account) -> None:
    first = cloud.efa(count=1)
    cloud.efa(count=3, public_ip="primary")
    result = cloud.efa(count=1, public_ip="primary", allow_shrink=True)
    assert result["instance_ids"] == first["instance_ids"]
    assert ids(cloud.instances("running")) == set(first["instance_ids"])
    assert len(cloud.ec2.describe_addresses()["Addresses"]) == 1


def test_absent_removes_everything_twice(cloud: Account) -> None:
    cloud.efa(public_ip="primary")
    result = cloud.efa(state="absent")
    assert result["changed"]
    assert len(result["terminated"]) == 2
    assert cloud.instances("pending", "running", "stopped") == []
    assert cloud.ec2.describe_addresses()["Addresses"] == []
    assert cloud.ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    cloud.api.clear_calls()
    assert not cloud.efa(state="absent")["changed"]
    assert cloud.api.writes() == []


def test_absent_needs_only_the_name(cloud: Account) -> None:
    cloud.efa(wait=False)
    result = cloud.run("efa_instance", {"name": "bert", "state": "absent"})
    assert result["changed"]


def test_other_sets_are_left_alone(cloud: Account) -> None:
    other = cloud.efa(name="other", cluster_name="c1", wait=False)
    cloud.efa(cluster_name="c1", count=1, wait=False)
    cloud.efa(cluster_name="c1", state="absent")
    assert ids(cloud.instances("pending", "running")) == set(other["instance_ids"])


def test_stopped_and_back(cloud: Account) -> None:
    first = cloud.efa()
    stopped = cloud.efa(state="stopped")
    assert (stopped["changed"], len(cloud.instances("stopped"))) == (True, 2)
    assert not cloud.efa(state="stopped")["changed"]
    started = cloud.efa()
    assert sorted(started["started"]) == sorted(first["instance_ids"])
    assert len(cloud.instances("running")) == 2
    assert len(launches(cloud)) == 1


def test_addresses_are_borrowed_before_any_is_allocated(cloud: Account) -> None:
    tag = [{"ResourceType": "elastic-ip", "Tags": [{"Key": "trainium:cluster", "Value": "bert"}]}]
    mine = cloud.ec2.allocate_address(Domain="vpc", TagSpecifications=tag)["AllocationId"]
    result = cloud.efa(public_ip="primary")
    addresses = cloud.ec2.describe_addresses()["Addresses"]
    assert len(addresses) == 2
    primary = {node["network_interfaces"][0]["network_interface_id"] for node in result["instances"]}
    assert {item["NetworkInterfaceId"] for item in addresses} == primary
    assert all(node["public_ip_address"] for node in result["instances"])
    cloud.efa(state="absent", public_ip="primary")
    assert [item["AllocationId"] for item in cloud.ec2.describe_addresses()["Addresses"]] == [mine]


def test_tags_are_added_and_never_removed(cloud: Account) -> None:
    first = cloud.efa(tags={"team": "speech"}, wait=False)
    cloud.ec2.create_tags(Resources=first["instance_ids"], Tags=[{"Key": "mine", "Value": "kept"}])
    result = cloud.efa(tags={"team": "vision"})
    assert result["changed"]
    for node in result["instances"]:
        assert (node["tags"]["team"], node["tags"]["mine"]) == ("vision", "kept")
    nics = cloud.ec2.describe_network_interfaces(Filters=[{"Name": "tag:team", "Values": ["vision"]}])
    assert len(nics["NetworkInterfaces"]) == 16
    assert not cloud.efa(tags={"team": "vision"})["changed"]


def test_a_launch_that_never_runs_is_taken_back(slow_cloud: Account) -> None:
    message = slow_cloud.refused(wait_timeout=1, public_ip="primary")
    assert "0 of 2 nodes are running after 1 s" in message
    assert "terminated again" in message
    assert slow_cloud.instances("pending", "running") == []
    assert slow_cloud.ec2.describe_addresses()["Addresses"] == []


def test_progress_is_written_where_the_environment_says(slow_cloud: Account, tmp_path: Path) -> None:
    file = tmp_path / "progress"
    slow_cloud.environment = {"TRAINIUM_PROGRESS_FILE": str(file)}
    slow_cloud.refused(wait_timeout=1)
    (line,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (line["what"], line["done"], line["total"], len(line["missing"])) == ("running", 0, 2, 2)


def test_capacity_block_and_reservation(cloud: Account) -> None:
    """The reservation's zone decides, whatever the order of the subnets."""
    reservation = cloud.ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=cloud.zones[1],
        InstanceCount=2,
    )["CapacityReservation"]["CapacityReservationId"]
    result = cloud.efa(market="capacity-block", capacity_reservation={"id": reservation}, wait=False)
    assert [item["availability_zone"] for item in result["attempts"]] == [cloud.zones[1]]
    (call,) = launches(cloud)
    fields = call["parameters"]
    target = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"
    assert (fields["InstanceMarketOptions.MarketType"], fields[target]) == ("capacity-block", reservation)


def test_a_reservation_inside_a_placement_group_keeps_the_group(cloud: Account) -> None:
    for name in ("reserved", "another"):
        cloud.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    arn = cloud.ec2.describe_placement_groups(GroupNames=["reserved"])["PlacementGroups"][0]["GroupArn"]
    reservation = cloud.ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=cloud.zones[0],
        InstanceCount=3,
        PlacementGroupArn=arn,
    )["CapacityReservation"]["CapacityReservationId"]
    target = {"capacity_reservation": {"id": reservation}}
    result = cloud.efa(**target)
    assert {node["placement_group"] for node in result["instances"]} == {"reserved"}
    grown = cloud.efa(**target, count=3)
    assert (len(grown["launched"]), {node["placement_group"] for node in grown["instances"]}) == (1, {"reserved"})
    assert not cloud.efa(**target, count=3)["changed"]
    sentence = f"capacity reservation {reservation} lies in the placement group reserved, not in another"
    assert sentence in cloud.refused(**target, placement_group="another")


def test_info(cloud: Account) -> None:
    launched = cloud.efa(cluster_name="c1")
    cloud.efa(name="other", cluster_name="c1", count=1, role="head")
    everything = cloud.run("efa_instance_info", {"cluster_name": "c1"})
    assert (everything["states"], everything["changed"]) == ({"running": 3}, False)
    one = cloud.run("efa_instance_info", {"cluster_name": "c1", "name": "bert"})
    assert one["instances"] == launched["instances"]
    assert (
        cloud.run("efa_instance_info", {"cluster_name": "c1", "role": "head"})["instances"][0]["tags"]["Name"]
        == "other"
    )
    assert cloud.run("efa_instance_info", {"cluster_name": "c1", "states": ["stopped"]})["instances"] == []
