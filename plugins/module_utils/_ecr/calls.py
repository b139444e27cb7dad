# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of Amazon ECR each."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    one_call,
    pages,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tag_list, tags_of

_NONE = "RepositoryNotFoundException"


def _or_none(codes: tuple[str, ...], call: Any, **request: Any) -> Item | None:
    try:
        return dict(retried(call)(**request))
    except aws.ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise
        return None


@one_call("look for the repository of images")
def repository(client: Client, name: str) -> Item | None:
    found = _or_none((_NONE,), client.describe_repositories, repositoryNames=[name])
    return dict(found["repositories"][0]) if found else None


@one_call("list the repositories of images")
def repositories(client: Client) -> list[Item]:
    return list(pages(client, "describe_repositories").get("repositories", ()))


@one_call("look at the tags of a repository")
def tags(client: Client, arn: str) -> dict[str, str]:
    found = retried(client.list_tags_for_resource)(resourceArn=arn)
    return tags_of({"Tags": found.get("tags")})


@one_call("make the repository of images")
def create(client: Client, request: Mapping[str, Any]) -> Item:
    return dict(retried(client.create_repository)(**request)["repository"])


@one_call("tag the repository of images")
def add_tags(client: Client, arn: str, tags: Mapping[str, str]) -> None:
    retried(client.tag_resource)(resourceArn=arn, tags=tag_list(tags))


@one_call("look at who else may use the repository of images")
def policy(client: Client, name: str) -> Item:
    codes = ("RepositoryPolicyNotFoundException", _NONE)
    found = _or_none(codes, client.get_repository_policy, repositoryName=name)
    return dict(json.loads(found["policyText"])) if found else {}


@one_call("look at how long images are kept")
def lifecycle(client: Client, name: str) -> Item:
    codes = ("LifecyclePolicyNotFoundException", _NONE)
    found = _or_none(codes, client.get_lifecycle_policy, repositoryName=name)
    return dict(json.loads(found["lifecyclePolicyText"])) if found else {}


@one_call("say how long images are kept")
def put_lifecycle(client: Client, name: str, policy: Mapping[str, Any]) -> None:
    retried(client.put_lifecycle_policy)(repositoryName=name, lifecyclePolicyText=json.dumps(policy))


@one_call("look for the image")
def image(client: Client, name: str, tag: str) -> Item | None:
    codes = ("ImageNotFoundException", _NONE)
    found = _or_none(codes, client.describe_images, repositoryName=name, imageIds=[{"imageTag": tag}])
    # One that is archived is listed and cannot be pulled; a push brings it back.
    there = [one for one in found["imageDetails"] if one.get("imageStatus", "ACTIVE") == "ACTIVE"] if found else []
    return dict(there[0]) if there else None


@one_call("log in to the registry")
def password(client: Client) -> str:
    """What ECR's registries of the region take from the user AWS, for twelve hours."""
    (found,) = retried(client.get_authorization_token)()["authorizationData"]
    return base64.b64decode(found["authorizationToken"]).decode().partition(":")[2]


@one_call("delete the repository of images")
def delete(client: Client, name: str) -> None:
    """With all images in it. One that is gone already is fine."""
    with passing_over(_NONE):
        retried(client.delete_repository)(repositoryName=name, force=True)
