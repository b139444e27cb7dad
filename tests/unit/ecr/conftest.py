"""What ECR is asked, and what it answers, call by call."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

MAKE: Any = boto3.client
ECR = MAKE("ecr", region_name="us-west-2", aws_access_key_id="id", aws_secret_access_key="secret")
NAME = "trainium/bert/training"
ARN = f"arn:aws:ecr:us-west-2:123456789012:repository/{NAME}"
URI = f"123456789012.dkr.ecr.us-west-2.amazonaws.com/{NAME}"
DIGEST = f"sha256:{64 * '0'}"
TAGS = {"trainium:cluster": "bert", "trainium:owner": "me"}
_MISSING = {
    "get_repository_policy": "RepositoryPolicyNotFoundException",
    "get_lifecycle_policy": "LifecyclePolicyNotFoundException",
}


def known(**changes: Any) -> dict[str, Any]:
    """A repository as ECR has it."""
    named = {"repositoryName": NAME, "repositoryArn": ARN, "repositoryUri": URI, "registryId": "123456789012"}
    return {**named, "imageTagMutability": "IMMUTABLE", **changes}


def listed(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


class Ecr:
    """Answers in order; a call that is not expected, or another than that, fails the test."""

    def __init__(self, stub: Stubber) -> None:
        self.stub, self.client = stub, ECR

    def says(self, operation: str, answer: Any, **asked: Any) -> None:
        """An answer that is text is the code of an error."""
        if isinstance(answer, str):
            self.stub.add_client_error(operation, answer, "for the test", 400, None, asked)
        else:
            self.stub.add_response(operation, answer, asked)

    def has(self, *found: dict[str, Any]) -> None:
        answer: Any = {"repositories": list(found)} if found else "RepositoryNotFoundException"
        self.says("describe_repositories", answer, repositoryNames=[NAME])

    def lists(self, *found: dict[str, Any]) -> None:
        self.says("describe_repositories", {"repositories": list(found)})

    def tagged(self, tags: dict[str, str], arn: str = ARN) -> None:
        self.says("list_tags_for_resource", {"tags": listed(tags)}, resourceArn=arn)

    def policy(self, policy: Any = None) -> None:
        self._text("get_repository_policy", "policyText", policy)

    def lifecycle(self, policy: Any = None) -> None:
        self._text("get_lifecycle_policy", "lifecyclePolicyText", policy)

    def _text(self, operation: str, field: str, policy: Any) -> None:
        answer: Any = {field: json.dumps(policy)} if policy else _MISSING[operation]
        self.says(operation, answer, repositoryName=NAME)

    def puts_lifecycle(self, policy: Any) -> None:
        self.says("put_lifecycle_policy", {}, repositoryName=NAME, lifecyclePolicyText=json.dumps(policy))

    def image(self, tag: str, *found: dict[str, Any]) -> None:
        answer: Any = {"imageDetails": list(found)} if found else "ImageNotFoundException"
        self.says("describe_images", answer, repositoryName=NAME, imageIds=[{"imageTag": tag}])

    def password(self, text: str = "secret") -> None:
        token = base64.b64encode(f"AWS:{text}".encode()).decode()
        self.says("get_authorization_token", {"authorizationData": [{"authorizationToken": token}]})


@pytest.fixture
def api() -> Iterator[Ecr]:
    with Stubber(ECR) as stub:
        yield Ecr(stub)
        stub.assert_no_pending_responses()
