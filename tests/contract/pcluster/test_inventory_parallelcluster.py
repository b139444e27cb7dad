"""trainium.cluster.nodes with the instances of ParallelClusters, as ansible-inventory shows them over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract.ec2.test_inventory_nodes import NODES, Run, hosts, listing, run, source

__all__ = ["run"]  # a fixture

# DynamoDB ends a page at 1 MiB.
FILLING = "x" * 300_000


class Account:
    """ParallelClusters in the account of the fixture ``cloud``."""

    def __init__(self, cloud: Any) -> None:
        self.cloud, self.api, self.ec2 = cloud, cloud.api, cloud.ec2
        self.tables = cloud.client("dynamodb")

    def launch(self, kind: str, count: int = 1, cluster: str = "demo", own: bool = True, **tags: str) -> list[Any]:
        """Instances tagged as ParallelCluster does it; ``own``: with the tag that the role adds to the cluster."""
        every = {
            "parallelcluster:cluster-name": cluster,
            "parallelcluster:node-type": kind,
            **{f"parallelcluster:{key.replace('_', '-')}": value for key, value in tags.items()},
            **({"trainium:cluster": cluster, "trainium:role": "parallelcluster"} if own else {}),
        }
        marks = [{"Key": key, "Value": value} for key, value in every.items()]
        reply = self.ec2.run_instances(
            ImageId=self.cloud.image,
            InstanceType="trn1.32xlarge" if kind == "Compute" else "m5.xlarge",
            MinCount=count,
            MaxCount=count,
            SubnetId=self.cloud.subnets[0],
            TagSpecifications=[{"ResourceType": "instance", "Tags": marks}],
        )
        return list(reply["Instances"])

    def compute(self, count: int, cluster: str = "demo", queue: str = "train", own: bool = True) -> list[Any]:
        return self.launch("Compute", count, cluster, own, queue_name=queue, compute_resource_name="trn1")

    def table(self, names: dict[str, str], cluster: str = "demo", **more: Any) -> None:
        """The cluster's table: name in Slurm -> instance id."""
        name = f"parallelcluster-slurm-{cluster}"
        self.tables.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        for node, instance in names.items():
            item = {"Id": {"S": node}, "InstanceId": {"S": instance}, "HostName": {"S": node}, **more}
            self.tables.put_item(TableName=name, Item=item)

    def reads(self) -> list[str]:
        return [call["action"] for call in self.api.calls()]


@pytest.fixture
def account(cloud: Any) -> Account:
    """An account with a network and no instance."""
    return Account(cloud)


def short(instance: Any) -> str:
    return str(instance["PrivateDnsName"].partition(".")[0])


def degraded(run: Run, folder: Path) -> tuple[str, str]:
    """What ansible-inventory prints when it also warns."""
    done = run("ansible-inventory", "-i", source(folder, "cluster_name: demo"), "--list", COLUMNS="400")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_the_nodes_of_a_cluster(account: Account, run: Run) -> None:
    (head,) = account.launch("HeadNode")
    (login,) = account.launch("LoginNode")
    static, dynamic = account.compute(1)[0], account.compute(1, queue="test")[0]
    gone = account.compute(1)[0]
    account.ec2.terminate_instances(InstanceIds=[gone["InstanceId"]])
    account.table(
        {
            "train-st-trn1-1": static["InstanceId"],
            "test-dy-trn1-7": dynamic["InstanceId"],
            "train-dy-trn1-2": gone["InstanceId"],
            "train-dy-trn1-3": "i-0123456789abcdef0",
        }
    )
    inventory = listing(run, "-e", "trainium_cluster_name=demo")
    assert inventory["head"]["hosts"] == [short(head)]
    assert inventory["login"]["hosts"] == [short(login)]
    assert sorted(inventory["compute"]["hosts"]) == ["test-dy-trn1-7", "train-st-trn1-1"]
    assert inventory["queue_train"]["hosts"] == ["train-st-trn1-1"]
    assert inventory["queue_test"]["hosts"] == ["test-dy-trn1-7"]
    assert inventory["compute_resource_trn1"]["hosts"] == inventory["compute"]["hosts"]
    assert len(inventory["cluster_demo"]["hosts"]) == len(hosts(inventory)) == 4
    variables = hosts(inventory)["test-dy-trn1-7"]
    wanted = {
        "ansible_host": dynamic["PrivateIpAddress"],
        "instance_id": dynamic["InstanceId"],
        "slurm_node_name": "test-dy-trn1-7",
        "slurm_node_kind": "dynamic",
        "queue": "test",
        "compute_resource": "trn1",
        "cluster_name": "demo",
        "node_role": "compute",
    }
    assert {key: variables[key] for key in wanted} == wanted
    assert hosts(inventory)["train-st-trn1-1"]["slurm_node_kind"] == "static"
    assert {hosts(inventory)[name]["node_rank"] for name in inventory["compute"]["hosts"]} == {0, 1}


def test_calls_do_not_grow_with_the_nodes(account: Account, run: Run) -> None:
    nodes = account.compute(40)
    account.table({f"train-dy-trn1-{number}": node["InstanceId"] for number, node in enumerate(nodes, 1)})
    account.api.clear_calls()
    inventory = listing(run, "-e", "trainium_cluster_name=demo")
    assert len(inventory["queue_train"]["hosts"]) == 40
    assert account.reads() == ["DescribeInstances", "Scan"]


def test_a_table_of_several_pages_is_read_to_its_end(account: Account, run: Run) -> None:
    nodes = account.compute(6)
    names = {f"train-dy-trn1-{number}": node["InstanceId"] for number, node in enumerate(nodes, 1)}
    account.table(names, Filling={"S": FILLING})
    account.api.clear_calls()
    inventory = listing(run, "-e", "trainium_cluster_name=demo")
    assert sorted(inventory["compute"]["hosts"]) == sorted(names)
    assert account.reads().count("Scan") == 2


def test_a_cluster_without_living_compute_nodes_costs_no_read(account: Account, run: Run) -> None:
    account.launch("HeadNode")
    account.ec2.terminate_instances(InstanceIds=[account.compute(1)[0]["InstanceId"]])
    account.api.clear_calls()
    assert len(hosts(listing(run, "-e", "trainium_cluster_name=demo"))) == 1
    assert account.reads() == ["DescribeInstances"]


def test_without_the_table_one_warning(account: Account, run: Run, tmp_path: Path) -> None:
    nodes = account.compute(3)
    output, errors = degraded(run, tmp_path)
    assert all(f'"{short(node)}"' in output for node in nodes)
    assert errors.count("WARNING") == 1
    assert "there is no table parallelcluster-slurm-demo in us-west-2" in " ".join(errors.split())


def test_without_the_permission_one_warning(account: Account, run: Run, tmp_path: Path) -> None:
    (node,) = account.compute(1)
    account.table({"train-st-trn1-1": node["InstanceId"]})
    account.api.fault("Scan", "AccessDeniedException", service="dynamodb")
    output, errors = degraded(run, tmp_path)
    assert f'"{short(node)}"' in output
    assert errors.count("WARNING") == 1
    assert "lack the permission dynamodb:Scan for the table parallelcluster-slurm-demo" in " ".join(errors.split())


def test_another_failure_of_the_table_never_changes_names(account: Account, run: Run, tmp_path: Path) -> None:
    account.table({"train-st-trn1-1": account.compute(1)[0]["InstanceId"]})
    account.api.fault("Scan", "ValidationException", service="dynamodb")
    arguments = ("ansible-inventory", "-i", NODES, "--list", "-e", "trainium_cluster_name=demo")
    done = run(*arguments, ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="1")
    assert done.returncode != 0
    assert "Cannot list the nodes in us-west-2: for the test (ValidationException)." in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_cache_keeps_the_names(account: Account, run: Run, tmp_path: Path) -> None:
    account.table({"train-st-trn1-1": account.compute(1)[0]["InstanceId"]})
    cache = {
        "ANSIBLE_INVENTORY_CACHE": "1",
        "ANSIBLE_INVENTORY_CACHE_PLUGIN": "ansible.builtin.jsonfile",
        "ANSIBLE_INVENTORY_CACHE_CONNECTION": str(tmp_path / "cache"),
    }
    asked = listing(run, "-e", "trainium_cluster_name=demo", environment=cache)
    account.api.clear_calls()
    assert listing(run, "-e", "trainium_cluster_name=demo", environment=cache) == asked
    assert account.reads() == []
    assert "train-st-trn1-1" in hosts(asked)


def test_a_cluster_made_elsewhere_is_found_by_a_filter(account: Account, run: Run, tmp_path: Path) -> None:
    account.table({"train-st-trn1-1": account.compute(1, own=False)[0]["InstanceId"]})
    account.compute(1, cluster="other", own=False)
    text = "filters:\n  tag-key: parallelcluster:node-type\n  tag:parallelcluster:cluster-name: demo\n"
    (name,) = hosts(listing(run, source=source(tmp_path, text)))
    assert name == "train-st-trn1-1"


def test_the_head_is_the_bastion(account: Account, run: Run) -> None:
    (head,) = account.launch("HeadNode")
    (node,) = account.compute(1)
    account.table({"train-st-trn1-1": node["InstanceId"]})
    address = account.ec2.allocate_address(Domain="vpc")
    account.ec2.associate_address(AllocationId=address["AllocationId"], InstanceId=head["InstanceId"])
    found = hosts(listing(run, "-e", "trainium_cluster_name=demo", "-e", "trainium_bastion=ubuntu@head"))
    assert found[short(head)]["ansible_host"] == address["PublicIp"]
    assert found["train-st-trn1-1"]["ansible_host"] == node["PrivateIpAddress"]
    assert found["train-st-trn1-1"]["ansible_ssh_common_args"].endswith(f"-o ProxyJump=ubuntu@{address['PublicIp']}")
