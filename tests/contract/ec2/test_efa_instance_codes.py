"""What EC2 may answer to a launch: which codes lead to the next subnet, which end the run, and what is asked again."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls

from tests.contract.ec2.test_efa_instance_late import PAGE, fault

Account = Any
# EC2's error codes that say "not here, not now" (API reference, "Error codes for the Amazon EC2 API").
NOT_HERE = (
    *("InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacity", "Unsupported"),
    *("InsufficientFreeAddressesInSubnet", "ReservationCapacityExceeded", "SpotMaxPriceTooLow"),
    # "There isn't enough spare capacity to fulfill your request for Spot Instances" (the same page).
    "UnfulfillableCapacity",
)
# Another subnet would help as little.
NOT_AT_ALL = ("VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "UnauthorizedOperation", "InvalidParameterValue")


def test_these_codes_are_all() -> None:
    assert sorted(calls.CAPACITY_CODES) == sorted(NOT_HERE)


@pytest.mark.parametrize("code", NOT_HERE)
def test_where_there_is_no_room_the_next_subnet_is_tried_in_the_order_given(cloud: Account, code: str) -> None:
    cloud.api.fault("RunInstances", code)
    subnets = cloud.subnets[::-1]
    result = cloud.efa(count=1, interface_layout="none", subnets=subnets, wait=False)
    assert [(item["subnet_id"], item["outcome"]) for item in result["attempts"]] == [
        (subnets[0], code),
        (subnets[1], "launched"),
    ]


def test_where_subnets_are_too_small_larger_ones_are_advised(cloud: Account) -> None:
    cloud.api.fault("RunInstances", "InsufficientFreeAddressesInSubnet", times=99)
    message = cloud.run("efa_instance", cloud.arguments())["msg"]
    assert message.startswith("efa_instance bert: no addresses for 2 x trn1.32xlarge: tried ")
    assert "; take larger subnets, or interface_layout efa-only where it is efa" in message


@pytest.mark.parametrize("code", NOT_AT_ALL)
def test_what_no_subnet_would_change_is_asked_once(cloud: Account, code: str) -> None:
    cloud.api.fault("RunInstances", code)
    result = cloud.run("efa_instance", cloud.arguments(wait=False))
    assert f"({code})" in result["msg"]
    assert len(cloud.api.calls("RunInstances")) == 1
    assert cloud.instances() == []


def test_a_launch_whose_answer_was_lost_is_asked_for_with_the_same_token(cloud: Account) -> None:
    fault(cloud, "RunInstances", body=PAGE, times=2)
    result = cloud.efa(wait=False)
    tokens = [call["parameters"]["ClientToken"] for call in cloud.api.calls("RunInstances")]
    assert (len(tokens), len(set(tokens))) == (3, 1)
    assert len(result["launched"]) == 2


def test_a_profile_that_ec2_does_not_know_yet_is_waited_for(cloud: Account) -> None:
    message = "Value (trn) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
    cloud.api.control(
        "POST", "faults", {"action": "RunInstances", "code": "InvalidParameterValue", "message": message, "times": 1}
    )
    assert len(cloud.efa(wait=False)["launched"]) == 2
    assert len(cloud.api.calls("RunInstances")) == 2


def test_addresses_are_taken_from_nobody(cloud: Account) -> None:
    """Neither one without the cluster's tag, nor one that another instance got in the meantime."""
    other = cloud.ec2.allocate_address(Domain="vpc")["AllocationId"]
    cloud.efa(count=1, public_ip="primary")
    (call,) = cloud.api.calls("AssociateAddress")
    assert call["parameters"]["AllowReassociation"] == "false"
    given = {item["AllocationId"]: item.get("AssociationId") for item in cloud.ec2.describe_addresses()["Addresses"]}
    assert (len(given), given[other]) == (2, None)
    cloud.efa(state="absent", public_ip="primary")
    (left,) = cloud.ec2.describe_addresses()["Addresses"]
    assert (left["AllocationId"], left.get("AssociationId")) == (other, None)


def test_more_than_one_page_shows_and_one_call_tags(cloud: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cloud.efa(count=7, instance_type="trn1.2xlarge", wait=False)["instance_ids"]
    # "Up to 1000 resource IDs" (API reference, CreateTags); of the pages the smallest that EC2 gives.
    assert calls.TAG_BATCH <= 1000
    monkeypatch.setattr(calls, "TAG_BATCH", 3)
    monkeypatch.setattr(calls, "PAGE_SIZE", 5)
    cloud.api.clear_calls()
    calls.create_tags(cloud.ec2, made, [{"Key": "team", "Value": "speech"}])
    found = calls.describe_instances(cloud.ec2, {"tag:team": "speech"})
    assert {item["InstanceId"] for item in found} == set(made)
    actions = [call["action"] for call in cloud.api.calls()]
    assert actions == ["CreateTags"] * 3 + ["DescribeInstances"] * 2
