"""The RunInstances request and its token."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import client_token
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import Place
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import (
    known_network,
    plan_interfaces,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.request import (
    build_request,
    set_tags,
    shown_request,
    volume_mappings,
)
from hypothesis import given
from hypothesis import strategies as st

IMAGE = {
    "RootDeviceName": "/dev/xvda",
    "BlockDeviceMappings": [
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 40}},
        {"DeviceName": "/dev/xvdb", "VirtualName": "ephemeral0"},
    ],
}
PARAMS: dict[str, Any] = {
    "name": "bert",
    "cluster_name": "c1",
    "role": "compute",
    "instance_type": "trn1.32xlarge",
    "image_id": "ami-1",
    "security_groups": ["sg-1"],
    "market": "on-demand",
}


def build(count: int = 2, generation: int = 1, subnet: str = "subnet-1", **changes: Any) -> dict[str, Any]:
    interfaces = plan_interfaces(known_network("trn1.32xlarge"), changes.pop("layout", "efa"))
    return build_request({**PARAMS, **changes}, interfaces, IMAGE, subnet, count, generation)


def test_all_or_none() -> None:
    request = build(count=7)
    assert (request["MinCount"], request["MaxCount"]) == (7, 7)


def test_who_takes_a_place_says_so_and_asks_for_the_address_on_the_primary_interface() -> None:
    interfaces = plan_interfaces(known_network("trn1.32xlarge"), "efa")
    request = build_request(PARAMS, interfaces, IMAGE, "subnet-1", 1, 4, Place(1, 0, ""), "192.0.2.7")
    named = [entry.get("PrivateIpAddress") for entry in request["NetworkInterfaces"]]
    assert named == ["192.0.2.7"] + [None] * 7
    for kind in request["TagSpecifications"]:
        assert {"Key": "trainium:place", "Value": "1/0/"} in kind["Tags"]
        assert {"Key": "trainium:generation", "Value": "4"} in kind["Tags"]


def test_interfaces_carry_subnet_and_groups_and_no_request_for_a_public_address() -> None:
    entries = build()["NetworkInterfaces"]
    assert len(entries) == 8
    assert [entry["DeviceIndex"] for entry in entries] == [0] + [1] * 7
    assert all(entry["SubnetId"] == "subnet-1" and entry["Groups"] == ["sg-1"] for entry in entries)
    assert all(entry["DeleteOnTermination"] for entry in entries)
    assert all("AssociatePublicIpAddress" not in entry for entry in entries)
    assert build(layout="none")["NetworkInterfaces"][0]["AssociatePublicIpAddress"] is False


@given(
    st.integers(1, 64),
    st.integers(1, 99),
    st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=4),
)
def test_the_token_follows_from_the_request(count: int, generation: int, tags: dict[str, str]) -> None:
    request = build(count, generation, tags=tags)
    reordered = build(count, generation, tags=dict(reversed(list(tags.items()))))
    assert request == reordered
    assert request["ClientToken"] == client_token(copy.deepcopy(request))
    assert len(request["ClientToken"]) <= 64
    assert request["ClientToken"].isascii()


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 3},
        {"generation": 2},
        {"subnet": "subnet-2"},
        {"image_id": "ami-2"},
        {"name": "other"},
        {"cluster_name": "c2"},
        {"user_data": "x"},
        {"market": "spot"},
        {"layout": "efa-only"},
    ],
)
def test_another_launch_has_another_token(changes: dict[str, Any]) -> None:
    assert build(**changes)["ClientToken"] != build()["ClientToken"]


def test_every_part_of_a_request_is_in_its_token() -> None:
    """EC2 refuses a known token with another request, so that a part which is left out makes a repeated run fail."""
    request = build(
        user_data="x",
        market="spot",
        key_name="key",
        placement_group="pg",
        instance_profile="trn",
        capacity_reservation={"preference": "none"},
    )
    parts = {*request} - {"ClientToken"}
    assert parts >= {"UserData", "KeyName", "Placement", "IamInstanceProfile", "CapacityReservationSpecification"}
    tokens = {client_token({**request, part: "another"}) for part in parts}
    tokens |= {client_token({key: value for key, value in request.items() if key != part}) for part in parts}
    assert len({*tokens, request["ClientToken"]}) == 2 * len(parts) + 1


def test_what_a_launch_names() -> None:
    request = build(key_name="key", placement_group="pg", instance_profile="trn", user_data="x")
    named = {name: request[name] for name in ("ImageId", "InstanceType", "KeyName", "Placement", "UserData")}
    assert named == {
        "ImageId": "ami-1",
        "InstanceType": "trn1.32xlarge",
        "KeyName": "key",
        "Placement": {"GroupName": "pg"},
        "UserData": "x",
    }


def test_tags_on_everything_that_the_launch_makes() -> None:
    request = build(generation=3, tags={"Name": "mine", "team": 7}, market="spot")
    kinds = [item["ResourceType"] for item in request["TagSpecifications"]]
    assert kinds == ["instance", "volume", "network-interface", "spot-instances-request"]
    for item in request["TagSpecifications"]:
        assert {tag["Key"]: tag["Value"] for tag in item["Tags"]} == {
            "Name": "mine",
            "team": "7",
            "trainium:cluster": "c1",
            "trainium:role": "compute",
            "trainium:set": "bert",
            "trainium:generation": "3",
        }


def test_the_collections_own_tags_cannot_be_changed() -> None:
    assert set_tags({**PARAMS, "tags": {"trainium:cluster": "x"}})["trainium:cluster"] == "c1"


def test_imdsv2_unless_told_otherwise() -> None:
    default = {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    assert build()["MetadataOptions"] == default
    assert build(metadata_options={"http_tokens": "optional"})["MetadataOptions"] == {
        **default,
        "HttpTokens": "optional",
    }
    other = {"http_tokens": None, "http_put_response_hop_limit": 1}
    assert build(metadata_options=other)["MetadataOptions"] == {**default, "HttpPutResponseHopLimit": 1}


def test_the_root_volume_is_encrypted_without_asking() -> None:
    assert volume_mappings([], IMAGE) == [
        {
            "DeviceName": "/dev/xvda",
            "Ebs": {"VolumeType": "gp3", "VolumeSize": 40, "Encrypted": True, "DeleteOnTermination": True},
        }
    ]


def test_volumes_as_asked() -> None:
    root = {"size": 512, "type": "gp3", "encrypted": True, "delete_on_termination": False}
    plain = {"device_name": "/dev/sdf", "size": 10, "type": "gp3", "encrypted": False, "throughput": 500}
    own = {"device_name": "/dev/sdg", "type": "io2", "iops": 9000, "kms_key_id": "k-1", "snapshot_id": "snap-1"}
    mappings = {item["DeviceName"]: item["Ebs"] for item in volume_mappings([root, plain, own], IMAGE)}
    assert mappings["/dev/sdg"] == {
        "VolumeType": "io2",
        "Iops": 9000,
        "KmsKeyId": "k-1",
        "SnapshotId": "snap-1",
        "Encrypted": True,
        "DeleteOnTermination": True,
    }
    assert mappings["/dev/xvda"] == {
        "VolumeSize": 512,
        "VolumeType": "gp3",
        "Encrypted": True,
        "DeleteOnTermination": False,
    }
    assert mappings["/dev/sdf"] == {
        "VolumeSize": 10,
        "VolumeType": "gp3",
        "Throughput": 500,
        "DeleteOnTermination": True,
    }


@pytest.mark.parametrize(
    ("reservation", "expected"),
    [
        ({"id": "cr-1"}, {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}),
        (
            {"resource_group_arn": "arn:x"},
            {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": "arn:x"}},
        ),
        ({"preference": "none"}, {"CapacityReservationPreference": "none"}),
        ({"id": None, "resource_group_arn": None, "preference": None}, None),
        ({}, None),
    ],
)
def test_capacity(reservation: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert build(capacity_reservation=reservation).get("CapacityReservationSpecification") == expected


def test_markets() -> None:
    assert "InstanceMarketOptions" not in build()
    assert build(market="capacity-block")["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    spot = build(market="spot")["InstanceMarketOptions"]
    # What is interrupted must not come back by itself, with its disks and without its place in the set.
    options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
    assert spot == {"MarketType": "spot", "SpotOptions": options}


def test_profile_by_name_or_arn() -> None:
    assert build(instance_profile="trn")["IamInstanceProfile"] == {"Name": "trn"}
    arn = "arn:aws:iam::123456789012:instance-profile/trn"
    assert build(instance_profile=arn)["IamInstanceProfile"] == {"Arn": arn}


def test_user_data_is_not_shown() -> None:
    request = build(user_data="password")
    assert request["UserData"] == "password"
    assert "password" not in str(shown_request(request))


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({}, None),
        ({"instance_initiated_shutdown_behavior": "stop"}, "stop"),
        ({"instance_initiated_shutdown_behavior": "terminate"}, "terminate"),
        ({"instance_initiated_shutdown_behavior": "stop", "market": "spot"}, None),
    ],
)
def test_what_a_shutdown_from_within_does(asked: dict[str, Any], sent: str | None) -> None:
    assert build(**asked).get("InstanceInitiatedShutdownBehavior") == sent


def test_a_node_that_stops_itself_has_what_was_given_as_well() -> None:
    data = build(user_data="#!/bin/sh\necho mine", stop_after=90)["UserData"]
    assert "OnBootSec=90min" in data
    assert "echo mine" in data
