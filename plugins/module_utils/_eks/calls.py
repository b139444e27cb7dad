# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call each of EKS, and about what a cluster has beside it: load balancers, interfaces of pods, log groups.

Failures become an AwsCallError of one sentence. What is not there, or gone already, is fine.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    import botocore

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    call_of,
    filters_of,
    list_of,
    one_call,
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
_ABSENT = ("ResourceNotFoundException",)
_NO_BALANCER = ("LoadBalancerNotFound", "TargetGroupNotFound")
_TAGS = "TagDescriptions"


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


describe_cluster = call_of("describe the cluster", "describe_cluster", "cluster", _ABSENT)
list_clusters = list_of("list the clusters", "list_clusters", "clusters")
list_versions = list_of("list the versions that EKS offers", "describe_cluster_versions", "clusterVersions")
create_cluster = call_of("make the cluster", "create_cluster", "cluster")
delete_cluster = call_of("delete the cluster", "delete_cluster", passed=_ABSENT)
update_version = call_of("change the cluster", "update_cluster_version", "update")
update_config = call_of("change the cluster", "update_cluster_config", "update")
describe_update = call_of("look at an update", "describe_update", "update", _ABSENT)
tag = call_of("tag what is in EKS", "tag_resource")

# --- access ---

list_entries = list_of("list the access entries", "list_access_entries", "accessEntries")
describe_entry = call_of("describe the access entry", "describe_access_entry", "accessEntry", _ABSENT)
list_policies = list_of(
    "list the policies of the access entry", "list_associated_access_policies", "associatedAccessPolicies"
)
# One that is there already, as after a lost answer, is fine.
create_entry = call_of("make the access entry", "create_access_entry", passed=("ResourceInUseException",))
associate_policy = call_of("give the access policy", "associate_access_policy")
delete_entry = call_of("delete the access entry", "delete_access_entry", passed=_ABSENT)


@one_call("look up the role of this session")
def role_arn(client: Client, name: str) -> str:
    """The role's ARN with its path, '' where IAM does not say; ``client`` talks to IAM."""
    with passing_over("AccessDenied", "AccessDeniedException", "NoSuchEntity"):
        return str(retried(client.get_role)(RoleName=name)["Role"]["Arn"])
    return ""


# --- node groups; their cluster may be gone as well, where its deletion ended since it was listed ---

list_nodegroups = list_of("list the node groups", "list_nodegroups", "nodegroups", _ABSENT)
describe_nodegroup = call_of("describe the node group", "describe_nodegroup", "nodegroup", _ABSENT)
create_nodegroup = call_of("make the node group", "create_nodegroup", "nodegroup")
update_nodegroup_config = call_of("change the node group", "update_nodegroup_config", "update")
update_nodegroup_version = call_of("change the node group", "update_nodegroup_version", "update")
delete_nodegroup = call_of("delete the node group", "delete_nodegroup", passed=_ABSENT)

# --- load balancers, by the two APIs of Elastic Load Balancing ---

list_classic = list_of("list the classic load balancers", "describe_load_balancers", "LoadBalancerDescriptions")
list_newer = list_of("list the load balancers", "describe_load_balancers", "LoadBalancers")
list_target_groups = list_of("list the target groups", "describe_target_groups", "TargetGroups")
# Of one each, since one that is gone by now would be an error for all that are asked for.
tags_of_classic = call_of("look at the tags of a load balancer", "describe_tags", _TAGS, _NO_BALANCER)
tags_of_newer = call_of("look at the tags of a load balancer or target group", "describe_tags", _TAGS, _NO_BALANCER)
_balancer_interfaces = list_of(
    "list the interfaces of load balancers", "describe_network_interfaces", "NetworkInterfaces"
)


def balancer_interfaces(client: Client, networks: Collection[str]) -> list[Item]:
    return _balancer_interfaces(client, Filters=filters_of({"vpc-id": sorted(networks), "description": "ELB *"}))


def delete_balancer(client: Client, name: str, arn: str = "") -> None:
    """One that is gone already is no error of AWS's."""
    request = {"LoadBalancerArn": arn} if arn else {"LoadBalancerName": name}
    call_of(f"delete the load balancer {name}", "delete_load_balancer")(client, **request)


def delete_target_group(client: Client, name: str, arn: str) -> None:
    call_of(f"delete the target group {name}", "delete_target_group", passed=_NO_BALANCER)(client, TargetGroupArn=arn)


# --- what else is left ---

_cni_interfaces = list_of(
    "list the interfaces of the cluster's nodes", "describe_network_interfaces", "NetworkInterfaces"
)
delete_interface = call_of(
    "delete an interface of the cluster's nodes",
    "delete_network_interface",
    passed=("InvalidNetworkInterfaceID.NotFound",),
)
list_log_groups = list_of("list the log groups", "describe_log_groups", "logGroups")
delete_log_group = call_of("delete the log group", "delete_log_group", passed=_ABSENT)


def cni_interfaces(client: Client, cluster: str) -> list[Item]:
    """Those that the CNI plugin attached for pods and that outlived their node."""
    filters = {"tag:cluster.k8s.amazonaws.com/name": cluster, "status": "available"}
    return _cni_interfaces(client, Filters=filters_of(filters))


@one_call("look at the tags of a log group")
def log_group_tags(client: Client, name: str) -> dict[str, str]:
    return dict(retried(client.list_tags_log_group)(logGroupName=name).get("tags") or {})
