# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of EC2 each: what of a kind carries the cluster's tag, and one step of a deletion."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    call_of,
    checked,
    filters_of,
    one_call,
    pages,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.narrow import narrow
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, is_owner, tags_of
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import KINDS, Kind, found_in, read_of


def narrowed(client: Client) -> Client:
    """The client, which now parses of descriptions only what the table reads.

    The rest, such as the interfaces of each instance, would be most of the work of a look. A kind that botocore
    describes otherwise is parsed as before.
    """
    for kind in KINDS:
        if kind.look:
            with suppress(KeyError):
                _narrow(client, kind)
    return client


def _narrow(client: Client, kind: Kind) -> None:
    answer = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[kind.look]).output_shape
    one = answer
    for key in kind.items:
        one = one.members[key].member
    wanted: Item = dict.fromkeys(read_of(kind) & set(one.members))
    for key in reversed(kind.items):
        wanted = {key: wanted}
    narrow(answer, {**wanted, **dict.fromkeys({"NextToken"} & set(answer.members))})


def look(client: Client, kind: Kind, cluster: str) -> list[Item]:
    """The resources of a kind with a tag of the cluster's name, in which * and ? would be patterns."""
    found: dict[str, Item] = {}
    for key, value in kind.tags:
        request = {kind.filters: filters_of({f"tag:{key.format(cluster)}": value.format(cluster)})}
        found.update((item[kind.identity], item) for item in found_in(kind, _described(client, kind.look, request)))
    return list(found.values())


@one_call("look for images of the cluster")
def own_images(client: Client, cluster: str, owner: str | None) -> list[str]:
    """The ids of the AMIs that were built for the cluster and its owner, the oldest first."""
    filters = filters_of({f"tag:{CLUSTER_TAG}": cluster, "tag-key": "trainium:image"})
    found = pages(client, "describe_images", Owners=["self"], Filters=filters).get("Images", ())
    mine = [image for image in found if is_owner(tags_of(image), {"owner": owner})]
    return [str(image["ImageId"]) for image in sorted(mine, key=lambda one: str(one.get("CreationDate")))]


@one_call("look for what belongs to the cluster")
def _described(client: Client, operation: str, request: Mapping[str, Any]) -> Item:
    if client.can_paginate(operation):
        return pages(client, operation, **request)
    return checked(dict(retried(getattr(client, operation))(**request)))


def delete(client: Client, operation: str, arguments: Mapping[str, Any]) -> None:
    """One step of a deletion. What is gone already is fine."""

    @one_call(operation.replace("_", " "))
    @retried
    def call() -> None:
        answer: Item = {}
        with passing_over("*NotFound", "*NotFoundException", "*.Unknown", "*Gateway.NotAttached"):
            answer = getattr(client, operation)(**arguments)
        # DeleteVpcEndpoints does not fail, it tells.
        for refused in answer.get("Unsuccessful") or ():
            raise aws.ClientError({"Error": refused["Error"]}, operation)

    call()


# Of many instances; those that EC2 says it terminates. One that is not there is an error, as none goes then.
terminate_together = call_of("terminate the instances", "terminate_instances", "TerminatingInstances")
