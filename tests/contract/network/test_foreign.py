"""What somebody else made stays as it is for whoever has the policies of network and teardown, whatever they try."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import KINDS, deletion, found_in
from botocore.exceptions import ClientError

from tests.contract.conftest import REGION, Account
from tests.contract.network.test_teardown import World

THEIRS = [{"Key": "Name", "Value": "theirs"}]
CLUSTER = [{"Key": "trainium:cluster", "Value": "bert"}]


@pytest.fixture
def world(cloud: Account) -> Any:
    """A whole network of somebody who knows nothing of clusters, with nodes, roles and logs."""
    made: Any = World(cloud, THEIRS, "theirs")  # type: ignore[arg-type]
    logs = cloud.client("logs")
    logs.create_log_group(logGroupName="/aws/eks/theirs/cluster")
    return made


def client(cloud: Account, service: str, name: str) -> Any:
    """That of somebody with one policy."""
    make: Any = boto3.client
    keys = {"aws_access_key_id": name, "aws_secret_access_key": "x"}
    cloud.api.limit(name, [name])
    return make(service, REGION, endpoint_url=cloud.api.url, **keys)


def refused(call: Callable[..., Any], **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return str(caught.value.response["Error"]["Message"])


def test_teardown_deletes_nothing_without_the_tag(cloud: Account, world: Any) -> None:
    """Each call of teardown, for each resource of the account."""
    mine, tried = client(cloud, "ec2", "teardown"), set()
    before = {kind.name: getattr(cloud.ec2, kind.look)() for kind in KINDS if kind.look}
    for kind in (kind for kind in KINDS if kind.look):
        for item in found_in(kind._replace(marks=()), before[kind.name]):
            for operation, arguments in deletion(kind, item):
                said = refused(getattr(mine, operation), **arguments)
                assert said == f"You are not authorized to perform: ec2:{operation.title().replace('_', '')}"
                tried.add(operation)
    assert tried == {step.operation for kind in KINDS for step in kind.steps}
    iam = client(cloud, "iam", "teardown")
    for call in ("delete_role", "list_attached_role_policies"):
        assert "not authorized" in refused(getattr(iam, call), RoleName="theirs-eks-node")
    logs = client(cloud, "logs", "teardown")
    assert "not authorized" in refused(logs.delete_log_group, logGroupName="/aws/eks/theirs/cluster")
    assert len(cloud.client("logs").describe_log_groups()["logGroups"]) == 1


def test_nothing_without_the_tag_is_changed_and_nothing_made_without_it(cloud: Account, world: Any) -> None:
    ec2, mine = cloud.ec2, client(cloud, "ec2", "network")
    (table,) = ec2.describe_route_tables(RouteTableIds=[world.table])["RouteTables"]
    association = table["Associations"][0]["RouteTableAssociationId"]
    rule = [{"IpProtocol": "tcp", "FromPort": 5432, "ToPort": 5432, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    own = mine.create_vpc(CidrBlock="10.8.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": CLUSTER}])
    own_vpc = own["Vpc"]["VpcId"]

    def tagged(kind: str) -> dict[str, Any]:
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": CLUSTER}]}

    out = {"RouteTableId": world.table, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": world.gateway}
    inside = {"VpcId": world.vpc, "CidrBlock": "10.9.64.0/20"}
    group = {"GroupName": "a", "Description": "a", "VpcId": world.vpc}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("authorize_security_group_ingress", {"GroupId": world.group, "IpPermissions": rule}),
        ("authorize_security_group_egress", {"GroupId": world.group, "IpPermissions": rule}),
        ("revoke_security_group_ingress", {"GroupId": world.group, "IpPermissions": rule}),
        ("create_route", out),
        ("replace_route", out),
        ("create_subnet", {**inside, **tagged("subnet")}),
        ("create_route_table", {"VpcId": world.vpc, **tagged("route-table")}),
        ("create_security_group", {**group, **tagged("security-group")}),
        ("create_nat_gateway", {"SubnetId": world.subnet, "ConnectivityType": "private", **tagged("natgateway")}),
        (
            "create_vpc_endpoint",
            {"VpcId": world.vpc, "ServiceName": "com.amazonaws.us-west-2.s3", **tagged("vpc-endpoint")},
        ),
        (
            "create_vpc_endpoint",
            {
                "VpcId": own_vpc,
                "ServiceName": "com.amazonaws.us-west-2.s3",
                "RouteTableIds": [world.table],
                **tagged("vpc-endpoint"),
            },
        ),
        ("modify_vpc_attribute", {"VpcId": world.vpc, "EnableDnsHostnames": {"Value": False}}),
        ("attach_internet_gateway", {"InternetGatewayId": world.gateway, "VpcId": own_vpc}),
        ("associate_route_table", {"RouteTableId": world.table, "SubnetId": world.subnet}),
        ("disassociate_route_table", {"AssociationId": association}),
        ("delete_key_pair", {"KeyName": "theirs"}),
        ("create_tags", {"Resources": [world.vpc], "Tags": CLUSTER}),
        ("create_tags", {"Resources": [own_vpc], "Tags": [{"Key": "trainium:cluster", "Value": "another"}]}),
        ("allocate_address", {"Domain": "vpc"}),
        ("create_vpc", {"CidrBlock": "10.7.0.0/16"}),
        ("create_internet_gateway", {}),
        ("import_key_pair", {"KeyName": "a", "PublicKeyMaterial": b"ssh-ed25519 AAAA"}),
        ("create_subnet", {"VpcId": own_vpc, "CidrBlock": "10.8.0.0/20"}),
    ]
    looks = ("describe_security_groups", "describe_route_tables", "describe_subnets", "describe_key_pairs")
    before = json.dumps([getattr(ec2, look)() for look in looks], default=str, sort_keys=True)
    for operation, arguments in calls:
        said = refused(getattr(mine, operation), **arguments)
        assert said.startswith(f"You are not authorized to perform: ec2:{operation.title().replace('_', '')}"), said
    after = json.dumps([getattr(ec2, look)() for look in looks], default=str, sort_keys=True)
    assert _without_answers(after) == _without_answers(before)
    mine.create_tags(Resources=[own_vpc], Tags=[{"Key": "team", "Value": "speech"}, *CLUSTER])


def _without_answers(text: str) -> list[Any]:
    return [{key: value for key, value in one.items() if key != "ResponseMetadata"} for one in json.loads(text)]
