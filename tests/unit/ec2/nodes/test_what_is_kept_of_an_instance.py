"""An instance of EC2's, whole and with what EC2 leaves out, and its place among others."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import (
    DEAD_STATES,
    EFA_KINDS,
    LIVE_STATES,
    Place,
    generation_of,
    in_order,
    kinds_text,
    node_of,
    parallelcluster_of,
    place_of,
    primary_interface,
    resources_of,
    summary,
)

MOMENT = datetime(2026, 11, 27, 6, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
TEXT = "2026-11-27T04:00:00.123+00:00"


def interface(number: int, card: int, device: int, kind: str | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "NetworkInterfaceId": f"eni-{number}",
        "Attachment": {"NetworkCardIndex": card, "DeviceIndex": device, "AttachTime": MOMENT},
        "PrivateIpAddress": f"10.0.0.{number}",
        "SubnetId": "subnet-1",
    }
    return {**made, "InterfaceType": kind} if kind else made


WHOLE: dict[str, Any] = {
    "InstanceId": "i-1",
    "InstanceType": "trn1.32xlarge",
    "ImageId": "ami-1",
    "State": {"Name": "running"},
    "StateReason": {"Code": "Client.UserInitiatedShutdown", "Message": "it was asked"},
    "PrivateIpAddress": "10.0.0.1",
    "PrivateDnsName": "ip-10-0-0-1",
    "PublicIpAddress": "192.0.2.1",
    "VpcId": "vpc-1",
    "SubnetId": "subnet-1",
    "Placement": {"AvailabilityZone": "us-west-2a", "GroupName": "group"},
    "KeyName": "key",
    "IamInstanceProfile": {"Arn": "arn:profile"},
    "SecurityGroups": [{"GroupId": "sg-2"}, {"GroupId": "sg-1"}],
    "RootDeviceName": "/dev/sda1",
    "LaunchTime": MOMENT,
    "AmiLaunchIndex": 3,
    # Not in the order of the cards.
    "NetworkInterfaces": [interface(2, 1, 1, "efa-only"), interface(3, 1, 0, "efa"), interface(1, 0, 0)],
    "BlockDeviceMappings": [{"Ebs": {"VolumeId": "vol-1"}}, {"Ebs": {}}, {}],
    "CapacityReservationId": "cr-1",
    "Tags": [{"Key": "trainium:generation", "Value": "4"}],
}


def test_a_whole_one() -> None:
    node = node_of(WHOLE)
    interfaces = node.pop("network_interfaces")
    assert node == {
        "instance_id": "i-1",
        "instance_type": "trn1.32xlarge",
        "image_id": "ami-1",
        "state": "running",
        "state_reason": "it was asked",
        "state_reason_code": "Client.UserInitiatedShutdown",
        "private_ip_address": "10.0.0.1",
        "private_dns_name": "ip-10-0-0-1",
        "public_ip_address": "192.0.2.1",
        "vpc_id": "vpc-1",
        "subnet_id": "subnet-1",
        "availability_zone": "us-west-2a",
        "placement_group": "group",
        "key_name": "key",
        "instance_profile": "arn:profile",
        "security_groups": ["sg-1", "sg-2"],
        "root_device_name": "/dev/sda1",
        "launch_time": TEXT,
        "attach_time": TEXT,
        "ami_launch_index": 3,
        "efa_interface_count": 2,
        "volumes": ["vol-1"],
        "capacity_reservation_id": "cr-1",
        "tags": {"trainium:generation": "4"},
    }
    assert [(one["network_interface_id"], one["network_card_index"], one["device_index"]) for one in interfaces] == [
        *(("eni-1", 0, 0), ("eni-3", 1, 0), ("eni-2", 1, 1)),
    ]
    assert interfaces[0] == {
        "network_interface_id": "eni-1",
        "network_card_index": 0,
        "device_index": 0,
        "interface_type": "interface",
        "private_ip_address": "10.0.0.1",
        "subnet_id": "subnet-1",
    }
    assert [one["interface_type"] for one in interfaces] == ["interface", "efa", "efa-only"]


def test_what_ec2_leaves_out_is_empty() -> None:
    node = node_of({"InstanceId": "i-1", "NetworkInterfaces": [{}]})
    lists = {"security_groups", "network_interfaces", "volumes"}
    numbers = {"ami_launch_index", "efa_interface_count"}
    assert [one["interface_type"] for one in node["network_interfaces"]] == ["interface"]
    assert node["security_groups"] == node["volumes"] == []
    assert (node["ami_launch_index"], node["efa_interface_count"], node["tags"]) == (0, 0, {})
    assert {value for key, value in node.items() if key not in {*lists, *numbers, "tags", "instance_id"}} == {""}


def test_only_the_primary_interface_tells_when_it_came() -> None:
    late = {**interface(1, 0, 0), "Attachment": {"NetworkCardIndex": 0, "DeviceIndex": 0, "AttachTime": "later"}}
    others = [interface(2, 0, 1), interface(3, 1, 0)]
    assert node_of({"InstanceId": "i", "NetworkInterfaces": [*others, late]})["attach_time"] == "later"
    assert node_of({"InstanceId": "i", "NetworkInterfaces": others})["attach_time"] == ""
    assert primary_interface(node_of({"InstanceId": "i", "NetworkInterfaces": others})) == ""
    assert primary_interface(node_of(WHOLE)) == "eni-1"


def test_all_that_carries_the_tags_of_a_set() -> None:
    assert resources_of([node_of(WHOLE)]) == ["i-1", "vol-1", "eni-1", "eni-3", "eni-2"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-27T04:00:00.123Z", TEXT),
        ("2026-11-27T04:00:00.123456Z", TEXT),
        ("2026-11-27T04:00:00Z", "2026-11-27T04:00:00.000+00:00"),
        ("2026-11-27T04:00:00.1Z", "2026-11-27T04:00:00.100+00:00"),
        (TEXT, TEXT),
        ("later", "later"),
        (None, ""),
    ],
)
def test_a_moment_as_text_is_as_one_that_was_parsed(text: str | None, moment: str) -> None:
    assert node_of({"InstanceId": "i-1", "LaunchTime": text})["launch_time"] == moment


@pytest.mark.parametrize(("text", "number"), [("4", 4), ("", 0), ("x", 0), ("-1", 0), ("²", 0), ("٣", 0)])
def test_the_generation_is_a_number(text: str, number: int) -> None:
    assert generation_of({"tags": {"trainium:generation": text}}) == number
    assert generation_of({"tags": {}}) == 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("2/1/2026-11-27T04:00:00.123+00:00", Place(2, 1, "2026-11-27T04:00:00.123+00:00")),
        ("2/1/", Place(2, 1, "")),
        *((text, None) for text in ("", "2/1", "x/1/", "2/1/;", "1234567890/1/", "2/1/" + "1" * 41)),
    ],
)
def test_a_place_is_read_or_is_none(text: str, place: Place | None) -> None:
    assert Place.read(text) == place
    assert place is None or str(place) == text


def at(name: str, generation: int, within: int, attached: str, **tags: str) -> dict[str, Any]:
    return {
        "instance_id": name,
        "ami_launch_index": within,
        "attach_time": attached,
        "launch_time": "9",
        "tags": {"trainium:generation": str(generation), **{f"trainium:{key}": value for key, value in tags.items()}},
    }


def test_launches_come_in_order_and_a_replacement_where_its_node_was() -> None:
    nodes = [at("d", 2, 0, "1"), at("c", 1, 1, "3"), at("b", 1, 0, "4"), at("a", 3, 0, "5", place="1/2/3")]
    assert [node["instance_id"] for node in in_order(nodes)] == ["b", "c", "a", "d"]
    # Without a generation the attachment tells the launches apart; of the same moment the index, then the id.
    nodes = [at("d", 0, 0, "2"), at("c", 0, 1, "1"), at("b", 0, 0, "1"), at("a", 0, 0, "1")]
    assert [node["instance_id"] for node in in_order(nodes)] == ["a", "b", "c", "d"]
    # Before EC2 shows the interface, the launch.
    assert place_of(at("a", 1, 2, "")) == Place(1, 2, "9")


def test_what_diff_mode_shows_of_a_set() -> None:
    gone = {**node_of(WHOLE), "instance_id": "i-2", "state": "terminated"}
    assert summary([gone, node_of(WHOLE)]) == {
        "count": 1,
        "instances": {
            "i-1": {
                "state": "running",
                "instance_type": "trn1.32xlarge",
                "image_id": "ami-1",
                "availability_zone": "us-west-2a",
                "subnet_id": "subnet-1",
                "placement_group": "group",
                "interfaces": "1 interface, 1 efa, 1 efa-only",
                "public_ip_address": "192.0.2.1",
                "tags": {"trainium:generation": "4"},
            }
        },
    }
    assert kinds_text(["efa"] * 8) == "8 efa"


def test_states_and_kinds_are_those_of_ec2() -> None:
    assert sorted((*LIVE_STATES, *DEAD_STATES)) == sorted(
        ("pending", "running", "stopping", "stopped", "shutting-down", "terminated")
    )
    assert EFA_KINDS == ("efa", "efa-only")


def test_what_parallelcluster_says_of_an_instance() -> None:
    assert parallelcluster_of({"parallelcluster:node-type": "Compute"}) == {}
    tags = {"parallelcluster:cluster-name": "c", "parallelcluster:node-type": "Compute"}
    more = {"parallelcluster:queue-name": "q", "parallelcluster:compute-resource-name": "r"}
    found = {"parallelcluster_name": "c", "node_role": "compute", "queue": "q", "compute_resource": "r"}
    assert parallelcluster_of({**tags, **more}) == found
    roles = {
        kind: parallelcluster_of({**tags, "parallelcluster:node-type": kind}) for kind in ("HeadNode", "LoginNode", "X")
    }
    assert [one.get("node_role") for one in roles.values()] == ["head", "login", None]
