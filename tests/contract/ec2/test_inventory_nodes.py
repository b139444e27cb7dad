"""trainium.cluster.nodes as a user runs it: ansible-inventory and ansible-playbook against the API over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
REGION = "us-west-2"
NODES = REPOSITORY / "inventory" / "nodes.yml"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Cluster:
    """Nodes in the account of the fixture ``cloud``."""

    def __init__(self, cloud: Any) -> None:
        self.api, self.ec2 = cloud.api, cloud.ec2
        self.subnet, self.group, self.image = cloud.subnets[0], cloud.group, cloud.image
        self.second = 0

    def launch(self, name: str, count: int = 1, role: str = "compute", **tags: str) -> list[dict[str, Any]]:
        """Start nodes with eight EFA interfaces, never in the same second as the last ones: EC2 counts in seconds."""
        while int(time.time()) <= self.second:
            time.sleep(0.05)
        tags = {"trainium:cluster": name, "trainium:role": role, **tags}
        reply = self.ec2.run_instances(
            ImageId=self.image,
            InstanceType="trn1.32xlarge",
            MinCount=count,
            MaxCount=count,
            NetworkInterfaces=[
                {
                    "NetworkCardIndex": card,
                    "DeviceIndex": min(card, 1),
                    "InterfaceType": "efa",
                    "SubnetId": self.subnet,
                    "Groups": [self.group],
                }
                for card in range(8)
            ],
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
            ],
        )
        # The second in which the last one was attached, as far as it can be: the answer comes after it.
        self.second = int(time.time())
        return list(reply["Instances"])


@pytest.fixture
def account(cloud: Any) -> Cluster:
    """An account with a network and no instance."""
    return Cluster(cloud)


@pytest.fixture
def run(cloud: Any, tmp_path: Path) -> Run:
    """Run an Ansible program with an environment of its own."""

    def run_program(program: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {
            key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "ANSIBLE_", "TRAINIUM_"))
        }
        clean |= {
            "HOME": str(tmp_path),
            "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
            "ANSIBLE_HOME": str(tmp_path / "ansible"),
            "AWS_ENDPOINT_URL": cloud.api.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        return subprocess.run(
            [str(Path(sys.executable).parent / program), *map(str, arguments)],
            env={**clean, **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run_program


def listing(
    run: Run, *arguments: object, source: Path = NODES, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    done = run("ansible-inventory", "-i", source, "--list", *arguments, **(environment or {}))
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout))


def hosts(inventory: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return dict(inventory["_meta"]["hostvars"])


def source(folder: Path, text: str) -> Path:
    path = folder / "nodes.yml"
    path.write_text(f"plugin: trainium.cluster.nodes\n{text}", encoding="utf-8")
    return path


def test_groups_and_host_variables(account: Cluster, run: Run) -> None:
    first = account.launch("trainium", 2)
    later = account.launch("trainium", 1)
    account.launch("other", 1)
    gone = account.launch("trainium", 1)
    account.ec2.terminate_instances(InstanceIds=[gone[0]["InstanceId"]])

    inventory = listing(run)
    names = ["ip-" + node["PrivateIpAddress"].replace(".", "-") for node in [*first, *later]]
    assert inventory["compute"]["hosts"] == names
    assert inventory["cluster_trainium"]["hosts"] == names
    assert inventory["type_trn1_32xlarge"]["hosts"] == names
    zone = first[0]["Placement"]["AvailabilityZone"]
    assert inventory["zone_" + zone.replace("-", "_")]["hosts"] == names
    assert inventory["head"]["hosts"] == names[:1]
    assert sorted(hosts(inventory)) == sorted(names)
    for rank, (name, node) in enumerate(zip(names, [*first, *later])):
        variables = hosts(inventory)[name]
        wanted = {
            "ansible_host": node["PrivateIpAddress"],
            "node_rank": rank,
            "master_addr": first[0]["PrivateIpAddress"],
            "private_address": node["PrivateIpAddress"],
            "efa_interface_count": 8,
            "instance_id": node["InstanceId"],
            "instance_type": "trn1.32xlarge",
            "availability_zone": zone,
            "cluster_name": "trainium",
        }
        assert {key: variables[key] for key in wanted} == wanted
        assert variables["private_dns_name"].partition(".")[0] == name
        assert variables["ansible_ssh_common_args"].startswith(f"-o HostKeyAlias={node['InstanceId']} -o ServerAlive")

    graph = run("ansible-inventory", "-i", NODES, "--graph")
    assert graph.returncode == 0
    assert [line for line in graph.stdout.splitlines() if line.endswith(names[2])] == [f"  |  |--{names[2]}"] * 4


def test_the_cluster_is_chosen_by_extra_variable_or_environment(account: Cluster, run: Run) -> None:
    account.launch("one")
    account.launch("two", 2)
    assert (
        listing(run, "-e", "trainium_cluster_name=two")["compute"]["hosts"]
        == listing(run, environment={"TRAINIUM_CLUSTER_NAME": "two"})["cluster_two"]["hosts"]
    )
    (host,) = hosts(
        listing(run, "-e", "trainium_cluster_name=one", environment={"TRAINIUM_CLUSTER_NAME": "two"})
    ).values()
    assert host["cluster_name"] == "one"
    assert hosts(listing(run, "-e", "trainium_cluster_name=two", "-e", "trainium_region=us-east-1")) == {}


def test_without_a_name_every_cluster_has_its_own_ranks(account: Cluster, run: Run, tmp_path: Path) -> None:
    account.launch("one", 2)
    account.launch("two", 1)
    inventory = listing(run, source=source(tmp_path, ""))
    ranks = sorted((host["cluster_name"], host["node_rank"]) for host in hosts(inventory).values())
    assert ranks == [("one", 0), ("one", 1), ("two", 0)]
    assert len(inventory["head"]["hosts"]) == 2


def test_instances_are_filtered_by_the_api_in_large_pages(account: Cluster, run: Run) -> None:
    account.launch("trainium", 100)
    account.api.clear_calls()
    assert len(hosts(listing(run))) == 100
    (call,) = account.api.calls()
    assert call["action"] == "DescribeInstances"
    text = json.dumps(call["parameters"])
    for part in ("tag:trainium:cluster", "instance-state-name", "pending", "running", "1000"):
        assert part in text


def test_an_empty_account_has_empty_groups_and_plays_run(account: Cluster, run: Run, tmp_path: Path) -> None:
    play = tmp_path / "play.yml"
    play.write_text(
        "- hosts: compute:head\n  tasks: []\n- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.assert:\n        that: groups['head'] == [] and groups['compute'] == []\n",
        encoding="utf-8",
    )
    done = run("ansible-playbook", "-i", NODES, play)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Could not match supplied host pattern" not in done.stderr


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "http://127.0.0.1:9 cannot be reached; check the network"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "no AWS credentials were found; set AWS_PROFILE"),
        ({"AWS_PROFILE": "none", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "profile (none) could not be"),
    ],
)
def test_no_way_to_the_api_is_one_sentence(run: Run, environment: dict[str, str], sentence: str) -> None:
    done = run("ansible-inventory", "-i", NODES, "--list", ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="1", **environment)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("RequestExpired", "the credentials or this machine's clock are out of date; log in again"),
        ("UnauthorizedOperation", "the credentials lack the permission ec2:DescribeInstances; have it granted"),
        ("SomethingNew", "Cannot list the nodes in us-west-2: for the test (SomethingNew)."),
    ],
)
def test_a_refusal_of_the_api_is_one_sentence(account: Cluster, run: Run, code: str, sentence: str) -> None:
    account.api.fault("DescribeInstances", code)
    done = run("ansible-inventory", "-i", NODES, "--list", ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="1")
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hostnames: [fqdn]", "hostnames holds 'fqdn', which is not one of"),
        ("bastion: -oProxyCommand=x", "bastion is '-oProxyCommand=x', which is not host"),
        ("bastion: head", "has no public address; give it one or name another bastion."),
        ("cluster_name: 'train*'", "cluster_name is 'train*'; a cluster's name has no wildcards."),
    ],
)
def test_wrong_options_are_one_sentence(account: Cluster, run: Run, tmp_path: Path, text: str, sentence: str) -> None:
    account.launch("trainium")
    done = run("ansible-inventory", "-i", source(tmp_path, text), "--list")
    assert sentence in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_bastion_is_a_proxy_jump(account: Cluster, run: Run) -> None:
    (node,) = account.launch("trainium")
    (variables,) = hosts(listing(run, "-e", "trainium_bastion=ubuntu@192.0.2.10")).values()
    assert variables["ansible_host"] == node["PrivateIpAddress"]
    assert variables["ansible_ssh_common_args"].endswith("-o ProxyJump=ubuntu@192.0.2.10")


def test_session_manager_is_a_proxy_command(account: Cluster, run: Run) -> None:
    (node,) = account.launch("trainium")
    (variables,) = hosts(listing(run, "-e", "trainium_connection=ssm")).values()
    assert variables["ansible_host"] == node["InstanceId"]
    assert f"ProxyCommand=aws ssm start-session --target {node['InstanceId']}" in variables["ansible_ssh_common_args"]


def test_a_public_address_is_used_unless_told_otherwise(account: Cluster, run: Run, tmp_path: Path) -> None:
    (node,) = account.launch("trainium")
    (primary,) = [nic for nic in node["NetworkInterfaces"] if nic["Attachment"].get("NetworkCardIndex", 0) == 0]
    address = account.ec2.allocate_address(Domain="vpc")
    account.ec2.associate_address(
        AllocationId=address["AllocationId"], NetworkInterfaceId=primary["NetworkInterfaceId"]
    )
    try:
        (variables,) = hosts(listing(run)).values()
        assert variables["ansible_host"] == variables["public_address"] == address["PublicIp"]
        (variables,) = hosts(listing(run, source=source(tmp_path, "address: private"))).values()
        assert variables["ansible_host"] == node["PrivateIpAddress"]
        (variables,) = hosts(listing(run, source=source(tmp_path, "bastion: ubuntu@head"))).values()
        assert variables["ansible_host"] == address["PublicIp"]
    finally:
        account.ec2.terminate_instances(InstanceIds=[node["InstanceId"]])
        account.ec2.release_address(AllocationId=address["AllocationId"])


def test_login_follows_the_public_variables(account: Cluster, run: Run) -> None:
    account.launch("trainium")
    template = "msg={{ ansible_user }}:{{ ansible_ssh_private_key_file }}"
    arguments = ("ansible", "-i", NODES, "compute", "-o", "-m", "ansible.builtin.debug", "-a", template)
    assert "ubuntu:~/.ssh/id_ed25519" in run(*arguments).stdout
    chosen = run(*arguments, "-e", "trainium_ssh_user=ec2-user", "-e", "trainium_ssh_private_key_file=/keys/one")
    assert "ec2-user:/keys/one" in chosen.stdout


def test_constructed_groups_and_variables(account: Cluster, run: Run, tmp_path: Path) -> None:
    account.launch("trainium", Team="speech")
    account.launch("trainium", Team="vision")
    inventory = listing(
        run,
        source=source(
            tmp_path,
            "filters: {'tag:Team': [speech, vision]}\n"
            "keyed_groups: [{key: instance_tags.Team, prefix: team}]\n"
            "groups: {first: node_rank == 0}\n"
            "compose: {number: node_rank + 1}\n"
            "hostnames: ['tag:Team']\n"
            "strict: true\n",
        ),
    )
    assert inventory["team_speech"]["hosts"] == inventory["first"]["hosts"] == ["speech"]
    assert hosts(inventory)["vision"]["number"] == 2


def test_the_cache_serves_the_same_question_only(account: Cluster, run: Run, tmp_path: Path) -> None:
    account.launch("one")
    account.launch("two")
    cache = {
        "ANSIBLE_INVENTORY_CACHE": "1",
        "ANSIBLE_INVENTORY_CACHE_PLUGIN": "ansible.builtin.jsonfile",
        "ANSIBLE_INVENTORY_CACHE_CONNECTION": str(tmp_path / "cache"),
    }
    asked = listing(run, "-e", "trainium_cluster_name=one", environment=cache)
    account.api.clear_calls()
    assert listing(run, "-e", "trainium_cluster_name=one", environment=cache) == asked
    assert account.api.calls() == []
    assert hosts(listing(run, "-e", "trainium_cluster_name=two", environment=cache)) != hosts(asked)
    assert len(account.api.calls()) == 1
    assert listing(run, "-e", "trainium_cluster_name=one", "--flush-cache", environment=cache) == asked
    assert len(account.api.calls()) == 2
    assert all(len(entry.read_text(encoding="utf-8")) < 2000 for entry in (tmp_path / "cache").iterdir())


def test_what_the_cache_has_needs_no_sdk(account: Cluster, run: Run, tmp_path: Path) -> None:
    account.launch("trainium", 2)
    cache = f"cache: true\ncache_plugin: ansible.builtin.jsonfile\ncache_connection: {tmp_path}/cache\n"
    path = source(tmp_path, f"regions: [{REGION}]\n{cache}")
    found = listing(run, source=path)
    done = run("ansible-inventory", "-i", path, "--list", PYTHONPROFILEIMPORTTIME="1")
    assert json.loads(done.stdout) == found
    assert "ansible.plugins.inventory" in done.stderr
    assert "botocore" not in done.stderr


def test_a_tag_is_never_a_template(account: Cluster, run: Run, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    account.launch("trainium", Name="{{ lookup('ansible.builtin.pipe', 'touch " + str(mark) + "') }}")
    done = run("ansible", "-i", NODES, "compute", "-m", "ansible.builtin.debug", "-a", "var=instance_tags.Name")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ansible.builtin.pipe" in done.stdout
    assert not mark.exists()
