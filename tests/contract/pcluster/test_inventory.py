"""trainium.cluster.nodes and a cluster of the real pcluster: its own launch templates, tags and table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.contract.conftest import REGION

REPOSITORY = Path(__file__).resolve().parents[3]
TAGS = [{"Key": "trainium:cluster", "Value": "demo"}, {"Key": "trainium:role", "Value": "parallelcluster"}]


def _resume(site: Any, names: list[str]) -> dict[str, Any]:
    """Start nodes as the head does when Slurm asks it to: by the template, then the names into the table."""
    launched = site.ec2.run_instances(
        LaunchTemplate={"LaunchTemplateName": "demo-train-trn1", "Version": "$Latest"},
        MinCount=len(names),
        MaxCount=len(names),
    )["Instances"]
    nodes = dict(zip(names, launched))
    for name, instance in nodes.items():
        item = {"Id": {"S": name}, "InstanceId": {"S": instance["InstanceId"]}}
        site.client("dynamodb").put_item(TableName="parallelcluster-slurm-demo", Item=item)
    return nodes


def test_the_nodes_of_a_cluster_by_their_names_in_slurm(site: Any, tmp_path: Path) -> None:
    configuration = site.configuration(Tags=TAGS)
    configuration["HeadNode"]["Networking"]["ElasticIp"] = True
    given = ("--cluster-configuration", site.written(configuration), "--suppress-validators", "ALL")
    site.pcluster("create-cluster", "--cluster-name", "demo", *given)
    site.wait("demo", "CREATE_COMPLETE")
    nodes = _resume(site, ["train-st-trn1-1", "train-dy-trn1-1"])

    source = tmp_path / "nodes.yml"
    text = f"plugin: trainium.cluster.nodes\ncluster_name: demo\nregions: [{REGION}]\nbastion: ubuntu@head\n"
    source.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(source), "--list"],
        env={**site.variables, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    inventory = json.loads(done.stdout)
    found = inventory["_meta"]["hostvars"]
    (head,) = inventory["head"]["hosts"]
    assert sorted(inventory["compute"]["hosts"]) == sorted(inventory["queue_train"]["hosts"]) == sorted(nodes)
    assert sorted(inventory["cluster_demo"]["hosts"]) == sorted([head, *nodes])
    assert found["train-st-trn1-1"]["slurm_node_kind"] == "static"
    assert found["train-dy-trn1-1"]["slurm_node_kind"] == "dynamic"
    for name, instance in nodes.items():
        assert found[name]["ansible_host"] == instance["PrivateIpAddress"]
        jump = f"-o ProxyJump=ubuntu@{found[head]['public_address']}"
        assert found[name]["ansible_ssh_common_args"].endswith(jump)
        assert found[name]["efa_interface_count"] == 8
