"""The nodes of ParallelClusters: their roles, their names in Slurm, their groups and the way there."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import instances
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.hosts import (
    Node,
    Options,
    plan_nodes,
    reduce_instance,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import node_names as slurm_names
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.node_names import Table
from hypothesis import given
from hypothesis import strategies as st

REGION = "us-west-2"
TABLE = Table(REGION, "demo")


def instance(number: int, kind: str = "Compute", own: bool = True, **changes: Any) -> dict[str, Any]:
    """An item of DescribeInstances as ParallelCluster makes it; ``own``: with the tags that the role adds."""
    cluster = changes.pop("cluster", "demo")
    tags = {"parallelcluster:cluster-name": cluster, "parallelcluster:node-type": kind}
    if kind == "Compute":
        tags["parallelcluster:queue-name"] = changes.pop("queue", "train")
        tags["parallelcluster:compute-resource-name"] = changes.pop("resource", "trn1")
    if own:
        tags |= {"trainium:cluster": cluster, "trainium:role": "parallelcluster"}
    return {
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "trn1.32xlarge" if kind == "Compute" else "m5.xlarge",
        "State": {"Name": "running"},
        "PrivateIpAddress": f"192.0.2.{number}",
        "PrivateDnsName": f"ip-192-0-2-{number}.us-west-2.compute.internal",
        "LaunchTime": f"2026-01-02T03:04:{number:02}",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        **changes,
    }


def item(name: str, number: int) -> dict[str, Any]:
    """What a cluster's table says of a node."""
    return {"Id": {"S": name}, "InstanceId": {"S": f"i-{number:017x}"}}


def plan(found: list[dict[str, Any]], items: list[dict[str, Any]], **options: Any) -> dict[str, Node]:
    records = slurm_names.name_nodes([reduce_instance(one, REGION) for one in found], {TABLE: items})
    return {node.name: node for node in plan_nodes(records, Options(**options))}


def test_the_nodes_of_a_cluster() -> None:
    found = [instance(1, "HeadNode"), instance(2, "LoginNode"), instance(3), instance(4, queue="test", resource="c-5")]
    nodes = plan(found, [item("train-st-trn1-1", 3), item("test-dy-c-5-7", 4)])
    assert list(nodes) == ["ip-192-0-2-1", "ip-192-0-2-2", "train-st-trn1-1", "test-dy-c-5-7"]
    groups = {name: node.groups for name, node in nodes.items()}
    assert groups["ip-192-0-2-1"][:2] == ["head", "cluster_demo"]
    assert groups["ip-192-0-2-2"][:2] == ["login", "cluster_demo"]
    assert groups["test-dy-c-5-7"] == [
        "compute",
        "cluster_demo",
        "type_trn1_32xlarge",
        "queue_test",
        "compute_resource_c_5",
    ]
    wanted = {
        "slurm_node_name": "test-dy-c-5-7",
        "slurm_node_kind": "dynamic",
        "queue": "test",
        "compute_resource": "c-5",
        "cluster_name": "demo",
        "node_role": "compute",
        "node_rank": 1,
        "master_addr": "192.0.2.3",
    }
    variables = nodes["test-dy-c-5-7"].variables
    assert {key: variables[key] for key in wanted} == wanted
    assert nodes["train-st-trn1-1"].variables["slurm_node_kind"] == "static"
    assert "node_rank" not in nodes["ip-192-0-2-1"].variables
    assert "queue" not in nodes["ip-192-0-2-1"].variables
    # The role has a variable of this name.
    assert not any("parallelcluster_name" in node.variables for node in nodes.values())


def test_a_cluster_without_our_tags_is_known_by_its_own_name() -> None:
    nodes = plan([instance(1, "HeadNode", own=False), instance(2, own=False)], [item("train-st-trn1-1", 2)])
    assert [node.variables["cluster_name"] for node in nodes.values()] == ["demo", "demo"]
    assert "cluster_demo" in nodes["train-st-trn1-1"].groups


def test_other_nodes_have_nothing_of_it() -> None:
    tags = [{"Key": "trainium:cluster", "Value": "bert"}, {"Key": "trainium:role", "Value": "compute"}]
    record = reduce_instance(instance(1, Tags=tags), REGION)
    assert not {"parallelcluster_name", "queue", "compute_resource"} & set(record)
    assert slurm_names.tables([record]) == []
    (node,) = plan_nodes(slurm_names.name_nodes([record], {}), Options())
    assert "head" in node.groups
    assert not {"slurm_node_name", "slurm_node_kind"} & set(node.variables)
    assert instances.parallelcluster_of({}) == {}


def test_what_has_the_cluster_name_but_no_known_kind_keeps_its_role() -> None:
    tags = {"parallelcluster:cluster-name": "demo", "trainium:role": "compute"}
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    record = reduce_instance(instance(1, Tags=listed), REGION)
    assert record["node_role"] == "compute"
    assert slurm_names.tables([record]) == [TABLE]


def test_only_tables_of_clusters_with_live_compute_nodes_are_read() -> None:
    found = [
        instance(1, "HeadNode", cluster="idle"),
        instance(2, cluster="gone", State={"Name": "terminated"}),
        instance(3, cluster="busy"),
        instance(4, cluster="busy", State={"Name": "pending"}),
    ]
    records = [reduce_instance(one, REGION) for one in found]
    elsewhere = reduce_instance(instance(5, cluster="busy"), "us-east-1")
    assert slurm_names.tables([*records, elsewhere]) == [Table("us-east-1", "busy"), Table(REGION, "busy")]
    assert Table(REGION, "busy").name == "parallelcluster-slurm-busy"


def test_items_of_the_dead_and_of_strangers_name_nobody() -> None:
    found = [instance(1), instance(2, State={"Name": "stopped"}), instance(3, "LoginNode")]
    items = [
        item("train-st-trn1-9", 99),
        item("train-st-trn1-2", 2),
        item("train-st-trn1-3", 3),
        item("other-st-trn1-1", 1),
        item("train-st-trn1-x", 1),
        {"Id": {"S": "train-st-trn1-4"}},
        {"InstanceId": {"S": "i-1"}},
    ]
    nodes = plan(found, items)
    assert sorted(nodes) == ["ip-192-0-2-1", "ip-192-0-2-2", "ip-192-0-2-3"]
    assert (
        nodes["ip-192-0-2-1"].variables["slurm_node_name"] == nodes["ip-192-0-2-1"].variables["slurm_node_kind"] == ""
    )


def test_the_kind_is_not_mistaken_where_names_hold_st_or_dy() -> None:
    (node,) = plan([instance(1, queue="a-st-b", resource="c")], [item("a-st-b-dy-c-1", 1)]).values()
    assert node.variables["slurm_node_kind"] == "dynamic"


def test_without_the_table_the_private_dns_name_serves() -> None:
    records = slurm_names.name_nodes([reduce_instance(instance(1), REGION)], {})
    (node,) = plan_nodes(records, Options())
    assert node.name == "ip-192-0-2-1"
    assert node.variables["queue"] == "train"
    assert node.variables["slurm_node_name"] == ""


def test_hostnames_may_prefer_others() -> None:
    assert list(plan([instance(1)], [item("train-st-trn1-1", 1)], hostnames=["private-ip-address"])) == ["192.0.2.1"]


def test_names_that_two_clusters_share_give_way_to_ids() -> None:
    records = [reduce_instance(instance(number, cluster=name), REGION) for number, name in ((1, "a"), (2, "b"))]
    tables = {
        Table(REGION, name): [item("train-st-trn1-1", number), item("train-st-trn1-2", 3 - number)]
        for number, name in ((1, "a"), (2, "b"))
    }
    names = [node.name for node in plan_nodes(slurm_names.name_nodes(records, tables), Options())]
    assert names == ["i-00000000000000001", "i-00000000000000002"]


def test_a_compute_node_is_never_the_head() -> None:
    (node,) = plan([instance(1, PublicIpAddress="203.0.113.1")], [item("train-st-trn1-1", 1)]).values()
    assert "head" not in node.groups
    assert node.variables["node_rank"] == 0


def test_the_head_is_the_bastion() -> None:
    found = [instance(1, "HeadNode", PublicIpAddress="203.0.113.1"), instance(2), instance(3, "LoginNode")]
    nodes = plan(found, [item("train-dy-trn1-1", 2)], bastion="ubuntu@head")
    assert nodes["ip-192-0-2-1"].variables["ansible_host"] == "203.0.113.1"
    assert "ProxyJump" not in nodes["ip-192-0-2-1"].variables["ansible_ssh_common_args"]
    for name, address in (("train-dy-trn1-1", "192.0.2.2"), ("ip-192-0-2-3", "192.0.2.3")):
        assert nodes[name].variables["ansible_host"] == address
        assert nodes[name].variables["ansible_ssh_common_args"].endswith("-o ProxyJump=ubuntu@203.0.113.1")


def test_a_bastion_that_is_gone_is_one_sentence() -> None:
    with pytest.raises(TrainiumError, match="cluster 'demo' has no running head; start it or name another bastion"):
        plan([instance(1)], [], bastion="head")


@given(
    st.lists(st.tuples(st.sampled_from(["st", "dy"]), st.integers(1, 9), st.integers(1, 9)), max_size=30),
    st.sets(st.integers(1, 9)),
    st.randoms(use_true_random=False),
)
def test_names_belong_to_the_living_whatever_the_order(
    facts: list[tuple[str, int, int]], alive: set[int], shuffler: Any
) -> None:
    """Every name is one that the table gives to that very living instance, and the order of items decides nothing."""
    items = [item(f"train-{kind}-trn1-{node}", number) for kind, node, number in facts]
    found = [instance(number) for number in sorted(alive)]
    named = {node.variables["instance_id"]: node.variables["slurm_node_name"] for node in plan(found, items).values()}
    assert set(named) == {one["InstanceId"] for one in found}
    given_names: dict[str, set[str]] = {}
    for one in items:
        given_names.setdefault(one["InstanceId"]["S"], set()).add(one["Id"]["S"])
    for identity, name in named.items():
        assert name in given_names.get(identity, {""})
    shuffler.shuffle(items)
    again = {node.variables["instance_id"]: node.variables["slurm_node_name"] for node in plan(found, items).values()}
    assert again == named
