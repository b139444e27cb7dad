# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of Amazon ECR each. What is not there is None or empty, and what is to be deleted may be gone already."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    call_of,
    list_of,
    one_call,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tags_of

_NONE = "RepositoryNotFoundException"

_repository = call_of("look for the repository of images", "describe_repositories", "repositories", (_NONE,))
list_repositories = list_of("list the repositories of images", "describe_repositories", "repositories")
create = call_of("make the repository of images", "create_repository", "repository")
add_tags = call_of("tag the repository of images", "tag_resource")
delete = call_of("delete the repository of images", "delete_repository", passed=(_NONE,))
_policy = call_of(
    "look at who else may use the repository of images",
    "get_repository_policy",
    "policyText",
    ("RepositoryPolicyNotFoundException", _NONE),
)
_lifecycle = call_of(
    "look at how long images are kept",
    "get_lifecycle_policy",
    "lifecyclePolicyText",
    ("LifecyclePolicyNotFoundException", _NONE),
)
_put_lifecycle = call_of("say how long images are kept", "put_lifecycle_policy")
_image = call_of("look for the image", "describe_images", "imageDetails", ("ImageNotFoundException", _NONE))
_token = call_of("log in to the registry", "get_authorization_token", "authorizationData")


def repository(client: Client, name: str) -> Item | None:
    found = _repository(client, repositoryNames=[name])
    return dict(found[0]) if found else None


@one_call("look at the tags of a repository")
def tags(client: Client, arn: str) -> dict[str, str]:
    found = retried(client.list_tags_for_resource)(resourceArn=arn)
    return tags_of({"Tags": found.get("tags")})


def policy(client: Client, name: str) -> Item:
    return dict(json.loads(_policy(client, repositoryName=name) or "{}"))


def lifecycle(client: Client, name: str) -> Item:
    return dict(json.loads(_lifecycle(client, repositoryName=name) or "{}"))


def put_lifecycle(client: Client, name: str, policy: Mapping[str, Any]) -> None:
    _put_lifecycle(client, repositoryName=name, lifecyclePolicyText=json.dumps(policy))


def image(client: Client, name: str, tag: str) -> Item | None:
    found = _image(client, repositoryName=name, imageIds=[{"imageTag": tag}]) or ()
    # One that is archived is listed and cannot be pulled; a push brings it back.
    return next((dict(one) for one in found if one.get("imageStatus", "ACTIVE") == "ACTIVE"), None)


def password(client: Client) -> str:
    """What ECR's registries of the region take from the user AWS, for twelve hours."""
    found = next(iter(_token(client) or ()))
    return base64.b64decode(found["authorizationToken"]).decode().partition(":")[2]
