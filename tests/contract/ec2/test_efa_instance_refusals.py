"""Bad input to efa_instance: one sentence, and nothing was started."""

from __future__ import annotations

import re
from typing import Any

import pytest

Account = Any


def check_refusal(cloud: Account, message: str, *parts: str) -> None:
    for part in parts:
        assert part in message
    assert "\n" not in message
    assert message.endswith(".")
    # One sentence: no further one begins after a full stop.
    assert not re.search(r"\. [A-Z]", message)
    assert cloud.api.writes() == []


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"count": 0}, "count is 0; give 1 or more"),
        ({"count": -1}, "count is -1; give 1 or more"),
        ({"name": "two words"}, "name is 'two words'"),
        ({"cluster_name": "a*"}, "cluster_name is 'a*'"),
        ({"subnets": []}, "subnets is empty"),
        ({"subnets": ["subnet-1", "subnet-1"]}, "subnets holds an id twice"),
        ({"subnets": ["public"]}, "subnets holds 'public', which is no id"),
        ({"security_groups": []}, "security_groups is empty"),
        ({"image_id": ""}, "image_id is empty"),
        ({"instance_type": None}, "instance_type is missing"),
        ({"tags": {"trainium:role": "x"}}, "tags holds trainium:role, which is reserved"),
        ({"market": "capacity-block"}, "market capacity-block needs capacity_reservation.id"),
        ({"volumes": [{"size": 0}]}, "the volume the root device has size 0"),
        ({"volumes": [{"size": 1}, {"size": 2}]}, "volumes names the root device twice"),
        ({"wait_timeout": 0}, "wait_timeout is 0"),
    ],
)
def test_without_a_call(cloud: Account, changes: dict[str, Any], part: str) -> None:
    check_refusal(cloud, cloud.refused(**changes), part)
    assert cloud.api.calls() == []


def test_a_count_that_is_no_number(cloud: Account) -> None:
    message = cloud.refused(count="two")
    assert "count" in message
    assert "two" in message
    assert cloud.api.calls() == []


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"instance_type": "trn9.32xlarge"}, "instance type trn9.32xlarge does not exist"),
        ({"image_id": "ami-00000000000000000"}, "image ami-00000000000000000 does not exist"),
        ({"subnets": ["subnet-00000000000000000"]}, "subnet subnet-00000000000000000 does not exist"),
        ({"security_groups": ["sg-00000000000000000"]}, "security group sg-00000000000000000 does not exist"),
        ({"key_name": "nobody"}, "key pair nobody does not exist"),
        ({"placement_group": "nowhere"}, "placement group nowhere does not exist"),
        ({"capacity_reservation": {"id": "cr-0"}}, "capacity reservation cr-0 does not exist"),
        ({"instance_type": "trn1.2xlarge", "interface_layout": "efa"}, "instance type trn1.2xlarge has no EFA"),
    ],
)
def test_what_does_not_exist(cloud: Account, changes: dict[str, Any], part: str) -> None:
    check_refusal(cloud, cloud.refused(**changes), part)


def test_a_subnet_in_a_zone_without_the_type(cloud: Account) -> None:
    zones = {item["ZoneName"] for item in cloud.ec2.describe_availability_zones()["AvailabilityZones"]}
    zone = sorted(zones - set(cloud.zones))[0]
    subnet = cloud.subnet(zone, 8)
    cloud.api.clear_calls()
    message = cloud.refused(subnets=[*cloud.subnets, subnet])
    check_refusal(cloud, message, subnet, f"lies in {zone}, which does not offer trn1.32xlarge", *cloud.zones)


def test_subnets_of_two_networks(cloud: Account) -> None:
    vpc = cloud.ec2.create_vpc(CidrBlock="10.99.0.0/16")["Vpc"]["VpcId"]
    other = cloud.ec2.create_subnet(VpcId=vpc, CidrBlock="10.99.0.0/20", AvailabilityZone=cloud.zones[0])
    cloud.api.clear_calls()
    message = cloud.refused(subnets=[cloud.subnets[0], other["Subnet"]["SubnetId"]])
    check_refusal(cloud, message, "different VPCs", vpc, cloud.vpc)


def test_a_security_group_of_another_network(cloud: Account) -> None:
    vpc = cloud.ec2.create_vpc(CidrBlock="10.99.0.0/16")["Vpc"]["VpcId"]
    group = cloud.ec2.create_security_group(GroupName="x", Description="x", VpcId=vpc)["GroupId"]
    cloud.api.clear_calls()
    check_refusal(cloud, cloud.refused(security_groups=[group]), f"security group {group} belongs to {vpc}")


def test_a_set_of_another_type(cloud: Account) -> None:
    cloud.efa(count=1, instance_type="trn1.2xlarge", wait=False)
    cloud.api.clear_calls()
    check_refusal(cloud, cloud.refused(count=3), "has 1 nodes of type trn1.2xlarge, not trn1.32xlarge")


def test_a_security_group_that_stops_efa_is_warned_of(cloud: Account) -> None:
    group = cloud.ec2.create_security_group(GroupName="web", Description="web", VpcId=cloud.vpc)["GroupId"]
    result = cloud.efa(check=True, security_groups=[group])
    assert "EFA will not work between the nodes" in str(result["warnings"])


def test_an_address_quota_is_met_before_any_launch(cloud: Account) -> None:
    cloud.api.fault("AllocateAddress", "AddressLimitExceeded", times=9)
    message = cloud.refused(public_ip="primary")
    assert "ask AWS for more Elastic IPs" in message
    assert cloud.api.calls("RunInstances") == []


def test_an_api_that_cannot_be_reached(cloud: Account) -> None:
    result = cloud.run(
        "efa_instance",
        {
            "name": "bert",
            "state": "absent",
            "endpoint_url": "http://127.0.0.1:9",
            "aws_config": {"retries": {"max_attempts": 0}},
        },
    )
    assert "check the network, the region and AWS_ENDPOINT_URL" in result["msg"]


def test_a_lower_count_terminates_nothing_by_itself(cloud: Account) -> None:
    nodes = cloud.efa(count=3, wait=False)["instance_ids"]
    cloud.api.clear_calls()
    for check in (False, True):
        message = cloud.refused(count=1, check=check)
        check_refusal(cloud, message, "the set bert has 3 nodes and count is 1", *nodes[1:], "allow_shrink=true")
    # To stop or to remove a set is no shrinking.
    assert len(cloud.efa(count=1, state="absent", check=True)["terminated"]) == 3
