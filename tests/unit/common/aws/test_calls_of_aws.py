"""Functions of one call, which the calls of a service are tables of."""

from __future__ import annotations

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import call_of, list_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from botocore.stub import Stubber

LOOK = call_of("describe the cluster", "describe_cluster", "cluster", ("ResourceNotFoundException",))
LIST = list_of("list the node groups", "list_nodegroups", "nodegroups", ("ResourceNotFoundException",))
CLIENT = boto3.client("eks", region_name="us-west-2", aws_access_key_id="id", aws_secret_access_key="secret")


def test_the_field_of_an_answer_is_given() -> None:
    with Stubber(CLIENT) as stub:
        stub.add_response("describe_cluster", {"cluster": {"name": "bert"}}, {"name": "bert"})
        assert LOOK(CLIENT, name="bert") == {"name": "bert"}


def test_all_pages_of_a_list_are_given() -> None:
    with Stubber(CLIENT) as stub:
        asked = {"clusterName": "bert"}
        stub.add_response("list_nodegroups", {"nodegroups": ["a"], "nextToken": "more"}, asked)
        stub.add_response("list_nodegroups", {"nodegroups": ["b"]}, {**asked, "nextToken": "more"})
        assert LIST(CLIENT, clusterName="bert") == ["a", "b"]


def test_what_is_not_there_is_none_or_empty() -> None:
    with Stubber(CLIENT) as stub:
        stub.add_client_error("describe_cluster", "ResourceNotFoundException")
        stub.add_client_error("list_nodegroups", "ResourceNotFoundException")
        assert LOOK(CLIENT, name="bert") is None
        assert LIST(CLIENT, clusterName="bert") == []


def test_another_error_says_what_was_tried() -> None:
    with Stubber(CLIENT) as stub:
        stub.add_client_error("describe_cluster", "AccessDeniedException", "not you")
        with pytest.raises(AwsCallError, match="AWS would not describe the cluster: not you"):
            LOOK(CLIENT, name="bert")


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException", "RequestExpired"])
def test_expired_credentials_are_told_with_what_to_do(code: str) -> None:
    """EC2 has the third of these for them, and for a clock that goes wrong."""
    with Stubber(CLIENT) as stub:
        stub.add_client_error("describe_cluster", code, "it is expired")
        with pytest.raises(AwsCallError, match=r"it is expired \(\w+\); log in to AWS again"):
            LOOK(CLIENT, name="bert")
