# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How resources and requests are marked as ours: the tags, and the token that makes a request safe to repeat. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

CLUSTER_TAG = "trainium:cluster"
ROLE_TAG = "trainium:role"
# Whose cluster it is, an ARN or what trainium_owner says.
OWNER_TAG = "trainium:owner"
# Which of a cluster's sets a resource belongs to; on an address, also that the set allocated it.
SET_TAG = "trainium:set"
# Which launch of the set an instance comes from.
GENERATION_TAG = "trainium:generation"
# On a file system that is to be kept, or was kept once: teardown keeps it, until it is told to delete it.
KEEP_TAG = "trainium:keep"
# Whose place in the order of nodes an instance has taken; on one that was ended for that, which place was its own.
PLACE_TAG = "trainium:place"
VACATED_TAG = "trainium:vacated"
# What CloudFormation and ParallelCluster put on the resources of their stacks.
STACK_TAGS = ("aws:cloudformation:stack-name", "parallelcluster:cluster-name")
# A session of a role has another name each time; that of the Identity Center has the user's.
_SESSION = re.compile(r"(:assumed-role/(?!AWSReservedSSO_)[^/]+)/.*")


def owner_of(arn: str) -> str:
    """Whoever calls with this ARN, without the name of a session.

    >>> owner_of("arn:aws:sts::123456789012:assumed-role/ml/ada")
    'arn:aws:sts::123456789012:assumed-role/ml'
    """
    return _SESSION.sub(r"\1", arn)


def tags_of(resource: Mapping[str, Any]) -> dict[str, str]:
    """The tags of any resource that EC2 describes."""
    return {tag["Key"]: tag["Value"] for tag in resource.get("Tags") or ()}


def own_tags(params: Mapping[str, Any]) -> dict[str, str]:
    """The user's ``tags`` and, over them, those by which a resource of the cluster is known."""
    return {
        **{str(key): str(value) for key, value in (params.get("tags") or {}).items()},
        CLUSTER_TAG: params["cluster_name"],
        **({OWNER_TAG: params["owner"]} if params.get("owner") else {}),
    }


def check_ours(tags: Mapping[str, str] | None, params: Mapping[str, Any], called: str) -> None:
    """Refuse what carries another cluster's tag, or none, or another owner's: it is somebody else's.

    ``tags``: None where there is nothing of the name. ``params``: ``cluster_name``, and ``owner`` where one is given.
    """
    if tags is None:
        return
    if tags.get(CLUSTER_TAG) != params["cluster_name"]:
        whose = (
            f"belongs to the cluster {tags[CLUSTER_TAG]}" if CLUSTER_TAG in tags else f"carries no tag {CLUSTER_TAG}"
        )
        raise TrainiumError(f"{called} {whose}; take another name")
    if is_of_another(tags, params):
        theirs, mine = owner_of(tags[OWNER_TAG]), owner_of(params["owner"])
        raise TrainiumError(
            f"{called} belongs to {theirs}, and you are {mine}; take another name, or give their owner to act for them"
        )


def is_of_another(tags: Mapping[str, str], params: Mapping[str, Any]) -> bool:
    """Whether it carries the tag of another owner; what has none is nobody's, and where no ``owner`` is given nobody
    is another."""
    theirs, mine = owner_of(tags.get(OWNER_TAG) or ""), owner_of(params.get("owner") or "")
    return bool(theirs and mine and theirs != mine)


def check_owner(tags: Mapping[str, str], params: Mapping[str, Any], called: str) -> None:
    """The same for what never was without the tag of an owner: one that has none may be anybody's."""
    check_ours(tags, params, called)
    if not is_owner(tags, params):
        raise TrainiumError(
            f"{called} carries no tag {OWNER_TAG}, so that anybody may have made it; give it that tag with the value "
            f"{params['owner']} if you trust what lies in it, else take another name"
        )


def is_owner(tags: Mapping[str, str], params: Mapping[str, Any]) -> bool:
    """Whether it carries the tag of ``owner``; so does everything where none is given."""
    mine = params.get("owner")
    return not mine or owner_of(tags.get(OWNER_TAG, "")) == owner_of(mine)


def of_cluster(items: Iterable[Mapping[str, Any]], params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those of a cluster by their tags, and of one name where ``params`` has one, where a service has no filter."""
    cluster, name = params["cluster_name"], params.get("name")
    tagged = [(item, tags_of(item)) for item in items]
    return [item for item, tags in tagged if tags.get(CLUSTER_TAG) == cluster and name in (None, tags.get("Name"))]


def of_owner(items: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Those of the owner alone where there are any: others of the same tags may be anybody's, and are in no way."""
    mine = [item for item in items if is_owner(tags_of(item), params)]
    return mine or items


def keep_tags(tags: Mapping[str, str], keep: bool | None) -> dict[str, str]:
    """The tag that says whether teardown keeps what has ``tags``, where it changes; nobody said anything with None."""
    if keep and tags.get(KEEP_TAG) != "true":
        return {KEEP_TAG: "true"}
    # Overwritten and not removed, as to remove tags of clusters would take a right more.
    return {KEEP_TAG: "false"} if keep is False and tags.get(KEEP_TAG) == "true" else {}


def is_kept(tags: Mapping[str, str], keep: bool | None) -> bool:
    """Whether teardown keeps what has ``tags``; ``keep`` is None where nobody said anything."""
    return bool(keep or (keep is None and tags.get(KEEP_TAG) == "true"))


def is_of_a_stack(tags: Mapping[str, str]) -> bool:
    """Whether a stack of CloudFormation has made it, as those of ParallelCluster do; what such a stack was told to
    retain is still there when the stack is gone."""
    return any(tags.get(key) for key in STACK_TAGS)


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as EC2 takes them, sorted so that the same tags are the same request."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def client_token(request: Mapping[str, Any]) -> str:
    """The same request (its generation is one of its tags) has the same token, so that EC2 grants it only once.

    EC2 allows 64 characters and remembers a token for at least a day.
    """
    content = {key: value for key, value in request.items() if key != "ClientToken"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"trainium-{digest[:48]}"
