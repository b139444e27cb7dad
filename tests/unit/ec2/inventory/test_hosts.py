"""From DescribeInstances to hosts: what is kept, the order, the ranks, the groups and the way there."""

from __future__ import annotations

import json
import random
import shlex
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.hosts import (
    Node,
    Options,
    clusters,
    group_name,
    host_name,
    plan_nodes,
    reduce_instance,
)
from hypothesis import given
from hypothesis import strategies as st

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def instance(number: int, **changes: Any) -> dict[str, Any]:
    """An item of DescribeInstances as EC2 sends it: one plain and eight EFA interfaces."""
    cluster, role = changes.pop("cluster", "bert"), changes.pop("role", "compute")
    return {
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "trn1.32xlarge",
        "ImageId": "ami-0123456789abcdef0",
        "State": {"Code": 16, "Name": "running"},
        "Placement": {"AvailabilityZone": "us-west-2a", "GroupName": "bert-pg", "Tenancy": "default"},
        "PrivateIpAddress": f"192.0.2.{number}",
        "PrivateDnsName": f"ip-192-0-2-{number}.us-west-2.compute.internal",
        "PublicDnsName": "",
        "SubnetId": "subnet-0123456789abcdef0",
        "LaunchTime": START,
        "AmiLaunchIndex": number,
        "NetworkInterfaces": [{"InterfaceType": "interface", "Groups": [{"GroupId": "sg-1"}]}]
        + [{"InterfaceType": "efa"}] * 7
        + [{"InterfaceType": "efa-only"}],
        "Tags": [{"Key": "trainium:cluster", "Value": cluster}, {"Key": "trainium:role", "Value": role}],
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1"}],
        **changes,
    }


def plan(*instances: dict[str, Any], **options: Any) -> list[Node]:
    return plan_nodes([reduce_instance(item, "us-west-2") for item in instances], Options(**options))


def test_a_record_is_small_flat_and_fits_any_cache() -> None:
    record = reduce_instance(instance(5), "us-west-2")
    assert json.loads(json.dumps(record)) == record
    assert len(json.dumps(record)) < 1000
    assert record["efa_interface_count"] == 8
    assert record["launch_time"] == "2026-01-02T03:04:05.000+00:00"


def test_nodes_of_eks_have_their_names_in_kubernetes() -> None:
    """Which is the private name of their instances; no group of Slurm's has them."""
    eks = [{"Key": key, "Value": value} for key, value in (("trainium:cluster", "bert"), ("eks:cluster-name", "bert"))]
    tags = [*eks, {"Key": "trainium:role", "Value": "kubernetes"}]
    found = plan(instance(5, Tags=tags), instance(6, Tags=tags), instance(7, cluster="slurm"))
    assert [node.name for node in found] == [
        "ip-192-0-2-5.us-west-2.compute.internal",
        "ip-192-0-2-6.us-west-2.compute.internal",
        "ip-192-0-2-7",
    ]
    assert not {"compute", "head"} & {*found[0].groups, *found[1].groups} and "cluster_bert" in found[0].groups


def test_an_instance_of_which_ec2_says_little() -> None:
    (node,) = plan({"InstanceId": "i-1", "State": {"Name": "pending"}})
    assert node.name == "i-1"
    assert "ansible_host" not in node.variables
    assert node.groups == []


def test_host_variables_and_groups() -> None:
    (node,) = plan(instance(5))
    assert node.name == "ip-192-0-2-5"
    assert node.groups == [
        "compute",
        "head",
        "cluster_bert",
        "type_trn1_32xlarge",
        "zone_us_west_2a",
        "placement_group_bert_pg",
    ]
    wanted = {
        "ansible_host": "192.0.2.5",
        "node_rank": 0,
        "master_addr": "192.0.2.5",
        "private_address": "192.0.2.5",
        "private_dns_name": "ip-192-0-2-5.us-west-2.compute.internal",
        "efa_interface_count": 8,
        "instance_id": "i-00000000000000005",
        "instance_type": "trn1.32xlarge",
        "availability_zone": "us-west-2a",
        "cluster_name": "bert",
    }
    assert {key: node.variables[key] for key in wanted} == wanted


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_ranks_are_a_stable_order(launches: list[tuple[int, int]], shuffler: random.Random) -> None:
    """Whatever the order of the answer: by launch time, then index, then id; ranks 0 to n-1; one master."""
    instances = [
        instance(number, LaunchTime=START + timedelta(hours=hour), AmiLaunchIndex=index)
        for number, (hour, index) in enumerate(launches)
    ]
    wanted = [i["InstanceId"] for i in sorted(instances, key=lambda i: (i["LaunchTime"], i["AmiLaunchIndex"]))]
    shuffler.shuffle(instances)
    nodes = plan(*instances)
    assert [node.variables["instance_id"] for node in nodes] == wanted
    assert [node.variables["node_rank"] for node in nodes] == list(range(len(nodes)))
    assert {node.variables["master_addr"] for node in nodes} == {nodes[0].variables["private_address"]}
    assert [node for node in nodes if "head" in node.groups] == nodes[:1]


def test_adding_nodes_moves_no_rank() -> None:
    first = [instance(number) for number in (7, 8)]
    later = [instance(number, LaunchTime=START + timedelta(minutes=1), AmiLaunchIndex=0) for number in (3, 4)]
    ranks = {node.name: node.variables["node_rank"] for node in plan(*later, *first)}
    assert ranks == {"ip-192-0-2-7": 0, "ip-192-0-2-8": 1, "ip-192-0-2-3": 2, "ip-192-0-2-4": 3}


def test_a_head_of_its_own_has_no_rank() -> None:
    nodes = {node.name: node for node in plan(instance(1, role="head"), instance(2), instance(3))}
    head = nodes["ip-192-0-2-1"]
    assert "head" in head.groups
    assert "compute" not in head.groups
    assert "node_rank" not in head.variables
    assert head.variables["master_addr"] == "192.0.2.2"
    assert "head" not in nodes["ip-192-0-2-2"].groups
    assert nodes["ip-192-0-2-2"].variables["node_rank"] == 0


LIVE = ("pending", "running")


@pytest.mark.parametrize("state", ["stopping", "stopped"])
@pytest.mark.parametrize("role", ["head", "compute"])
def test_while_the_head_is_stopped_no_other_node_takes_its_place(role: str, state: str) -> None:
    """Slurm's controller and its queue are on it, and Slurm's controller would be made anew where the head is."""
    stopped = instance(1, role=role, State={"Name": state})
    nodes = plan(stopped, instance(2), instance(3), states=LIVE)
    assert [node.name for node in nodes] == ["ip-192-0-2-2", "ip-192-0-2-3"]
    assert not any("head" in node.groups for node in nodes)
    assert {node.variables["head_state"] for node in nodes} == {state}
    # Whoever starts torchrun by them has no node that is missing.
    assert [node.variables["node_rank"] for node in nodes] == [0, 1]
    assert {node.variables["master_addr"] for node in nodes} == {"192.0.2.2"}
    # It may be asked for as well, and is the head when it runs again.
    assert plan(stopped, instance(2), states=(*LIVE, state))[0].variables["instance_state"] == state
    again = plan(instance(1, role=role), instance(2), states=LIVE)
    assert [node.variables["head_state"] for node in again] == ["running", "running"]
    assert "head" in again[0].groups


def test_a_head_that_runs_is_not_set_aside_by_one_that_is_stopped() -> None:
    """Whoever may tag an instance may give it an earlier place; or the one from before a replacement was kept."""
    nodes = plan(
        instance(1, role="head", State={"Name": "stopped"}), instance(2, role="head"), instance(3), states=LIVE
    )
    assert [(node.name, "head" in node.groups) for node in nodes] == [("ip-192-0-2-2", True), ("ip-192-0-2-3", False)]
    assert {node.variables["head_state"] for node in nodes} == {"running"}


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_a_head_that_is_gone_has_a_successor(state: str) -> None:
    nodes = plan(instance(1, State={"Name": state}), instance(2), states=LIVE)
    assert [(node.variables["node_rank"], "head" in node.groups) for node in nodes] == [(0, True)]


def test_a_stopped_head_as_bastion_is_no_error_of_the_inventory() -> None:
    """Without the inventory compute.yml, which starts it, would not run."""
    nodes = plan(instance(1, role="head", State={"Name": "stopped"}), instance(2), bastion="head", states=LIVE)
    assert [node.name for node in nodes] == ["ip-192-0-2-2"]


def test_every_cluster_has_ranks_and_a_head_of_its_own() -> None:
    nodes = plan(instance(1, cluster="b"), instance(2, cluster="a"), instance(3, cluster="a"))
    assert [(node.name, node.variables["node_rank"], "head" in node.groups) for node in nodes] == [
        ("ip-192-0-2-2", 0, True),
        ("ip-192-0-2-3", 1, False),
        ("ip-192-0-2-1", 0, True),
    ]


def test_equal_names_never_hide_a_host() -> None:
    twin = instance(2, PrivateIpAddress="192.0.2.1", PrivateDnsName="ip-192-0-2-1.us-east-1.compute.internal")
    assert [node.name for node in plan(instance(1), twin)] == ["i-00000000000000001", "i-00000000000000002"]


def test_no_instances_are_no_hosts() -> None:
    assert plan() == []
    assert clusters([]) == []


@pytest.mark.parametrize(
    ("hostnames", "name"),
    [
        (["short-private-dns-name"], "ip-192-0-2-5"),
        (["private-dns-name"], "ip-192-0-2-5.us-west-2.compute.internal"),
        (["tag:Name", "private-ip-address"], "192.0.2.5"),
        (["tag:trainium:role"], "compute"),
        (["ip-address", "dns-name"], "i-00000000000000005"),
    ],
)
def test_host_names_by_preference(hostnames: list[str], name: str) -> None:
    assert host_name(reduce_instance(instance(5), "us-west-2"), hostnames) == name


def test_an_unknown_host_name_is_refused() -> None:
    with pytest.raises(TrainiumError, match="'fqdn', which is not one of short-private-dns-name"):
        plan(instance(5), hostnames=["fqdn"])


def test_group_names_are_variable_names() -> None:
    assert group_name("type", "trn1.32xlarge") == "type_trn1_32xlarge"
    assert group_name("placement_group", "a-b c/é") == "placement_group_a_b_c__"


@pytest.mark.parametrize(
    ("address", "bastion", "public", "host", "jump"),
    [
        ("auto", "", "", "192.0.2.5", None),
        ("auto", "", "203.0.113.5", "203.0.113.5", None),
        ("auto", "gate", "203.0.113.5", "192.0.2.5", "gate"),
        ("private", "", "203.0.113.5", "192.0.2.5", None),
        ("private", "ec2-user@gate:2222", "", "192.0.2.5", "ec2-user@gate:2222"),
        ("public", "gate", "203.0.113.5", "203.0.113.5", None),
        ("public", "gate", "", "192.0.2.5", "gate"),
        ("auto", "a@gate,[2001:db8::1]:22", "", "192.0.2.5", "a@gate,[2001:db8::1]:22"),
    ],
)
def test_the_way_to_a_node(address: str, bastion: str, public: str, host: str, jump: str | None) -> None:
    (node,) = plan(
        instance(5, PublicIpAddress=public), address=address, bastion=bastion, ssh_common_args="-F my.config"
    )
    assert node.variables["ansible_host"] == host
    arguments = shlex.split(node.variables["ansible_ssh_common_args"])
    assert arguments[:4] == ["-F", "my.config", "-o", "HostKeyAlias=i-00000000000000005"]
    assert arguments[4:8] == ["-o", "ServerAliveInterval=30", "-o", "StrictHostKeyChecking=accept-new"]
    assert arguments[8:] == ([] if jump is None else ["-o", f"ProxyJump={jump}"])
    # The ssh connection plugin expands it with its own directory.
    assert node.variables["ansible_control_path"] % {"directory": "/d"} == "/d/i-00000000000000005-%r"


def test_the_head_as_bastion_is_reached_directly() -> None:
    nodes = plan(instance(1, PublicIpAddress="203.0.113.1"), instance(2), bastion="ubuntu@head", address="private")
    assert nodes[0].variables["ansible_host"] == "203.0.113.1"
    assert "ProxyJump" not in nodes[0].variables["ansible_ssh_common_args"]
    assert nodes[1].variables["ansible_host"] == "192.0.2.2"
    assert nodes[1].variables["ansible_ssh_common_args"].endswith("-o ProxyJump=ubuntu@203.0.113.1")


def test_the_head_as_bastion_needs_a_public_address() -> None:
    with pytest.raises(TrainiumError, match="'bert' has no public address"):
        plan(instance(1), bastion="head")


@pytest.mark.parametrize("bastion", ["-oProxyCommand=touch", "a b", "a;b", "user@", "@host", "a,,b", "$(id)"])
def test_a_bastion_that_is_none_is_refused(bastion: str) -> None:
    with pytest.raises(TrainiumError, match="bastion is"):
        plan(instance(1), bastion=bastion)


def test_session_manager_needs_no_address() -> None:
    """The command is one word for ssh, whatever the region and the profile are called; ssh puts the port."""
    (node,) = plan(instance(5, PrivateIpAddress="192.0.2.5"), connection="ssm", profile="my 100% team's")
    assert node.variables["ansible_host"] == node.variables["instance_id"] == "i-00000000000000005"
    words = shlex.split(node.variables["ansible_ssh_common_args"])
    (command,) = [word.partition("=")[2] for word in words if word.startswith("ProxyCommand=")]
    assert shlex.split(command.replace("%p", "22").replace("%%", "%")) == [
        *("aws", "ssm", "start-session", "--target", "i-00000000000000005", "--region", "us-west-2"),
        *("--profile", "my 100% team's", "--document-name", "AWS-StartSSHSession", "--parameters", "portNumber=22"),
    ]
    assert "HostKeyAlias=i-00000000000000005" in words
    assert node.variables["private_address"] == "192.0.2.5"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"connection": "telnet"}, "connection is 'telnet'; use ssh or ssm"),
        ({"connection": "ssm", "bastion": "jump"}, "connection ssm needs none"),
    ],
)
def test_a_connection_that_cannot_be(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(TrainiumError, match=sentence):
        plan(instance(5), **options)


def test_a_bastion_that_was_made_is_the_way_and_no_host() -> None:
    bastion = instance(9, role="bastion", PublicIpAddress="203.0.113.9")
    options = {"bastion": "create", "private_key_file": "/keys/my key", "known_hosts": "/pins"}
    (node,) = plan(instance(5), bastion, pinned={bastion["InstanceId"]: "ssh-ed25519"}, **options)
    assert node.variables["ansible_host"] == "192.0.2.5"
    words = shlex.split(node.variables["ansible_ssh_common_args"])
    (command,) = [word.partition("=")[2] for word in words if word.startswith("ProxyCommand=")]
    assert shlex.split(command) == [
        *("ssh", "-o", "HostKeyAlias=i-00000000000000009", "-o", 'UserKnownHostsFile="/pins"'),
        *("-o", "HostKeyAlgorithms=ssh-ed25519", "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes"),
        *("-i", "/keys/my key", "-o", "ServerAliveInterval=30", "ubuntu@203.0.113.9", "-W", "[%h]:%p"),
    ]


def test_without_the_bastion_there_is_no_jump_yet() -> None:
    (node,) = plan(instance(5), bastion="create")
    assert "Proxy" not in node.variables["ansible_ssh_common_args"]
    assert plan(instance(9, role="bastion")) == []
