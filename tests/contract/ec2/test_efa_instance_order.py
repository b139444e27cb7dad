"""What a stop and a start change in a set of nodes: nothing that a rank, a head or a choice follows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

Account = Any
REPOSITORY = Path(__file__).resolve().parents[3]


def listing(cloud: Account, folder: Path) -> dict[str, Any]:
    """What the inventory shows."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "ANSIBLE_"))}
    environment.update(
        AWS_ENDPOINT_URL=cloud.api.url,
        AWS_ACCESS_KEY_ID="testing-id",
        AWS_SECRET_ACCESS_KEY="testing-secret",
        AWS_EC2_METADATA_DISABLED="true",
        ANSIBLE_CONFIG=str(REPOSITORY / "ansible.cfg"),
        ANSIBLE_HOME=str(folder / "ansible"),
        TRAINIUM_CLUSTER_NAME="bert",
    )
    program = Path(sys.executable).with_name("ansible-inventory")
    command = [str(program), "-i", str(REPOSITORY / "inventory" / "nodes.yml"), "--list"]
    command += ["-e", "trainium_cluster_name=bert"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600, check=True)
    inventory: dict[str, Any] = json.loads(done.stdout)
    return inventory


def ranks(cloud: Account, folder: Path) -> list[str]:
    """The ids of the nodes by the ranks that the inventory gives them."""
    inventory = listing(cloud, folder)
    hosts = inventory["_meta"]["hostvars"]
    by_rank = sorted(inventory["compute"]["hosts"], key=lambda name: int(hosts[name]["node_rank"]))
    assert inventory["head"]["hosts"] == by_rank[:1]
    return [hosts[name]["instance_id"] for name in by_rank]


def test_a_stop_and_a_start_keep_order_ranks_and_head(cloud: Account, tmp_path: Path) -> None:
    cloud.efa(count=2)
    before = cloud.efa(count=3)["instance_ids"]
    launched = {item["InstanceId"]: item["LaunchTime"] for item in cloud.instances()}
    cloud.efa(count=3, state="stopped")
    after = cloud.efa(count=3)
    # The test says something only where EC2 has set LaunchTime anew.
    assert all(item["LaunchTime"] > launched[item["InstanceId"]] for item in cloud.instances())
    assert after["instance_ids"] == before
    assert ranks(cloud, tmp_path) == before
    fewer = cloud.efa(count=2, allow_shrink=True)
    assert fewer["terminated"] == before[2:]
    assert fewer["instance_ids"] == before[:2]


def test_while_the_first_node_is_stopped_there_is_no_head(cloud: Account, tmp_path: Path) -> None:
    first, second = cloud.efa(count=2)["instance_ids"]
    cloud.ec2.stop_instances(InstanceIds=[first])
    cloud.api.clear_calls()
    inventory = listing(cloud, tmp_path)
    assert [call["action"] for call in cloud.api.calls()] == ["DescribeInstances"]
    ((name, node),) = inventory["_meta"]["hostvars"].items()
    assert (node["instance_id"], node["node_rank"], node["head_state"]) == (second, 0, "stopped")
    assert inventory["compute"]["hosts"] == [name]
    assert "hosts" not in inventory.get("head", {})


def test_those_that_leave_go_before_newer_ones_and_no_others_with_them(cloud: Account) -> None:
    nodes = cloud.efa(count=3)["instance_ids"]
    said = cloud.refused(count=1, allow_shrink=True, leaving=nodes[1:2])
    assert f"a count of 1 would terminate {nodes[2]}, and nobody looked whether jobs run there" in said
    fewer = cloud.efa(count=2, allow_shrink=True, leaving=nodes[1:2])
    assert (fewer["terminated"], fewer["instance_ids"]) == (nodes[1:2], [nodes[0], nodes[2]])
    assert not cloud.efa(count=2, allow_shrink=True, leaving=[])["changed"]


def test_nodes_are_launched_again_when_ec2_shows_the_earlier_ones_no_more(cloud: Account) -> None:
    evening = cloud.efa(count=2)["instance_ids"]
    cloud.efa(state="absent")
    # Terminated instances, and so the generation, are shown for about an hour; the token is remembered for longer.
    keys = {tag["Key"] for item in cloud.instances("terminated") for tag in item["Tags"]}
    cloud.client("ec2").delete_tags(Resources=evening, Tags=[{"Key": key} for key in keys])
    morning = cloud.efa(count=2)
    assert [attempt["outcome"] for attempt in morning["attempts"]] == ["replayed", "launched"]
    assert len(morning["instance_ids"]) == 2
    assert not set(morning["instance_ids"]) & set(evening)
