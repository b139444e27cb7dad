"""The table of teardown: what names a resource, when it is gone, and by which calls it goes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, ROLE_TAG, SET_TAG
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import (
    KINDS,
    Kind,
    deletion,
    found_in,
    names_of,
    together,
)
from botocore.loaders import Loader
from botocore.model import ServiceModel

BY_NAME = {kind.name: kind for kind in KINDS}
EC2: Any = ServiceModel(Loader().load_service_model("ec2", "service-2"))


def _operation(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.look], ids=lambda kind: kind.name)
def test_every_line_of_the_table_is_as_ec2_describes_its_api(kind: Kind) -> None:
    shape = EC2.operation_model(_operation(kind.look)).output_shape
    assert kind.filters in EC2.operation_model(_operation(kind.look)).input_shape.members
    for key in kind.items:
        shape = shape.members[key].member
    assert kind.identity in shape.members
    # Every field of the description, filled in, gives arguments that the calls of the deletion take.
    item: dict[str, Any] = {name: name for name in shape.members}
    item["State"] = ""
    for step in kind.steps:
        if step.each:
            item[step.each] = [{name: name for name in shape.members[step.each].member.members}]
    requests = list(deletion(kind, item))
    assert [operation for operation, _arguments in requests] == [step.operation for step in kind.steps]
    for operation, arguments in requests:
        members = EC2.operation_model(_operation(operation)).input_shape.members
        assert set(arguments) <= set(members)
        for name, value in arguments.items():
            assert isinstance(value, list) == (members[name].type_name == "list")


def test_what_uses_something_comes_before_it() -> None:
    order = [kind.name for kind in KINDS]
    for first, then in (
        ("instances", "instance profiles"),
        ("EKS clusters", "instances"),
        ("EKS clusters", "launch templates"),
        ("EKS clusters", "IAM roles"),
        ("EKS clusters", "file systems"),
        ("EKS clusters", "load balancers"),
        ("load balancers", "interfaces of load balancers"),
        ("interfaces of load balancers", "security groups of Kubernetes"),
        ("security groups", "security groups of Kubernetes"),
        ("security groups of Kubernetes", "VPCs"),
        ("instances", "capacity reservations"),
        ("instances", "volumes"),
        ("NAT gateways", "addresses"),
        ("addresses", "internet gateways"),
        ("VPC endpoints", "route tables"),
        ("network interfaces", "security groups"),
        ("file systems", "security groups"),
        ("route tables", "VPCs"),
        ("internet gateways", "VPCs"),
        ("subnets", "VPCs"),
    ):
        assert order.index(first) < order.index(then)


def test_a_failed_gateway_is_none_and_one_that_goes_is_waited_for() -> None:
    kind = BY_NAME["NAT gateways"]
    states = ("failed", "deleted", "deleting", "available")
    found = found_in(kind, {"NatGateways": [{"NatGatewayId": f"nat-{state}", "State": state} for state in states]})
    assert names_of(kind, found) == ["nat-available", "nat-deleting"]
    assert [list(deletion(kind, item)) for item in found] == [
        [],
        [("delete_nat_gateway", {"NatGatewayId": "nat-available"})],
    ]


def test_instances_lie_in_reservations_and_have_a_record_as_their_state() -> None:
    kind = BY_NAME["instances"]
    answer = {
        "Reservations": [
            {"Instances": [{"InstanceId": "i-1", "State": {"Name": "running"}}]},
            {"Instances": [{"InstanceId": "i-2", "State": {"Name": "terminated"}}]},
            {"Instances": [{"InstanceId": "i-3", "State": {"Name": "shutting-down"}}]},
        ]
    }
    found = found_in(kind, answer)
    assert names_of(kind, found) == ["i-1", "i-3"]
    assert [list(deletion(kind, item)) for item in found] == [[("terminate_instances", {"InstanceIds": ["i-1"]})], []]


def test_an_address_that_was_lent_is_not_released() -> None:
    kind = BY_NAME["addresses"]
    marks = {"198.51.100.1": [], "198.51.100.2": [SET_TAG], "198.51.100.3": [ROLE_TAG]}
    answer = {
        "Addresses": [
            {"PublicIp": address, "Tags": [{"Key": key, "Value": "a"} for key in (CLUSTER_TAG, *more)]}
            for address, more in marks.items()
        ]
    }
    assert names_of(kind, found_in(kind, answer)) == ["198.51.100.2", "198.51.100.3"]


def test_every_association_and_attachment_goes_first() -> None:
    table = {
        "RouteTableId": "rtb-1",
        "Associations": [
            {"RouteTableId": "rtb-1", "RouteTableAssociationId": "rtbassoc-1", "SubnetId": "subnet-1"},
            {"RouteTableId": "rtb-1", "RouteTableAssociationId": "rtbassoc-2", "SubnetId": "subnet-2"},
        ],
    }
    assert list(deletion(BY_NAME["route tables"], table)) == [
        ("disassociate_route_table", {"AssociationId": "rtbassoc-1"}),
        ("disassociate_route_table", {"AssociationId": "rtbassoc-2"}),
        ("delete_route_table", {"RouteTableId": "rtb-1"}),
    ]
    gateway = {"InternetGatewayId": "igw-1", "Attachments": [{"State": "available", "VpcId": "vpc-1"}]}
    assert list(deletion(BY_NAME["internet gateways"], gateway)) == [
        ("detach_internet_gateway", {"InternetGatewayId": "igw-1", "VpcId": "vpc-1"}),
        ("delete_internet_gateway", {"InternetGatewayId": "igw-1"}),
    ]


def test_instances_go_by_the_hundred_and_everything_else_by_itself() -> None:
    items = [{"InstanceId": f"i-{number:03}", "State": {"Name": "running"}} for number in range(205)]
    items[7]["State"] = {"Name": "shutting-down"}
    calls = list(together(BY_NAME["instances"], items))
    assert [len(names) for names in calls] == [100, 100, 4]
    assert [name for names in calls for name in names] == [f"i-{number:03}" for number in range(205) if number != 7]
    assert [kind.name for kind in KINDS if any(step.most > 1 for step in kind.steps)] == ["instances"]
    assert list(together(BY_NAME["VPCs"], [{"VpcId": "vpc-1"}, {"VpcId": "vpc-2"}])) == []
