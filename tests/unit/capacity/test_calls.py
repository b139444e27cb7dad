"""What is sent in calls about reservations, groups of them and offers, and what becomes of each answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import calls, calls_market
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from botocore import exceptions
from botocore.stub import Stubber

KEYS: Any = {"region_name": "us-west-2", "aws_access_key_id": "id", "aws_secret_access_key": "secret"}
EC2, GROUPS = boto3.client("ec2", **KEYS), boto3.client("resource-groups", **KEYS)
ARN = "arn:aws:ec2:us-west-2:123456789012:capacity-reservation/cr-1"
REQUEST: dict[str, Any] = {"InstanceType": "trn1.32xlarge", "InstancePlatform": "Linux/UNIX", "InstanceCount": 1}


@pytest.fixture
def ec2() -> Iterator[Stubber]:
    with Stubber(EC2) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def groups() -> Iterator[Stubber]:
    with Stubber(GROUPS) as stub:
        yield stub
        stub.assert_no_pending_responses()


def test_reservations_are_listed_by_filters_a_thousand_in_a_page(ec2: Stubber) -> None:
    filters = [{"Name": "tag:a", "Values": ["b"]}]
    one, other = {"CapacityReservationId": "cr-1"}, {"CapacityReservationId": "cr-2"}
    asked: dict[str, Any] = {"Filters": filters, "MaxResults": 1000}
    ec2.add_response("describe_capacity_reservations", {"CapacityReservations": [one], "NextToken": "x"}, asked)
    ec2.add_response("describe_capacity_reservations", {"CapacityReservations": [other]}, {**asked, "NextToken": "x"})
    assert calls.describe(EC2, {"tag:a": "b"}) == [one, other]


def test_one_is_made_with_the_request_as_it_is(ec2: Stubber) -> None:
    made = {"CapacityReservation": {"CapacityReservationId": "cr-1"}}
    ec2.add_response("create_capacity_reservation", made, REQUEST)
    assert calls.create(EC2, REQUEST) == made["CapacityReservation"]


def test_missing_capacity_is_not_asked_for_again(ec2: Stubber) -> None:
    ec2.add_client_error("create_capacity_reservation", "InsufficientInstanceCapacity", "none", 500)
    with pytest.raises(AwsCallError, match="AWS would not make the capacity reservation: none"):
        calls.create(EC2, REQUEST)


class Lossy:
    """Loses the first answers."""

    def __init__(self, lost: int) -> None:
        self.lost, self.calls = lost, 0

    def create_capacity_reservation(self, **request: Any) -> dict[str, Any]:
        assert request == REQUEST
        self.calls += 1
        if self.calls <= self.lost:
            raise exceptions.ReadTimeoutError(endpoint_url="https://ec2")
        return {"CapacityReservation": {"CapacityReservationId": "cr-1"}}


@pytest.mark.parametrize(("lost", "asked", "made"), [(0, 1, True), (1, 2, True), (2, 3, True), (3, 3, False)])
def test_an_answer_that_is_lost_is_asked_for_twice_more(lost: int, asked: int, made: bool) -> None:
    client = Lossy(lost)
    if made:
        assert calls.create(client, REQUEST) == {"CapacityReservationId": "cr-1"}
    else:
        with pytest.raises(AwsCallError, match=r"cannot make the capacity reservation: .*; check the network"):
            calls.create(client, REQUEST)
    assert client.calls == asked


def test_a_trial_is_one_and_says_what_ec2_would_refuse(ec2: Stubber) -> None:
    ec2.add_client_error(
        "create_capacity_reservation", "DryRunOperation", "fine", 412, expected_params={**REQUEST, "DryRun": True}
    )
    calls.dry_run(EC2, REQUEST)
    ec2.add_client_error("create_capacity_reservation", "UnauthorizedOperation", "no", 403)
    with pytest.raises(AwsCallError, match="AWS would not try the capacity reservation: no"):
        calls.dry_run(EC2, REQUEST)


def test_the_types_of_a_group_and_none_where_there_is_no_group(groups: Stubber) -> None:
    entries = [{"Type": "AWS::EC2::CapacityReservationPool"}, {"Type": "AWS::ResourceGroups::Generic"}]
    found = {"GroupConfiguration": {"Configuration": entries}}
    groups.add_response("get_group_configuration", found, {"Group": "g"})
    groups.add_response("get_group_configuration", {}, {"Group": "g"})
    groups.add_client_error("get_group_configuration", "NotFoundException")
    assert calls.group_types(GROUPS, "g") == [entry["Type"] for entry in entries]
    assert calls.group_types(GROUPS, "g") == []
    assert calls.group_types(GROUPS, "g") is None


@pytest.mark.parametrize(
    ("operation", "call", "said"),
    [
        ("group_resources", calls.group, "put it into the resource group g"),
        ("ungroup_resources", calls.ungroup, "take it out of the group g"),
    ],
)
def test_a_call_that_failed_for_a_resource_is_a_failure(groups: Stubber, operation: str, call: Any, said: str) -> None:
    asked = {"Group": "g", "ResourceArns": [ARN]}
    groups.add_response(operation, {"Succeeded": [ARN], "Failed": []}, asked)
    call(GROUPS, "g", (ARN,))
    failed = {"ResourceArn": ARN, "ErrorCode": "DENIED", "ErrorMessage": "You may not."}
    groups.add_response(operation, {"Failed": [failed]}, asked)
    with pytest.raises(AwsCallError) as error:
        call(GROUPS, "g", [ARN])
    assert str(error.value) == f"AWS would not {said}: You may not (DENIED)"
    assert (error.value.code, error.value.reason) == ("DENIED", "You may not")


def test_members_and_tags_of_a_group(groups: Stubber) -> None:
    found = {"Resources": [{"Identifier": {"ResourceArn": ARN, "ResourceType": "AWS::EC2::CapacityReservation"}}]}
    groups.add_response("list_group_resources", found, {"Group": "g"})
    assert calls.members(GROUPS, "g") == [ARN]
    arn = "arn:aws:resource-groups:us-west-2:123456789012:group/g"
    groups.add_response("get_tags", {"Arn": arn, "Tags": {"a": "b"}}, {"Arn": arn})
    groups.add_response("get_tags", {"Arn": arn}, {"Arn": arn})
    groups.add_client_error("get_tags", "NotFoundException")
    assert [calls.group_tags(GROUPS, arn) for _time in range(3)] == [{"a": "b"}, {}, {}]


def test_a_group_that_is_gone_is_deleted(groups: Stubber) -> None:
    groups.add_response("delete_group", {}, {"Group": "g"})
    groups.add_client_error("delete_group", "NotFoundException")
    groups.add_client_error("delete_group", "ForbiddenException", "no")
    for _time in range(2):
        calls.delete_group(GROUPS, Group="g")
    with pytest.raises(AwsCallError, match="AWS would not delete the resource group: no"):
        calls.delete_group(GROUPS, Group="g")


def test_a_new_group_is_a_pool_that_takes_reservations_alone() -> None:
    """As the EC2 user guide makes one, "Create a Capacity Reservation group"."""
    configuration: list[Any] = [*calls.CONFIGURATION]
    kinds = {entry["Type"]: entry.get("Parameters", []) for entry in configuration}
    assert set(kinds) == {"AWS::EC2::CapacityReservationPool", "AWS::ResourceGroups::Generic"}
    assert kinds["AWS::ResourceGroups::Generic"] == [
        {"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}
    ]


def test_zones_have_names_by_their_ids(ec2: Stubber) -> None:
    zones = {"AvailabilityZones": [{"ZoneId": "usw2-az4", "ZoneName": "us-west-2d"}]}
    asked = {"Filters": [{"Name": "zone-type", "Values": ["availability-zone"]}]}
    ec2.add_response("describe_availability_zones", zones, asked)
    assert calls_market.zone_names(EC2) == {"usw2-az4": "us-west-2d"}


def test_a_purchase_gives_its_reservation_or_nothing(ec2: Stubber) -> None:
    asked: dict[str, Any] = {"CapacityBlockOfferingId": "cb-1", "InstancePlatform": "Linux/UNIX"}
    ec2.add_response("purchase_capacity_block", {"CapacityReservation": {"CapacityReservationId": "cr-1"}}, asked)
    ec2.add_response("purchase_capacity_block", {}, asked)
    assert calls_market.purchase(EC2, asked) == {"CapacityReservationId": "cr-1"}
    assert calls_market.purchase(EC2, asked) == {}


@pytest.mark.parametrize(
    ("code", "status", "refused"),
    [
        ("InvalidParameterValue", 400, True),
        ("UnauthorizedOperation", 403, True),
        ("Strange", 499, True),
        ("Strange", 500, False),
        ("Strange", 399, False),
        ("RequestTimeout", 408, False),
        # It may have been done before it was throttled, as an answer may be lost.
        ("RequestLimitExceeded", 400, False),
        ("", 400, False),
    ],
)
def test_only_an_error_of_ours_says_that_nothing_was_bought(
    ec2: Stubber, code: str, status: int, refused: bool
) -> None:
    ec2.add_client_error("purchase_capacity_block", code, "no", status)
    with pytest.raises(AwsCallError) as error:
        calls_market.purchase(EC2, {"CapacityBlockOfferingId": "cb-1", "InstancePlatform": "Linux/UNIX"})
    assert calls_market.was_refused(error.value) == refused


def test_an_error_without_an_answer_says_nothing() -> None:
    assert not calls_market.was_refused(AwsCallError("no", "Strange"))
