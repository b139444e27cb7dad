# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of EKS each; failures become an AwsCallError of one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    import botocore

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    one_call,
    pages,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

# What an older botocore does not know of EKS: operation -> a field that came last of those which are sent.
_LATEST = {
    "DescribeClusterVersions": "includeAll",
    "CreateCluster": "deletionProtection",
    "CreateNodegroup": "updateConfig.updateStrategy",
}


def check_library(client: Client) -> None:
    """Raise TrainiumError where the controller's botocore is older than what the modules for EKS ask of it."""
    model = client.meta.service_model
    for operation, field in _LATEST.items():
        shape: Any = model.operation_model(operation).input_shape if operation in model.operation_names else None
        for name in field.split("."):
            shape = shape.members.get(name) if shape is not None else None
        if shape is None:
            raise TrainiumError(
                f"the botocore {botocore.__version__} of this Python does not know {field} of {operation}; "
                "install a newer boto3"
            )


def _found(call: Any, key: str, **names: str) -> Item | None:
    """What a describe call shows, None for what is not there."""
    with passing_over("ResourceNotFoundException"):
        return cast(Item, retried(call)(**names)[key])
    return None


def _gone_is_fine(call: Any, **names: str) -> None:
    with passing_over("ResourceNotFoundException"):
        retried(call)(**names)


@one_call("describe the cluster")
def describe_cluster(client: Client, name: str) -> Item | None:
    return _found(client.describe_cluster, "cluster", name=name)


@one_call("list the clusters")
def list_clusters(client: Client) -> list[str]:
    return list(pages(client, "list_clusters").get("clusters", ()))


@one_call("list the versions that EKS offers")
def cluster_versions(client: Client) -> list[Item]:
    return list(pages(client, "describe_cluster_versions", includeAll=True).get("clusterVersions", ()))


@one_call("make the cluster")
@retried
def create_cluster(client: Client, request: Mapping[str, Any]) -> Item:
    return dict(client.create_cluster(**request)["cluster"])


@one_call("delete the cluster")
def delete_cluster(client: Client, name: str) -> None:
    """One that is gone already is fine."""
    _gone_is_fine(client.delete_cluster, name=name)


@one_call("change the cluster")
@retried
def update_cluster(client: Client, request: Mapping[str, Any]) -> Item:
    """An update of the version or of anything else; returns it."""
    call = client.update_cluster_version if "version" in request else client.update_cluster_config
    return dict(call(**request)["update"])


@one_call("look at an update")
def describe_update(client: Client, update: str, **names: str) -> Item | None:
    return _found(client.describe_update, "update", updateId=update, **names)


@one_call("tag what is in EKS")
@retried
def tag(client: Client, arn: str, tags: Mapping[str, str]) -> None:
    client.tag_resource(resourceArn=arn, tags=dict(tags))


# --- access ---


@one_call("list the access entries")
def list_entries(client: Client, cluster: str) -> list[str]:
    return list(pages(client, "list_access_entries", clusterName=cluster).get("accessEntries", ()))


@one_call("describe the access entry")
def describe_entry(client: Client, cluster: str, principal: str) -> Item | None:
    return _found(client.describe_access_entry, "accessEntry", clusterName=cluster, principalArn=principal)


@one_call("list the policies of the access entry")
def entry_policies(client: Client, cluster: str, principal: str) -> list[Item]:
    found = pages(client, "list_associated_access_policies", clusterName=cluster, principalArn=principal)
    return list(found.get("associatedAccessPolicies", ()))


@one_call("make the access entry")
def create_entry(client: Client, cluster: str, principal: str, tags: Mapping[str, str]) -> None:
    """One that is there already, as after a lost answer, is fine."""
    with passing_over("ResourceInUseException"):
        retried(client.create_access_entry)(clusterName=cluster, principalArn=principal, tags=dict(tags))


@one_call("give the access policy")
@retried
def associate_policy(client: Client, cluster: str, principal: str, policy: str) -> None:
    """For the whole cluster."""
    client.associate_access_policy(
        clusterName=cluster, principalArn=principal, policyArn=policy, accessScope={"type": "cluster"}
    )


@one_call("delete the access entry")
def delete_entry(client: Client, cluster: str, principal: str) -> None:
    _gone_is_fine(client.delete_access_entry, clusterName=cluster, principalArn=principal)


@one_call("look up the role of this session")
def role_arn(client: Client, name: str) -> str:
    """The role's ARN with its path, '' where IAM does not say; ``client`` talks to IAM."""
    with passing_over("AccessDenied", "AccessDeniedException", "NoSuchEntity"):
        return str(retried(client.get_role)(RoleName=name)["Role"]["Arn"])
    return ""


# --- node groups ---


@one_call("list the node groups")
def list_nodegroups(client: Client, cluster: str) -> list[str]:
    """None also where the cluster is not there, as where its deletion ended since it was listed."""
    with passing_over("ResourceNotFoundException"):
        return list(pages(client, "list_nodegroups", clusterName=cluster).get("nodegroups", ()))
    return []


@one_call("describe the node group")
def describe_nodegroup(client: Client, cluster: str, name: str) -> Item | None:
    """None also where the cluster is not there."""
    return _found(client.describe_nodegroup, "nodegroup", clusterName=cluster, nodegroupName=name)


@one_call("make the node group")
@retried
def create_nodegroup(client: Client, request: Mapping[str, Any]) -> Item:
    return dict(client.create_nodegroup(**request)["nodegroup"])


@one_call("change the node group")
@retried
def update_nodegroup(client: Client, operation: str, request: Mapping[str, Any]) -> Item:
    """``operation``: update_nodegroup_config or update_nodegroup_version. Safe to repeat like ``create_nodegroup``."""
    return dict(getattr(client, operation)(**request)["update"])


@one_call("delete the node group")
def delete_nodegroup(client: Client, cluster: str, name: str) -> None:
    _gone_is_fine(client.delete_nodegroup, clusterName=cluster, nodegroupName=name)
