"""What is asked of EC2 about nodes, and what becomes of each answer."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls
from botocore.stub import Stubber

KEYS: Any = {"region_name": "us-west-2", "aws_access_key_id": "id", "aws_secret_access_key": "secret"}
EC2, SSM, QUOTAS = boto3.client("ec2", **KEYS), boto3.client("ssm", **KEYS), boto3.client("service-quotas", **KEYS)


@pytest.fixture
def ec2() -> Iterator[Stubber]:
    with Stubber(EC2) as stub:
        yield stub
        stub.assert_no_pending_responses()


def named(name: str, *values: str) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": list(values)}]


def test_instances_come_by_a_thousand_from_all_their_reservations(ec2: Stubber) -> None:
    asked: dict[str, Any] = {"Filters": named("tag:a", "b"), "MaxResults": 1000}
    first = {"Reservations": [{"Instances": [{"InstanceId": "i-1"}, {"InstanceId": "i-2"}]}], "NextToken": "x"}
    ec2.add_response("describe_instances", first, asked)
    ec2.add_response(
        "describe_instances", {"Reservations": [{"Instances": [{"InstanceId": "i-3"}]}]}, {**asked, "NextToken": "x"}
    )
    assert [item["InstanceId"] for item in calls.describe_instances(EC2, {"tag:a": "b"})] == ["i-1", "i-2", "i-3"]


def test_the_console_is_the_latest_where_the_type_can_say_it(ec2: Stubber) -> None:
    latest = {"InstanceId": "i-1", "Latest": True}
    ec2.add_response("get_console_output", {"Output": base64.b64encode(b"boot").decode()}, latest)
    ec2.add_response("get_console_output", {}, latest)
    ec2.add_client_error("get_console_output", "UnsupportedOperation", expected_params=latest)
    ec2.add_response("get_console_output", {"Output": base64.b64encode(b"old").decode()}, {"InstanceId": "i-1"})
    ec2.add_client_error("get_console_output", "InvalidInstanceID.NotFound", expected_params=latest)
    assert [calls.console_output(EC2, "i-1") for _time in range(4)] == ["boot", "", "old", ""]
    ec2.add_client_error("get_console_output", "UnauthorizedOperation", "no")
    with pytest.raises(AwsCallError, match="AWS would not read the console: no"):
        calls.console_output(EC2, "i-1")


@pytest.mark.parametrize("count", [0, 1, 50, 51, 101])
def test_managed_nodes_are_asked_for_by_fifty(count: int) -> None:
    ids = [f"i-{number}" for number in range(count)]
    with Stubber(SSM) as ssm:
        for start in range(0, count, 50):
            part = ids[start : start + 50]
            filters = [{"Key": "InstanceIds", "Values": part}, {"Key": "PingStatus", "Values": ["Online"]}]
            answer = {"InstanceInformationList": [{"InstanceId": identity} for identity in part[:-1]]}
            ssm.add_response("describe_instance_information", answer, {"Filters": filters, "MaxResults": 50})
        online = calls.managed_instances(SSM, ids)
        ssm.assert_no_pending_responses()
    missing = [ids[min(start + 49, count - 1)] for start in range(0, count, 50)]
    assert online == set(ids) - set(missing)


def test_a_type_that_ec2_does_not_know_is_none(ec2: Stubber) -> None:
    asked = {"InstanceTypes": ["trn1.2xlarge"]}
    ec2.add_response("describe_instance_types", {"InstanceTypes": [{"InstanceType": "trn1.2xlarge"}]}, asked)
    ec2.add_response("describe_instance_types", {"InstanceTypes": []}, asked)
    for code in ("InvalidInstanceType", "InvalidParameterValue"):
        ec2.add_client_error("describe_instance_types", code)
    found = [calls.describe_instance_type(EC2, "trn1.2xlarge") for _time in range(4)]
    assert found == [{"InstanceType": "trn1.2xlarge"}, None, None, None]
    ec2.add_client_error("describe_instance_types", "UnauthorizedOperation", "no")
    with pytest.raises(AwsCallError, match="AWS would not describe the instance type: no"):
        calls.describe_instance_type(EC2, "trn1.2xlarge")


def test_vcpus_and_zones_and_quotas(ec2: Stubber) -> None:
    types = [{"InstanceType": "trn1.2xlarge", "VCpuInfo": {"DefaultVCpus": 8}}]
    ec2.add_response("describe_instance_types", {"InstanceTypes": types}, {"InstanceTypes": ["trn1.2xlarge", "x"]})
    assert calls.default_vcpus(EC2, ("trn1.2xlarge", "x")) == {"trn1.2xlarge": 8}
    offered = {"InstanceTypeOfferings": [{"Location": "us-west-2d"}, {"Location": "us-west-2b"}]}
    asked = {"LocationType": "availability-zone", "Filters": named("instance-type", "trn1.2xlarge")}
    ec2.add_response("describe_instance_type_offerings", offered, asked)
    assert calls.zones_offering(EC2, "trn1.2xlarge") == ["us-west-2b", "us-west-2d"]
    with Stubber(QUOTAS) as quotas:
        quotas.add_response("list_service_quotas", {"Quotas": [{"QuotaCode": "L-1"}]}, {"ServiceCode": "ec2"})
        assert calls.list_quotas(QUOTAS, "list_service_quotas") == [{"QuotaCode": "L-1"}]


def test_what_exists_is_told_by_filters_so_that_what_does_not_is_no_error(ec2: Stubber) -> None:
    ec2.add_response("describe_subnets", {"Subnets": []}, {"Filters": named("subnet-id", "subnet-1")})
    assert calls.describe_subnets(EC2, ("subnet-1",)) == []
    groups = {"SecurityGroups": [{"GroupId": "sg-1"}]}
    ec2.add_response("describe_security_groups", groups, {"Filters": named("group-id", "sg-1", "sg-2")})
    assert calls.describe_security_groups(EC2, ("sg-1", "sg-2")) == [{"GroupId": "sg-1"}]
    for pairs in ([], [{"KeyName": "bert"}]):
        ec2.add_response("describe_key_pairs", {"KeyPairs": pairs}, {"Filters": named("key-name", "bert")})
        assert calls.key_pair_exists(EC2, "bert") == bool(pairs)
    gateways = {"InternetGateways": [{"InternetGatewayId": "igw-1"}]}
    ec2.add_response("describe_internet_gateways", gateways, {"Filters": named("attachment.vpc-id", "vpc-1")})
    assert calls.look(EC2, "internet_gateways", {"attachment.vpc-id": "vpc-1"}) == [{"InternetGatewayId": "igw-1"}]
    ec2.add_client_error("describe_internet_gateways", "UnauthorizedOperation", "no")
    with pytest.raises(AwsCallError, match="AWS would not list the internet gateways: no"):
        calls.look(EC2, "internet_gateways", {})


@pytest.mark.parametrize(
    ("groups", "there"),
    [([], False), ([{"State": "deleted"}], False), ([{"State": "available"}], True), ([{"GroupName": "near"}], True)],
)
def test_a_placement_group_counts_while_it_is_available(
    ec2: Stubber, groups: list[dict[str, Any]], there: bool
) -> None:
    asked = {"Filters": named("group-name", "near")}
    ec2.add_response("describe_placement_groups", {"PlacementGroups": groups}, asked)
    assert calls.placement_group_exists(EC2, "near") == there


def test_an_image_or_a_reservation_that_is_not_there_is_none(ec2: Stubber) -> None:
    ec2.add_response("describe_images", {"Images": [{"ImageId": "ami-1"}]}, {"ImageIds": ["ami-1"]})
    for code in ("InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"):
        ec2.add_client_error("describe_images", code)
    assert [calls.describe_image(EC2, "ami-1") for _time in range(3)] == [{"ImageId": "ami-1"}, None, None]
    one = {"CapacityReservations": [{"CapacityReservationId": "cr-1"}]}
    ec2.add_response("describe_capacity_reservations", one, {"CapacityReservationIds": ["cr-1"]})
    for code in ("InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"):
        ec2.add_client_error("describe_capacity_reservations", code)
    found = [calls.describe_capacity_reservation(EC2, "cr-1") for _time in range(3)]
    assert found == [{"CapacityReservationId": "cr-1"}, None, None]


@pytest.mark.parametrize(
    ("call", "operation", "field"),
    [
        (calls.start_instances, "start_instances", "StartingInstances"),
        (calls.stop_instances, "stop_instances", "StoppingInstances"),
        (calls.terminate_instances, "terminate_instances", "TerminatingInstances"),
    ],
)
def test_instances_that_are_gone_are_no_failure(ec2: Stubber, call: Any, operation: str, field: str) -> None:
    ec2.add_response(operation, {field: [{"InstanceId": "i-1"}]}, {"InstanceIds": ["i-1"]})
    ec2.add_client_error(operation, "InvalidInstanceID.NotFound")
    assert [call(EC2, InstanceIds=["i-1"]) for _time in range(2)] == [[{"InstanceId": "i-1"}], None]


def test_an_image_is_made_and_told_by_its_id(ec2: Stubber) -> None:
    ec2.add_response("create_image", {"ImageId": "ami-1"}, {"InstanceId": "i-1", "Name": "bert"})
    assert calls.create_image(EC2, {"InstanceId": "i-1", "Name": "bert"}) == "ami-1"
