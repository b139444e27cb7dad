"""Launches that go wrong after EC2 granted them, and answers that cannot be read: what is tried, and what is left."""

from __future__ import annotations

import re
from typing import Any

import pytest

Account = Any
NO_CAPACITY = "Server.InsufficientInstanceCapacity"
# As a proxy sends it; the second is XML, and read as an answer of EC2 without any field.
PAGE = "<html><head><title>Blocked</title></head><body><h1>Access denied</h1><hr></body></html>"
XML_PAGE = "<html><body>Access denied</body></html>"
NONSENSE = """<DescribeInstancesResponse><requestId>1</requestId>
<reservationSet><item><instancesSet><item/></instancesSet></item></reservationSet></DescribeInstancesResponse>"""


def fault(cloud: Account, action: str, **more: Any) -> None:
    cloud.api.control("POST", "faults", {"action": action, **more})


def alive(cloud: Account) -> list[str]:
    return [item["InstanceId"] for item in cloud.instances("pending", "running")]


def sentence(result: dict[str, Any]) -> str:
    """What the module says when it must fail: one sentence and no page."""
    assert result.get("failed"), result
    message = str(result["msg"])
    assert "\n" not in message
    assert "html" not in message.lower()
    assert not re.search(r"\. [A-Z]", message)
    return message


def test_no_room_after_the_launch_is_no_capacity(cloud: Account) -> None:
    """One of the two finds no room; the other goes as well, since EFA does not cross zones."""
    fault(cloud, "RunInstances", late=NO_CAPACITY, count=1)
    result = cloud.efa(public_ip="primary")
    assert [(item["subnet_id"], item["outcome"]) for item in result["attempts"]] == [
        (cloud.subnets[0], "InsufficientInstanceCapacity"),
        (cloud.subnets[1], "launched"),
    ]
    assert "insufficient capacity" in result["attempts"][0]["message"]
    assert result["availability_zone"] == cloud.zones[1]
    assert sorted(alive(cloud)) == sorted(result["instance_ids"])
    addresses = cloud.ec2.describe_addresses()["Addresses"]
    assert sorted(item["InstanceId"] for item in addresses) == sorted(result["instance_ids"])


def test_no_room_after_the_launch_anywhere_leaves_nothing(cloud: Account) -> None:
    fault(cloud, "RunInstances", late=NO_CAPACITY, times=99)
    result = cloud.run("efa_instance", cloud.arguments(public_ip="primary"))
    message = sentence(result)
    assert "no capacity for 2 x trn1.32xlarge" in message
    assert all(zone in message for zone in cloud.zones)
    assert result["launched"] == []
    assert alive(cloud) == []
    assert cloud.ec2.describe_addresses()["Addresses"] == []


def test_a_call_that_fails_terminates_no_node(cloud: Account) -> None:
    """Looking is refused while the module waits; the next run goes on with the nodes."""
    fault(cloud, "DescribeInstances", code="RequestExpired", skip=2)
    result = cloud.run("efa_instance", cloud.arguments(public_ip="primary"))
    assert "the 2 nodes of this launch were left as they are" in sentence(result)
    assert sorted(result["launched"]) == sorted(alive(cloud))
    assert cloud.ec2.describe_addresses()["Addresses"] == []
    second = cloud.efa(public_ip="primary")
    assert second["launched"] == []
    assert sorted(second["instance_ids"]) == sorted(result["launched"])


def test_looks_that_fail_for_the_moment_are_repeated(cloud: Account) -> None:
    fault(cloud, "DescribeInstances", body=PAGE, skip=2, times=2)
    result = cloud.efa()
    assert sorted(alive(cloud)) == sorted(result["instance_ids"])
    assert len(result["instance_ids"]) == 2


def test_only_what_failed_is_launched_again(cloud: Account) -> None:
    fault(cloud, "RunInstances", late="Server.InternalError", count=1)
    result = cloud.run("efa_instance", cloud.arguments())
    message = sentence(result)
    assert "Server.InternalError" in message
    assert "1 of the 2 nodes of this launch were terminated" in message
    (kept,) = alive(cloud)
    second = cloud.efa()
    assert len(second["launched"]) == 1
    assert sorted(alive(cloud)) == sorted([kept, *second["launched"]])


def test_a_page_in_place_of_the_launch(cloud: Account) -> None:
    for page in (PAGE, XML_PAGE):
        fault(cloud, "RunInstances", body=page, times=9)
        message = sentence(cloud.run("efa_instance", cloud.arguments(public_ip="primary")))
        assert "what came is not an answer of AWS" in message
        assert cloud.instances() == []
        assert cloud.ec2.describe_addresses()["Addresses"] == []
        cloud.api.control("DELETE", "faults")


def test_an_error_that_nobody_foresaw(cloud: Account) -> None:
    """An instance without an id, at the first look and at those while the nodes start."""
    for skip, left in ((0, 0), (2, 2)):
        fault(cloud, "DescribeInstances", body=NONSENSE, skip=skip, times=1)
        message = sentence(cloud.run("efa_instance", cloud.arguments(public_ip="primary")))
        assert "an error that should not be: KeyError" in message
        assert len(alive(cloud)) == left
        assert cloud.ec2.describe_addresses()["Addresses"] == []


def test_addresses_that_cannot_be_looked_at_after_the_launch_are_given_back(cloud: Account) -> None:
    """They are where a node was replaced: its own is free only when EC2 says so."""
    (old,) = cloud.efa(public_ip="primary", count=1)["instance_ids"]
    before = [address["AllocationId"] for address in cloud.ec2.describe_addresses()["Addresses"]]
    fault(cloud, "DescribeAddresses", body=XML_PAGE, skip=1, times=9)
    message = sentence(cloud.run("efa_instance", cloud.arguments(public_ip="primary", replace=[old])))
    assert "cannot list the Elastic IPs: what came is not an answer of AWS" in message
    assert "the 2 nodes of this launch were left as they are" in message
    cloud.api.control("DELETE", "faults")
    assert [address["AllocationId"] for address in cloud.ec2.describe_addresses()["Addresses"]] == before
    assert len(alive(cloud)) == 2


def in_the_default_vpc(cloud: Account) -> dict[str, Any]:
    """There EC2 takes an address that is released from the instance that has it."""
    wanted = {"default-for-az": "true", "availability-zone": cloud.zones[0]}
    filters = [{"Name": name, "Values": [value]} for name, value in wanted.items()]
    (subnet,) = cloud.ec2.describe_subnets(Filters=filters)["Subnets"]
    groups = cloud.ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [subnet["VpcId"]]}])
    return {"subnets": [subnet["SubnetId"]], "security_groups": [groups["SecurityGroups"][0]["GroupId"]]}


@pytest.mark.parametrize("default_vpc", [False, True])
def test_an_address_that_a_node_has_got_stays_with_it(cloud: Account, default_vpc: bool) -> None:
    place = in_the_default_vpc(cloud) if default_vpc else {}
    fault(cloud, "AssociateAddress", code="UnauthorizedOperation", status=403, skip=1)
    message = sentence(cloud.run("efa_instance", cloud.arguments(public_ip="primary", **place)))
    assert "UnauthorizedOperation" in message
    assert "addresses are left" not in message
    (address,) = cloud.ec2.describe_addresses()["Addresses"]
    assert address["InstanceId"] in alive(cloud)
    second = cloud.efa(public_ip="primary", **place)
    assert second["launched"] == []
    assert len(cloud.ec2.describe_addresses()["Addresses"]) == 2


def test_whatever_goes_wrong_with_the_nodes_the_addresses_are_given_back(cloud: Account) -> None:
    fault(cloud, "RunInstances", late="Server.InternalError", count=1)
    fault(cloud, "TerminateInstances", body=XML_PAGE, times=9)
    message = sentence(cloud.run("efa_instance", cloud.arguments(public_ip="primary")))
    assert "cleaning up failed as well" in message
    assert cloud.ec2.describe_addresses()["Addresses"] == []


def test_a_page_in_place_of_a_list_is_no_empty_list(cloud: Account) -> None:
    """Else nothing would belong to a cluster that is there, and teardown.yml would say so."""
    cloud.efa(wait=False)
    fault(cloud, "DescribeInstances", body=XML_PAGE, times=2)
    for module in ("efa_instance_info", "internal.cluster_resources"):
        result = cloud.run(module, {"cluster_name": "bert"})
        assert "what came is not an answer of AWS" in sentence(result)
    # Services that speak JSON take any page for an answer without fields, and IAM looks for its outermost element.
    for action, page in (("DescribeFileSystems", PAGE), ("ListRoles", XML_PAGE)):
        fault(cloud, action, body=page)
        result = cloud.run("internal.cluster_resources", {"cluster_name": "bert"})
        assert "what came is not an answer of AWS" in sentence(result)
