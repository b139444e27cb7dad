"""Calls of EC2 that change something: what is sent, what is repeated, and what becomes of each answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls
from botocore import exceptions
from botocore.stub import Stubber

from tests.unit.ec2.test_calls import EC2, KEYS, ec2

__all__ = ["ec2"]  # a fixture

LAUNCH: dict[str, Any] = {"MinCount": 1, "MaxCount": 1, "ClientToken": "t"}


class Lossy:
    """A client whose first answers to RunInstances are these, errors among them, and the last is good."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers, {"Instances": [{"InstanceId": "i-1"}]}]
        self.calls = 0

    def run_instances(self, **request: Any) -> Any:
        assert request == LAUNCH
        self.calls += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


LOST = exceptions.ReadTimeoutError(endpoint_url="https://ec2")


def refused(code: str, message: str = "no") -> exceptions.ClientError:
    return exceptions.ClientError({"Error": {"Code": code, "Message": message}}, "RunInstances")


def test_a_lost_answer_is_asked_for_twice_more() -> None:
    for lost in range(3):
        client = Lossy(*[LOST] * lost)
        assert calls.run_instances(client, LAUNCH) == [{"InstanceId": "i-1"}]
        assert client.calls == lost + 1
    client = Lossy(*[LOST] * 3)
    with pytest.raises(AwsCallError, match=r"cannot launch the instances: .*; check the network") as error:
        calls.run_instances(client, LAUNCH)
    assert (client.calls, error.value.transient) == (3, True)


def test_missing_capacity_is_not_asked_for_again() -> None:
    client = Lossy(refused("InsufficientInstanceCapacity"))
    with pytest.raises(AwsCallError, match="AWS would not launch the instances: no"):
        calls.run_instances(client, LAUNCH)
    assert client.calls == 1


def test_a_page_in_place_of_the_answer_is_no_launch_of_none() -> None:
    with pytest.raises(AwsCallError, match="cannot launch the instances: what came is not an answer of AWS") as error:
        calls.run_instances(Lossy({"ResponseMetadata": {}}), LAUNCH)
    assert error.value.transient


def test_a_profile_that_was_just_made_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def looked(seconds: float) -> Iterator[int]:
        waited.append(seconds)
        yield from range(3)

    monkeypatch.setattr(calls, "looks", looked)
    new = refused(
        "InvalidParameterValue",
        "Value (bert) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
    )
    client = Lossy(new, new)
    assert calls.run_instances(client, LAUNCH) == [{"InstanceId": "i-1"}]
    assert client.calls == 3
    # IAM says seconds; what another parameter is refused for is no matter of time.
    assert 30 <= waited[0] <= 300
    client = Lossy(refused("InvalidParameterValue", "another"))
    with pytest.raises(AwsCallError, match="another"):
        calls.run_instances(client, LAUNCH)
    assert client.calls == 1
    # Once more when the time is over.
    client = Lossy(new, new, new)
    assert calls.run_instances(client, LAUNCH) == [{"InstanceId": "i-1"}]
    client = Lossy(new, new, new, new)
    with pytest.raises(AwsCallError, match="Invalid IAM Instance Profile"):
        calls.run_instances(client, LAUNCH)


def test_a_trial_of_a_launch_is_one(ec2: Stubber) -> None:
    asked = {**LAUNCH, "DryRun": True}
    ec2.add_client_error("run_instances", "DryRunOperation", "fine", 412, expected_params=asked)
    calls.dry_run(EC2, LAUNCH)
    ec2.add_client_error("run_instances", "InvalidParameterValue", "no")
    with pytest.raises(AwsCallError, match="AWS would not try the launch: no"):
        calls.dry_run(EC2, LAUNCH)


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (500, [500]), (501, [500, 1])])
def test_five_hundred_resources_are_tagged_at_once(ec2: Stubber, count: int, sizes: list[int]) -> None:
    """CreateTags: "up to 1000 resource IDs", and fewer where each call has to be quick."""
    ids, tags = [f"i-{number}" for number in range(count)], [{"Key": "a", "Value": "b"}]
    for number, size in enumerate(sizes):
        part = ids[500 * number : 500 * number + size]
        ec2.add_response("create_tags", {}, {"Resources": part, "Tags": tags})
    calls.create_tags(EC2, ids, tags)


# --- addresses ---


def answer(**fields: Any) -> dict[str, Any]:
    """AWS's answers have at least the number of the request."""
    return {**fields, "ResponseMetadata": {"RequestId": "1"}}


def test_an_address_is_allocated_for_the_vpc_with_its_tags(ec2: Stubber) -> None:
    tags = [{"Key": "a", "Value": "b"}]
    asked = {"Domain": "vpc", "TagSpecifications": [{"ResourceType": "elastic-ip", "Tags": tags}]}
    ec2.add_response("allocate_address", {"AllocationId": "eipalloc-1"}, asked)
    assert calls.allocate_address(EC2, tags)["AllocationId"] == "eipalloc-1"
    ec2.add_response("allocate_address", {}, asked)
    with pytest.raises(AwsCallError, match="cannot allocate an Elastic IP: what came is not an answer of AWS"):
        calls.allocate_address(EC2, tags)


def test_an_address_is_never_taken_from_another(ec2: Stubber) -> None:
    asked = {"AllocationId": "eipalloc-1", "NetworkInterfaceId": "eni-1", "AllowReassociation": False}
    ec2.add_response("associate_address", answer(AssociationId="eipassoc-1"), asked)
    calls.associate_address(EC2, "eipalloc-1", "eni-1")
    ec2.add_client_error("associate_address", "Resource.AlreadyAssociated", "taken")
    with pytest.raises(AwsCallError, match="AWS would not associate an Elastic IP: taken"):
        calls.associate_address(EC2, "eipalloc-1", "eni-1")


def test_an_address_is_released_from_what_has_it(ec2: Stubber) -> None:
    ec2.add_response("disassociate_address", answer(), {"AssociationId": "eipassoc-1"})
    ec2.add_response("release_address", answer(), {"AllocationId": "eipalloc-1"})
    calls.release_address(EC2, {"AllocationId": "eipalloc-1", "AssociationId": "eipassoc-1"})
    ec2.add_response("release_address", answer(), {"AllocationId": "eipalloc-2"})
    calls.release_address(EC2, {"AllocationId": "eipalloc-2"})
    ec2.add_response("release_address", answer(), {"AllocationId": "eipalloc-3"})
    calls.release_new_address(EC2, "eipalloc-3")


@pytest.mark.parametrize(
    "code", ["InvalidAllocationID.NotFound", "InvalidAssociationID.NotFound", "InvalidAddressID.NotFound"]
)
def test_an_address_that_is_gone_is_released(ec2: Stubber, code: str) -> None:
    for operation in ("disassociate_address", "release_address"):
        ec2.add_client_error(operation, code)
    calls.release_address(EC2, {"AllocationId": "eipalloc-1", "AssociationId": "eipassoc-1"})
    ec2.add_client_error("release_address", "UnauthorizedOperation", "no")
    with pytest.raises(AwsCallError, match="AWS would not release an Elastic IP: no"):
        calls.release_address(EC2, {"AllocationId": "eipalloc-1"})


def test_the_client_of_launches_repeats_them_no_more_by_itself() -> None:
    """Missing capacity is a server error, to which botocore would ask again."""
    client = boto3.client("ec2", **KEYS)
    calls.not_repeated(client, "RunInstances")
    asked = []

    def fail(**_more: Any) -> Any:
        asked.append(1)
        raise exceptions.EndpointConnectionError(endpoint_url="https://ec2")

    client.meta.events.register("before-send.ec2.RunInstances", fail)
    with pytest.raises(exceptions.EndpointConnectionError):
        client.run_instances(**LAUNCH)
    assert len(asked) == 1
