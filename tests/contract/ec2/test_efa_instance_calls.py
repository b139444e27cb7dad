"""Which calls efa_instance makes: none twice, those that are mostly waiting at the same time, none lost by a kill."""

from __future__ import annotations

import collections

import pytest

from tests.contract.conftest import Account

# Longer than a busy machine takes to start a thread.
DELAY = 3.0


def counted(cloud: Account) -> collections.Counter[str]:
    return collections.Counter(call["action"] for call in cloud.api.calls())


def slow(cloud: Account, *actions: str, times: int = 99) -> None:
    """Let these calls take long."""
    for action in actions:
        cloud.api.fault(action, "", delay=DELAY, times=times)


def begun_within(cloud: Account, *actions: str) -> float:
    """Seconds between the beginnings of the first and of the last of these calls."""
    times = [call["time"] for call in cloud.api.calls() if call["action"] in actions]
    return float(max(times) - min(times))


def test_a_launch_asks_nothing_twice(cloud: Account) -> None:
    cloud.ec2.create_key_pair(KeyName="bert")
    cloud.ec2.create_placement_group(GroupName="bert", Strategy="cluster")
    cloud.api.clear_calls()
    cloud.efa(public_ip="primary", key_name="bert", placement_group="bert")
    calls = counted(cloud)
    assert calls.pop("DescribeInstances") >= 2
    assert (calls.pop("AllocateAddress"), calls.pop("AssociateAddress")) == (2, 2)
    assert set(calls) == {
        *("DescribeAddresses", "DescribeImages", "DescribeInstanceTypeOfferings", "DescribeInstanceTypes"),
        *("DescribeKeyPairs", "DescribePlacementGroups", "DescribeSecurityGroups", "DescribeSubnets", "RunInstances"),
    }
    assert set(calls.values()) == {1}


def test_a_reservation_is_asked_for_once(cloud: Account) -> None:
    reservation = cloud.ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone=cloud.zones[0], InstanceCount=2
    )["CapacityReservation"]["CapacityReservationId"]
    cloud.api.clear_calls()
    cloud.efa(capacity_reservation={"id": reservation})
    assert counted(cloud)["DescribeCapacityReservations"] == 1


def test_growth_asks_for_the_type_once(cloud: Account) -> None:
    cloud.efa(count=1)
    cloud.api.clear_calls()
    cloud.efa(count=2)
    assert counted(cloud)["DescribeInstanceTypes"] == 1


def test_check_mode_asks_for_the_type_once(cloud: Account) -> None:
    """Its vCPUs are what the quota is counted in."""
    cloud.efa(check=True)
    calls = counted(cloud)
    assert calls["ListServiceQuotas"] == 1
    assert calls["DescribeInstanceTypes"] == 1


def test_a_run_with_nothing_to_do_asks_three_questions_at_the_same_time(cloud: Account) -> None:
    cloud.efa(public_ip="primary")
    cloud.api.clear_calls()
    actions = ("DescribeInstances", "DescribeInstanceTypes", "DescribeAddresses")
    slow(cloud, *actions)
    assert not cloud.efa(public_ip="primary")["changed"]
    assert counted(cloud) == dict.fromkeys(actions, 1)
    assert begun_within(cloud, *actions) < DELAY


def test_what_a_launch_needs_is_asked_at_the_same_time(cloud: Account) -> None:
    actions = ("DescribeImages", "DescribeInstanceTypeOfferings", "DescribeSubnets", "DescribeSecurityGroups")
    slow(cloud, *actions)
    cloud.efa(wait=False)
    assert begun_within(cloud, *actions) < DELAY


def test_addresses_are_allocated_and_associated_at_the_same_time(cloud: Account) -> None:
    slow(cloud, "AllocateAddress", "AssociateAddress")
    result = cloud.efa(count=4, public_ip="primary")
    assert len({node["public_ip_address"] for node in result["instances"]} - {""}) == 4
    for action in ("AllocateAddress", "AssociateAddress"):
        assert counted(cloud)[action] == 4
        assert begun_within(cloud, action) < DELAY


def test_no_more_is_allocated_once_the_quota_is_used_up(cloud: Account) -> None:
    cloud.api.fault("AllocateAddress", "AddressLimitExceeded", skip=3, times=99)
    assert "AddressLimitExceeded" in cloud.refused(count=40, public_ip="primary")
    assert counted(cloud)["AllocateAddress"] <= 12
    assert counted(cloud)["RunInstances"] == 0
    assert cloud.ec2.describe_addresses()["Addresses"] == []


@pytest.mark.parametrize("action", ["AllocateAddress", "RunInstances", "AssociateAddress"])
def test_killed_between_allocation_and_association(cloud: Account, action: str) -> None:
    """The next run finds the addresses by their tag, and gives every node one of them."""
    cloud.kill_after(action, cloud.arguments(count=4, public_ip="primary"))
    result = cloud.efa(count=4, public_ip="primary")
    addresses = cloud.ec2.describe_addresses()["Addresses"]
    assert len(addresses) == 4
    assert {item["PublicIp"] for item in addresses} == {node["public_ip_address"] for node in result["instances"]}
    assert len(cloud.instances("pending", "running")) == 4


def test_an_address_that_ec2_does_not_know_yet_is_associated_all_the_same(cloud: Account) -> None:
    cloud.efa()
    cloud.api.fault("AssociateAddress", "InvalidAllocationID.NotFound", times=1)
    result = cloud.efa(public_ip="primary")
    assert "" not in {node["public_ip_address"] for node in result["instances"]}


def test_an_address_that_ec2_does_not_know_yet_is_given_back_all_the_same(cloud: Account) -> None:
    cloud.api.fault("AllocateAddress", "AddressLimitExceeded", skip=1, times=99)
    cloud.api.fault("ReleaseAddress", "InvalidAllocationID.NotFound", times=1)
    assert "AddressLimitExceeded" in cloud.refused(count=2, public_ip="primary")
    assert cloud.ec2.describe_addresses()["Addresses"] == []
