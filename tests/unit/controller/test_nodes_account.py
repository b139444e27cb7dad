"""How the nodes of an account are listed, and what is said where AWS refuses to tell them or their names in Slurm."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleParserError
from ansible_collections.trainium.cluster.plugins.plugin_utils import _nodes_account
from ansible_collections.trainium.cluster.plugins.plugin_utils._nodes_account import Account
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)

from tests.unit.aws_answers import Aws

URL = "https://ec2.us-west-2.amazonaws.com"


def refused(code: str, message: str = "it is so.") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "DescribeInstances")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        # What EC2 answers to credentials that are wrong, old, or of somebody who may not.
        (refused("AuthFailure"), "check the access key and the secret key (AuthFailure)"),
        (refused("SignatureDoesNotMatch"), "check the secret key (SignatureDoesNotMatch)"),
        (refused("InvalidClientTokenId"), "does not know the access key; check it (InvalidClientTokenId)"),
        *((refused(code), f"log in again ({code})") for code in ("ExpiredToken", "ExpiredTokenException")),
        (refused("RequestExpired"), "log in again or set the clock (RequestExpired)"),
        (refused("UnauthorizedOperation"), "ec2:DescribeInstances; have it granted (UnauthorizedOperation)"),
        # Of others its own words.
        (refused("Odd"), ": it is so (Odd)"),
        (NoCredentialsError(), "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (PartialCredentialsError(provider="env", cred_var="x"), "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (EndpointConnectionError(endpoint_url=URL), f"{URL} cannot be reached; check the network, the region and "),
        (ConnectTimeoutError(endpoint_url=URL), f"{URL} cannot be reached; check the network, the region and "),
        (ProfileNotFound(profile="x"), ": The config profile (x) could not be found."),
    ],
)
def test_an_error_is_a_sentence(error: Exception, advice: str) -> None:
    with pytest.raises(AnsibleParserError) as told:
        Account._refuse(object.__new__(Account), error, "us-west-2", URL)
    assert str(told.value).startswith("Cannot list the nodes in us-west-2: ")
    assert advice in str(told.value)
    assert str(told.value).endswith(".")


class Nodes(Account):
    """With clients whose calls are answered here."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self.warned: list[str] = []

    def client(self, service: str, region: str = "", config: Any = None) -> Any:
        assert config == _nodes_account.CLIENT_CONFIG
        assert region in ("us-west-2", "eu-west-1")
        return self._aws.client(service)

    @property
    def display(self) -> Any:
        return type("Display", (), {"warning": staticmethod(self.warned.append)})


def instance(name: str) -> dict[str, Any]:
    return {
        "InstanceId": name,
        "InstanceType": "trn1.32xlarge",
        "State": {"Name": "running", "Code": 16},
        "Placement": {"AvailabilityZone": "us-west-2d"},
        "PrivateIpAddress": "10.0.0.4",
        "NetworkInterfaces": [],
        "Tags": [{"Key": "trainium:cluster", "Value": "bert"}],
    }


def test_all_instances_of_all_regions_are_told_with_their_region() -> None:
    aws = Aws({"DescribeInstances": {"Reservations": [{"Instances": [instance("i-1"), instance("i-2")]}]}})
    nodes = Nodes(aws)
    found = nodes.records(["us-west-2", "eu-west-1"], {"tag:trainium:cluster": "bert"})
    assert len(found) == 4
    assert [request["MaxResults"] for _call, request in aws.asked] == [1000, 1000]
    assert aws.filters("DescribeInstances") == {"tag:trainium:cluster": ["bert"]}
    assert nodes.warned == []


def test_a_refusal_is_told_with_its_region() -> None:
    nodes = Nodes(Aws({"DescribeInstances": "UnauthorizedOperation"}))
    with pytest.raises(AnsibleParserError, match=r"^Cannot list the nodes in us-west-2: the credentials lack"):
        nodes.records(["us-west-2"], {})


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("AccessDeniedException", "the credentials lack the permission dynamodb:Scan for the table t in us-west-2"),
        ("ResourceNotFoundException", "there is no table t in us-west-2"),
    ],
)
def test_names_of_slurm_that_are_not_known_are_a_warning(code: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = type("Table", (), {"name": "t", "region": "us-west-2"})()
    monkeypatch.setattr(_nodes_account.slurm_names, "tables", lambda _records: [table])
    monkeypatch.setattr(_nodes_account.slurm_names, "name_nodes", lambda records, answers: [*records, answers])
    nodes = Nodes(Aws({"Scan": code}))
    assert nodes._named([]) == [{}]
    assert nodes.warned == [f"Compute nodes go by other names than in Slurm: {said}."]
    aws = Aws({"Scan": {"Items": [{"Id": {"S": "x"}}], "Count": 1}})
    nodes = Nodes(aws)
    assert nodes._named([]) == [{table: [{"Id": {"S": "x"}}]}]
    assert nodes.warned == []
    # A name that was written a moment ago counts.
    assert aws.last("Scan")["ConsistentRead"] is True
    assert aws.last("Scan")["TableName"] == "t"
    with pytest.raises(AnsibleParserError, match="Odd it is"):
        Nodes(Aws({"Scan": "Odd"}))._named([])
