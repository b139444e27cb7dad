"""The shared file system of a cluster: made with the network, found by the nodes, kept or deleted by the teardown."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.conftest import REPOSITORY
from tests.contract.network.conftest import Controller, changed

Item = dict[str, Any]
INCLUDE = {"name": "trainium.cluster.shared_storage", "public": True}


def systems(controller: Controller) -> list[Item]:
    found: list[Item] = controller.client("efs").describe_file_systems()["FileSystems"]
    return found


def targets(controller: Controller) -> list[Item]:
    efs = controller.client("efs")
    found = [efs.describe_mount_targets(FileSystemId=one["FileSystemId"]) for one in systems(controller)]
    return [target for page in found for target in page["MountTargets"]]


def mounts(controller: Controller, *options: str) -> Any:
    """What a node would mount that knows of the file system what the controller has found."""
    find = {"name": "Find", "ansible.builtin.include_role": {**INCLUDE, "tasks_from": "find"}}
    tell = {
        "name": "Tell",
        "ansible.builtin.debug": {"msg": "{{ 'MOUNTS ' ~ __shared_storage_plan.mounts | to_json }}"},
    }
    check = {"name": "Check", "ansible.builtin.include_role": {**INCLUDE, "tasks_from": "validate"}}
    system = {"distribution": "Ubuntu", "distribution_version": "24.04"}
    variables = {**controller.variables, "trainium_image_system": system}
    common = {"connection": "local", "gather_facts": False, "vars": variables}
    roles = [{"role": "trainium.cluster.trainium"}]
    path = controller.folder / "mounts.yml"
    plays = [
        {"name": "Controller", "hosts": "localhost", "roles": roles, "tasks": [find], **common},
        {"name": "Node", "hosts": "node", "roles": roles, "tasks": [check, tell], **common},
    ]
    path.write_text(json.dumps(plays))
    # Without an entry for localhost, as the inventory of a cluster is.
    return controller.run(path, "--inventory", "node,", *options)


def test_it_comes_with_the_network_and_goes_with_it_or_stays(controller: Controller) -> None:
    controller.variables.update(
        trainium_cluster_name="bert",
        trainium_public_ip="primary",
        trainium_shared_storage="efs",
        trainium_tags={"team": "speech"},
        network_address_service=f"{controller.api.url}/sandbox-api/address",
        shared_storage_mounts=[{"type": "nfs", "source": "files.example.com:/a", "path": "/a"}],
    )
    network = REPOSITORY / "playbooks" / "network.yml"
    options = ["-e", json.dumps(controller.variables)]
    (said,) = controller.cases(("shared_storage:find", {}))
    assert said.startswith("The cluster bert has no shared file system in us-west-2; run network.yml with")
    controller.limit("network")
    controller.api.limit("network", ["network", "efs"])
    assert changed(controller.run(network, *options)) > 0
    made_by = {f"elasticfilesystem:{name}" for name in ("CreateFileSystem", "CreateMountTarget", "TagResource")}
    assert made_by <= controller.api.used("network")
    (made,) = systems(controller)
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    owner = tags.pop("trainium:owner")
    assert tags == {"Name": "bert", "team": "speech", "trainium:cluster": "bert"}
    assert owner.startswith("arn:aws:")
    (group,) = controller.ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": ["bert-efa"]}])[
        "SecurityGroups"
    ]
    efs = controller.client("efs")
    private = controller.ec2.describe_subnets(Filters=[{"Name": "tag:trainium:subnet", "Values": ["private"]}])
    assert {one["SubnetId"] for one in targets(controller)} == {one["SubnetId"] for one in private["Subnets"]}
    for target in targets(controller):
        there = efs.describe_mount_target_security_groups(MountTargetId=target["MountTargetId"])
        assert there["SecurityGroups"] == [group["GroupId"]]
    # Its members reach each other by every protocol.
    assert any(
        rule["IpProtocol"] == "-1" and [pair["GroupId"] for pair in rule["UserIdGroupPairs"]] == [group["GroupId"]]
        for rule in group["IpPermissions"]
    )
    # The role alone finds the network, and makes nothing twice.
    assert changed(controller.role("shared_storage:create")) == 0
    done = mounts(controller)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.partition("MOUNTS ")[2].splitlines()[0].rstrip('"').replace('\\"', '"'))
    source = f"{made['FileSystemId']}.efs.us-west-2.amazonaws.com:/"
    assert [(one["path"], one["source"]) for one in told] == [
        ("/neuron_shared", source),
        ("/a", "files.example.com:/a"),
    ]
    assert told[0]["fstype"] == "nfs4"
    assert {"nosuid", "nodev", "nfsvers=4.1", "hard"} <= set(told[0]["options"].split(","))

    controller.api.limit("network", ["network", "efs", "teardown", "sessions"])
    kept = controller.role("teardown", "-e", "trainium_keep_shared_storage=true")
    assert changed(kept) == 1
    assert (
        f"Nothing is left of the cluster bert in us-west-2 but the shared file system {made['FileSystemId']}"
        in kept.stdout
    )
    assert [one["FileSystemId"] for one in systems(controller)] == [made["FileSystemId"]]
    assert targets(controller) == []
    mine = [{"Name": "tag:trainium:cluster", "Values": ["bert"]}]
    assert controller.ec2.describe_vpcs(Filters=mine)["Vpcs"] == []
    gone = controller.role("teardown")
    assert changed(gone) == 1
    assert "Nothing is left of the cluster bert in us-west-2." in gone.stdout
    assert systems(controller) == []
