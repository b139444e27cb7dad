# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call each about what a cluster of EKS has beside it: interfaces of its CNI plugin, log groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    filters_of,
    one_call,
    pages,
    passing_over,
    retried,
)

_GONE = ("ResourceNotFoundException", "InvalidNetworkInterfaceID.NotFound")


def _unless_gone(call: Callable[..., Any], **arguments: Any) -> None:
    with passing_over(*_GONE):
        retried(call)(**arguments)


@one_call("list the interfaces of the cluster's nodes")
def cni_interfaces(client: Client, cluster: str) -> list[Item]:
    """Those that the CNI plugin attached for pods and that outlived their node."""
    filters = {"tag:cluster.k8s.amazonaws.com/name": cluster, "status": "available"}
    found = pages(client, "describe_network_interfaces", Filters=filters_of(filters))
    return list(found.get("NetworkInterfaces", ()))


@one_call("delete an interface of the cluster's nodes")
def delete_interface(client: Client, identity: str) -> None:
    _unless_gone(client.delete_network_interface, NetworkInterfaceId=identity)


@one_call("list the log groups")
def log_groups(client: Client, prefix: str) -> list[Item]:
    return list(pages(client, "describe_log_groups", logGroupNamePrefix=prefix).get("logGroups", ()))


@one_call("look at the tags of a log group")
def log_group_tags(client: Client, name: str) -> dict[str, str]:
    return dict(retried(client.list_tags_log_group)(logGroupName=name).get("tags") or {})


@one_call("delete the log group")
def delete_log_group(client: Client, name: str) -> None:
    _unless_gone(client.delete_log_group, logGroupName=name)
