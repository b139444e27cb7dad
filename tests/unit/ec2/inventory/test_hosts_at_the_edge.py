"""What a host of the inventory is told, what it is called and which groups it has, where that is not plain."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.hosts import (
    DEFAULT_HOSTNAMES,
    host_name,
    reduce_instance,
)

from tests.unit.ec2.inventory.test_hosts import instance, plan


def tags(**named: str) -> list[dict[str, str]]:
    known = {"cluster": "trainium:cluster", "role": "trainium:role"}
    return [{"Key": known.get(key, key.replace("__", ":")), "Value": value} for key, value in named.items()]


def test_a_host_has_these_variables_and_no_others() -> None:
    """Those that serve ordering and naming alone stay out: they would be facts of the user's by such names."""
    (node,) = plan(instance(5, PublicIpAddress="203.0.113.5", PublicDnsName="ec2-5.example.com"))
    variables = dict(node.variables)
    assert {key for key in variables if key.startswith("ansible_")} == {
        "ansible_host",
        "ansible_ssh_common_args",
        "ansible_control_path",
    }
    assert {key: value for key, value in variables.items() if not key.startswith("ansible_")} == {
        "instance_id": "i-00000000000000005",
        "instance_type": "trn1.32xlarge",
        "image_id": "ami-0123456789abcdef0",
        "availability_zone": "us-west-2a",
        "placement_group": "bert-pg",
        "subnet_id": "subnet-0123456789abcdef0",
        "private_dns_name": "ip-192-0-2-5.us-west-2.compute.internal",
        "efa_interface_count": 8,
        "launch_time": "2026-01-02T03:04:05.000+00:00",
        "instance_state": "running",
        "cluster_name": "bert",
        "node_role": "compute",
        "aws_region": "us-west-2",
        "private_address": "192.0.2.5",
        "public_address": "203.0.113.5",
        "instance_tags": {"trainium:cluster": "bert", "trainium:role": "compute"},
        "node_rank": 0,
        "master_addr": "192.0.2.5",
        "head_state": "running",
    }


def test_those_of_a_parallelcluster_have_its_queue_as_well() -> None:
    found = {
        "parallelcluster__cluster-name": "pc",
        "parallelcluster__node-type": "Compute",
        "parallelcluster__queue-name": "trn",
        "parallelcluster__compute-resource-name": "one.big",
    }
    (node,) = plan(instance(5, Tags=tags(**found)))
    assert (node.variables["cluster_name"], node.variables["queue"]) == ("pc", "trn")
    assert "parallelcluster_name" not in node.variables
    assert node.groups[:2] == ["compute", "cluster_pc"] and node.groups[-2:] == [
        "queue_trn",
        "compute_resource_one_big",
    ]
    # None of its compute nodes is a head, and there is none here.
    assert (node.variables["head_state"], node.variables["node_rank"]) == ("", 0)
    login = {**found, "parallelcluster__node-type": "LoginNode"}
    (node,) = plan(instance(5, Tags=tags(**login)))
    assert node.groups[0] == "login" and "node_rank" not in node.variables and "master_addr" not in node.variables


@pytest.mark.parametrize(
    ("preference", "changes", "name"),
    [
        ("ip-address", {"PublicIpAddress": "203.0.113.5"}, "203.0.113.5"),
        ("dns-name", {"PublicDnsName": "ec2-5.example.com"}, "ec2-5.example.com"),
        ("private-ip-address", {}, "192.0.2.5"),
        ("instance-id", {}, "i-00000000000000005"),
        ("slurm-node-name", {}, ""),
        ("kubernetes-node-name", {}, ""),
        (
            "kubernetes-node-name",
            {"Tags": tags(**{"eks__cluster-name": "x"})},
            "ip-192-0-2-5.us-west-2.compute.internal",
        ),
        ("tag:Name", {"Tags": tags(Name="a.b-c_9")}, "a.b-c_9"),
        ("tag:Name", {"Tags": tags(Name="a" * 255)}, "a" * 255),
        *(("tag:Name", {"Tags": tags(Name=name)}, "") for name in ("", "-a", ".a", "a b", "{{ a }}", "a/b", "a" * 256)),
    ],
)
def test_a_name_of_each_kind_or_the_next_one(preference: str, changes: dict[str, Any], name: str) -> None:
    record = reduce_instance(instance(5, **changes), "us-west-2")
    assert host_name(record, [preference]) == (name or "i-00000000000000005")
    assert host_name(record, [preference, "private-ip-address"]) == (name or "192.0.2.5")


def test_a_name_of_slurm_comes_first() -> None:
    record = {**reduce_instance(instance(5), "us-west-2"), "slurm_node_name": "trn-dy-one-1"}
    assert host_name(record, DEFAULT_HOSTNAMES) == "trn-dy-one-1"


def test_a_preference_that_is_none_is_told_with_those_there_are() -> None:
    with pytest.raises(TrainiumError) as error:
        plan(instance(5), hostnames=["tag", "instance-id"])
    said = str(error.value)
    assert said.startswith(
        "hostnames holds 'tag', which is not one of short-private-dns-name, kubernetes-node-name, slurm"
    )
    assert said.endswith("instance-id or tag:<key>")


@pytest.mark.parametrize(
    "name",
    ["localhost", "127.0.0.1", "all", "ungrouped", "head", "compute", "login", "cluster_bert", "zone_us_west_2a"],
)
def test_no_tag_makes_a_host_a_group_or_the_controller(name: str) -> None:
    named = tags(cluster="bert", role="compute", Name=name)
    found = [node.name for node in plan(instance(5, Tags=named), instance(6), hostnames=["tag:Name"])]
    assert found == ["i-00000000000000005", "i-00000000000000006"]


def test_no_tag_gives_a_host_the_id_of_another() -> None:
    named = tags(cluster="bert", role="compute", Name="i-00000000000000006")
    found = [node.name for node in plan(instance(5, Tags=named), instance(6), hostnames=["tag:Name"])]
    assert found == ["i-00000000000000005", "i-00000000000000006"]


# --- who is the head, and the bastion ---


@pytest.mark.parametrize(
    ("states", "head"),
    [
        (("running", "running"), 1),
        (("stopped", "running"), 2),
        (("stopped", "pending"), 2),
        (("stopping", "stopped"), 1),
        (("terminated", "stopped"), 2),
        (("shutting-down", "terminated"), None),
    ],
)
def test_of_several_heads_the_first_that_runs_or_else_rests(states: tuple[str, str], head: int | None) -> None:
    heads = [instance(number, role="head", State={"Name": state}) for number, state in enumerate(states, 1)]
    nodes = plan(*heads, instance(3, role="login"))
    (login,) = [node for node in nodes if "login" in node.groups]
    assert login.variables["head_state"] == (states[head - 1] if head else "")
    marked = [node.name for node in nodes if "head" in node.groups]
    assert marked == ([f"ip-192-0-2-{head}"] if head and states[head - 1] in ("pending", "running") else [])


@pytest.mark.parametrize("changes", [{}, {"State": {"Name": "stopped"}, "PublicIpAddress": "203.0.113.9"}])
def test_a_bastion_without_an_address_is_none_yet(changes: dict[str, Any]) -> None:
    (node,) = plan(instance(5, PublicIpAddress="203.0.113.5"), instance(9, role="bastion", **changes), bastion="create")
    assert "Proxy" not in node.variables["ansible_ssh_common_args"]
    assert node.variables["ansible_host"] == "203.0.113.5"


def test_a_bastion_of_the_cluster_without_key_and_pins() -> None:
    bastion = instance(9, role="bastion", PublicIpAddress="203.0.113.9")
    (node,) = plan(instance(5), bastion, bastion="create", known_hosts="/pins", pinned={"i-other": "ssh-ed25519"})
    words = shlex.split(node.variables["ansible_ssh_common_args"])
    (command,) = [word.partition("=")[2] for word in words if word.startswith("ProxyCommand=")]
    assert "-i" not in shlex.split(command) and "UserKnownHostsFile" not in command
    assert "ubuntu@203.0.113.9" in shlex.split(command)


def test_the_head_as_bastion_without_a_head() -> None:
    gone = instance(1, role="head", State={"Name": "terminated"})
    pc = tags(**{"parallelcluster__cluster-name": "pc", "parallelcluster__node-type": "Compute"})
    with pytest.raises(TrainiumError, match="bastion is head, but cluster 'pc' has no running head; start it or name"):
        plan(instance(5, Tags=pc), bastion="head")
    # Nobody is behind it either.
    assert [node.variables["head_state"] for node in plan(gone, bastion="head")] == [""]


def test_the_head_as_bastion_is_the_way_of_the_others_alone() -> None:
    head = instance(1, role="head", PublicIpAddress="203.0.113.1")
    nodes = plan(head, instance(2, PublicIpAddress="203.0.113.2"), bastion="head")
    assert nodes[0].variables["ansible_host"] == "203.0.113.1"
    assert nodes[1].variables["ansible_ssh_common_args"].endswith("-o ProxyJump=203.0.113.1")
