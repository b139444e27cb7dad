"""What teardown finds of EKS and of its logs, and in which order it deletes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks import calls, run_teardown
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run_teardown import (
    CLUSTERS,
    GROUPS,
    LOGS,
    EksOf,
    LogsOf,
)

from tests.unit.eks.conftest import Aws

MINE = {"trainium:cluster": "bert", "trainium:owner": "me"}


def cluster(name: str, tags: dict[str, str], vpc: str = "") -> dict[str, Any]:
    return {"name": name, "tags": tags, **({"resourcesVpcConfig": {"vpcId": vpc}} if vpc else {})}


def there(api: Aws, *found: dict[str, Any], gone: str = "") -> None:
    names = [one["name"] for one in found] + ([gone] if gone else [])
    api.says("eks", "list_clusters", {"clusters": names})
    for one in found:
        api.cluster(one, one["name"])
    if gone:
        api.cluster(None, gone)


def of(api: Aws) -> EksOf:
    return EksOf(api.eks, api.ec2, "bert", "me")


def test_what_is_the_clusters(api: Aws) -> None:
    others = cluster("gpt", {"trainium:cluster": "gpt"}, "vpc-9")
    there(api, others, cluster("trn", MINE, "vpc-3"), cluster("bert", MINE, "vpc-1"), gone="old")
    api.groups("b", of="trn")
    api.groups("a", of="bert")
    found = of(api)
    assert found.look() == {CLUSTERS: ["bert", "trn"], GROUPS: ["bert/a", "trn/b"]}
    # By its name Kubernetes marks what it makes, so that of another name tells nothing.
    assert (found.networks, found.strangers) == ({"vpc-1"}, set())


@pytest.mark.parametrize(
    ("tags", "networks", "strangers"),
    [
        ({}, set(), {"vpc-1"}),
        ({"trainium:cluster": "gpt"}, set(), {"vpc-1"}),
        # It may be anybody's.
        ({"trainium:cluster": "bert"}, set(), set()),
        (MINE, {"vpc-1"}, set()),
    ],
)
def test_whose_network_a_cluster_of_the_name_lies_in(
    api: Aws, tags: dict[str, str], networks: set[str], strangers: set[str]
) -> None:
    there(api, cluster("bert", tags, "vpc-1"))
    if tags.get("trainium:cluster") == "bert":
        api.groups()
    found = of(api)
    found.look()
    assert (found.networks, found.strangers) == (networks, strangers)
    there(api, cluster("bert", {}))
    assert found.look() == {CLUSTERS: [], GROUPS: []} and found.strangers == strangers


def test_another_owner_s_is_refused(api: Aws) -> None:
    there(api, cluster("trn", {**MINE, "trainium:owner": "you"}))
    with pytest.raises(TrainiumError, match="the EKS cluster trn belongs to you, and you are me"):
        of(api).look()


def test_node_groups_first_then_what_pods_left_then_the_cluster(api: Aws) -> None:
    mine = cluster("bert", MINE, "vpc-1")
    there(api, mine)
    api.groups("trn/1", "a")
    for name in ("a", "trn/1"):
        named = {"clusterName": "bert", "nodegroupName": name}
        api.says("eks", "delete_nodegroup", {"nodegroup": {}}, **named)
    there(api, mine)
    api.groups()
    asked = [
        {"Name": "tag:cluster.k8s.amazonaws.com/name", "Values": ["bert"]},
        {"Name": "status", "Values": ["available"]},
    ]
    api.says(
        "ec2", "describe_network_interfaces", {"NetworkInterfaces": [{"NetworkInterfaceId": "eni-1"}]}, Filters=asked
    )
    api.says("ec2", "delete_network_interface", {}, NetworkInterfaceId="eni-1")
    api.says("eks", "delete_cluster", {"cluster": mine}, name="bert")
    there(api)
    assert of(api).delete() == {CLUSTERS: ["bert"], GROUPS: ["bert/a", "bert/trn/1"]}


@pytest.mark.parametrize(
    ("issues", "said"),
    [
        ([{"code": "AccessDenied", "message": "no."}], "AccessDenied: no; its nodes"),
        ([], "EKS gives no reason; its nodes"),
    ],
)
def test_a_group_that_is_stuck_keeps_its_cluster(api: Aws, issues: Any, said: str) -> None:
    mine = cluster("bert", MINE)
    there(api, mine)
    api.groups("going", "trn")
    for name in ("going", "trn"):
        api.says("eks", "delete_nodegroup", {"nodegroup": {}}, clusterName="bert", nodegroupName=name)
    there(api, mine)
    api.groups("going", "late", "trn")
    api.group({"nodegroupName": "going", "status": "DELETING"}, "going")
    api.group(None, "late")
    api.group({"nodegroupName": "trn", "status": "DELETE_FAILED", "health": {"issues": issues}})
    with pytest.raises(TrainiumError, match=f"EKS did not delete the node group bert/trn: {said} run on and cost"):
        of(api).delete()


def test_what_does_not_go_is_named(api: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_teardown, "looks", lambda timeout: iter([0.0]))
    there(api, cluster("bert", MINE))
    api.groups("b", "a")
    for name in ("a", "b"):
        api.says("eks", "delete_nodegroup", {"nodegroup": {}}, clusterName="bert", nodegroupName=name)
    there(api, cluster("bert", MINE))
    api.groups("b", "a")
    for name in ("a", "b"):
        api.group({"nodegroupName": name, "status": "DELETING"}, name)
    with pytest.raises(TrainiumError, match="bert/a, bert/b did not go within 2400 s"):
        of(api).delete()


def logs(api: Aws, **clusters: str) -> None:
    names = [{"logGroupName": f"/aws/eks/bert/{name}"} for name in clusters]
    api.says("logs", "describe_log_groups", {"logGroups": names}, logGroupNamePrefix="/aws/eks/bert/")
    for name, cluster_name in clusters.items():
        tags = {"trainium:cluster": cluster_name} if cluster_name else {}
        api.says("logs", "list_tags_log_group", {"tags": tags}, logGroupName=f"/aws/eks/bert/{name}")


def test_logs_go_or_stay(api: Aws) -> None:
    going, kept = LogsOf(api.clients["logs"], "bert", False), LogsOf(api.clients["logs"], "bert", True)
    logs(api, cluster="bert", theirs="gpt", free="")
    assert going.look() == {LOGS: ["/aws/eks/bert/cluster"]} and going.kept() == []
    logs(api, cluster="bert", theirs="gpt")
    assert kept.kept() == ["/aws/eks/bert/cluster"] and kept.look() == {LOGS: []} and kept.delete() == {LOGS: []}
    logs(api, cluster="bert", other="bert")
    api.says("logs", "delete_log_group", {}, logGroupName="/aws/eks/bert/cluster")
    # Somebody else was faster.
    api.says("logs", "delete_log_group", "ResourceNotFoundException", logGroupName="/aws/eks/bert/other")
    assert going.delete() == {LOGS: ["/aws/eks/bert/cluster", "/aws/eks/bert/other"]}


def test_what_is_gone_already_is_fine(api: Aws) -> None:
    missing = "ResourceNotFoundException"
    named = {"clusterName": "bert", "nodegroupName": "trn"}
    entry = {"clusterName": "bert", "principalArn": "arn:aws:iam::123456789012:user/me"}
    for operation, call, asked in (
        ("delete_cluster", calls.delete_cluster, {"name": "bert"}),
        ("delete_nodegroup", calls.delete_nodegroup, named),
        ("describe_access_entry", calls.describe_entry, entry),
        ("delete_access_entry", calls.delete_entry, entry),
    ):
        api.says("eks", operation, missing, **asked)
        assert call(api.eks, **asked) is None
        api.says("eks", operation, "ServerException", **asked)
        with pytest.raises(AwsCallError, match="for the test"):
            call(api.eks, **asked)
    api.says("eks", "list_nodegroups", missing, clusterName="bert")
    assert calls.list_nodegroups(api.eks, clusterName="bert") == []
    # An entry that a lost answer was about is there.
    api.says("eks", "create_access_entry", "ResourceInUseException", **entry)
    calls.create_entry(api.eks, **entry)
    gone = {"NetworkInterfaceId": "eni-1"}
    api.says("ec2", "delete_network_interface", "InvalidNetworkInterfaceID.NotFound", **gone)
    calls.delete_interface(api.ec2, **gone)
