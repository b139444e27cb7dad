"""The shared file system of a cluster: made with the network, found by the nodes, kept or deleted by the teardown."""

from __future__ import annotations

import json
import re
import time
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


def again(controller: Controller, *options: str) -> Any:
    """The role makes the file system once more, finds it, and a node tells what it would mount."""
    make = {"name": "Make", "ansible.builtin.include_role": {**INCLUDE, "tasks_from": "create"}}
    find = {"name": "Find", "ansible.builtin.include_role": {**INCLUDE, "tasks_from": "find"}}
    tell = {
        "name": "Tell",
        "ansible.builtin.debug": {"msg": "{{ 'MOUNTS ' ~ __shared_storage_plan.mounts | to_json }}"},
    }
    check = {"name": "Check", "ansible.builtin.include_role": {**INCLUDE, "tasks_from": "validate"}}
    alone = {
        "name": "Owner",
        "ansible.builtin.include_role": {"name": "trainium.cluster.network", "tasks_from": "alone"},
    }
    system = {"distribution": "Ubuntu", "distribution_version": "24.04"}
    variables = {**controller.variables, "trainium_image_system": system}
    common = {"connection": "local", "gather_facts": False, "vars": variables}
    roles = [{"role": "trainium.cluster.trainium"}]
    path = controller.folder / "mounts.yml"
    plays = [
        {"name": "Controller", "hosts": "localhost", "roles": roles, "tasks": [alone, make, find], **common},
        {"name": "Node", "hosts": "node", "roles": roles, "tasks": [check, tell], **common},
    ]
    path.write_text(json.dumps(plays))
    # Without an entry for localhost, as the inventory of a cluster is.
    return controller.run(path, "--inventory", "node,", *options)


def given(controller: Controller, **tags: str) -> str:
    """The id of a file system that somebody has made with the tags of the cluster; a keyword's __ is a colon."""
    every = {"Name": "bert", "trainium:cluster": "bert", **{key.replace("__", ":"): tags[key] for key in tags}}
    tag_list = [{"Key": key, "Value": value} for key, value in every.items()]
    efs = controller.client("efs")
    made = efs.create_file_system(CreationToken=str(tags), Encrypted=True, Tags=tag_list)
    return str(made["FileSystemId"])


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

    # Others' with the tags of the cluster are in no way; the role finds what is there, and makes nothing twice. What is
    # to be kept it marks.
    theirs = given(controller, trainium__owner="arn:aws:iam::123456789012:user/mallory")
    nobodys = given(controller)
    controller.api.clear_calls()
    done = again(controller, "-e", '{"trainium_keep_shared_storage": true}')
    assert changed(done) == 1
    written = [action for action in controller.api.writes() if "/2015-02-01/" in action]
    assert written == [f"POST /2015-02-01/resource-tags/{made['FileSystemId']}"]
    told = json.loads(done.stdout.partition("MOUNTS ")[2].splitlines()[0].rstrip('"').replace('\\"', '"'))
    source = f"{made['FileSystemId']}.efs.us-west-2.amazonaws.com:/"
    assert [(one["path"], one["source"]) for one in told] == [
        ("/neuron_shared", source),
        ("/a", "files.example.com:/a"),
    ]
    assert told[0]["fstype"] == "nfs4"
    assert {"nosuid", "nodev", "nfsvers=4.1", "hard"} <= set(told[0]["options"].split(","))

    # ParallelCluster was told to retain this one.
    retained = given(controller, trainium__owner=owner, **{"parallelcluster__cluster-name": "bert"})
    efs.tag_resource(ResourceId=retained, Tags=[{"Key": "aws:cloudformation:stack-name", "Value": "bert"}])
    time.sleep(0.5)
    efs.create_mount_target(FileSystemId=retained, SubnetId=private["Subnets"][0]["SubnetId"])
    controller.api.limit("network", ["network", "efs", "teardown", "sessions"])
    role = {"name": "Role", "ansible.builtin.include_role": {"name": "trainium.cluster.teardown"}}
    # What was marked is not deleted by a teardown that does not say so, were it the first or the second.
    twice = [role, role]
    kept = controller.run(controller.play(twice))
    assert changed(kept) == 1
    said = " ".join(re.sub(r'[\\"]', "", kept.stdout).split())
    stays = (
        f"Nothing is left of the cluster bert in us-west-2 but the shared file system {made['FileSystemId']}, "
        "which AWS bills by what lies in it; trainium_keep_shared_storage: false deletes it, and the file system "
        f"{retained}, which AWS bills by what lies in it, since a stack was told to retain it; delete it yourself, and "
    )
    assert said.count(stays) == 2
    assert said.count("Nothing but what stays belongs to the cluster bert in us-west-2.") == 1
    passed_over = " ".join(kept.stderr.split())
    assert "carries the tag of the cluster bert, but not your tag trainium:owner" in passed_over
    assert {one["FileSystemId"] for one in systems(controller)} == {made["FileSystemId"], theirs, nobodys, retained}
    assert targets(controller) == []
    mine = [{"Name": "tag:trainium:cluster", "Values": ["bert"]}]
    assert controller.ec2.describe_vpcs(Filters=mine)["Vpcs"] == []

    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    controller.client("cloudformation").create_stack(
        StackName="bert", TemplateBody=json.dumps(template), Tags=[{"Key": "trainium:cluster", "Value": "bert"}]
    )
    deleted, foreign, missing, stack, same = controller.cases(
        ("teardown", {"trainium_keep_shared_storage": False}),
        # Whose the cluster is nobody has said.
        ("shared_storage:find", {}),
        ("shared_storage:find", {"shared_storage_cluster_name": "other"}),
        ("parallelcluster:delete", {"trainium_keep_shared_storage": True}),
        ("parallelcluster:delete", {"teardown_keep_shared_storage": True}),
    )
    assert deleted == ""
    assert "belongs to arn:aws:iam::123456789012:user/mallory" in foreign or "carries no tag trainium:owner" in foreign
    assert missing.startswith("The cluster other has no shared file system in us-west-2; run network.yml with")
    assert "not the file systems of the ParallelCluster bert, which its stack deletes" in stack
    assert same == stack
    assert {one["FileSystemId"] for one in systems(controller)} == {theirs, nobodys, retained}


def test_one_of_fsx_comes_with_the_network_and_keeps_it(controller: Controller) -> None:
    controller.api.reset()
    controller.variables.update(
        trainium_cluster_name="bert",
        trainium_public_ip="primary",
        trainium_shared_storage="fsx",
        trainium_shared_storage_deployment_type="PERSISTENT_2",
        trainium_shared_storage_unit_throughput=125,
        trainium_tags={"team": "speech"},
        network_address_service=f"{controller.api.url}/sandbox-api/address",
        shared_storage_mounts=[],
        shared_storage_lustre_key_fingerprint=40 * "A",
    )
    network = REPOSITORY / "playbooks" / "network.yml"
    options = ["-e", json.dumps(controller.variables)]
    controller.limit("network")
    controller.api.limit("network", ["network", "fsx"])
    assert changed(controller.run(network, *options)) > 0
    fsx = controller.client("fsx")
    (made,) = fsx.describe_file_systems()["FileSystems"]
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    owner = tags.pop("trainium:owner")
    assert tags == {"Name": "bert", "team": "speech", "trainium:cluster": "bert"}
    shape = (made["StorageCapacity"], made["LustreConfiguration"]["PerUnitStorageThroughput"])
    assert (made["LustreConfiguration"]["DeploymentType"], *shape) == ("PERSISTENT_2", 1200, 125)
    mine = [{"Name": "tag:trainium:cluster", "Values": ["bert"]}]
    subnets = controller.ec2.describe_subnets(Filters=[{"Name": "tag:trainium:subnet", "Values": ["private"]}])[
        "Subnets"
    ]
    # Where nodes are tried first.
    assert made["SubnetIds"] == [min(subnets, key=lambda one: str(one["AvailabilityZone"]))["SubnetId"]]
    (interface,) = controller.ec2.describe_network_interfaces(NetworkInterfaceIds=made["NetworkInterfaceIds"])[
        "NetworkInterfaces"
    ]
    assert [group["GroupName"] for group in interface["Groups"]] == ["bert-efa"]

    # It is found, told to the nodes, and marked as to be kept.
    controller.api.clear_calls()
    done = again(controller, "-e", '{"trainium_keep_shared_storage": true}')
    assert changed(done) == 1
    assert [action for action in controller.api.writes() if "FileSystem" in action or "Tag" in action] == [
        "TagResource"
    ]
    told = json.loads(done.stdout.partition("MOUNTS ")[2].splitlines()[0].rstrip('"').replace('\\"', '"'))
    assert [(one["path"], one["fstype"], one["source"], one["deployment_type"]) for one in told] == [
        (
            "/neuron_shared",
            "lustre",
            f"{made['DNSName']}@tcp:/{made['LustreConfiguration']['MountName']}",
            "PERSISTENT_2",
        )
    ]
    assert {"nosuid", "nodev", "flock"} <= set(told[0]["options"].split(","))

    # The teardown leaves it with its network, and the next run takes both up.
    controller.api.limit("network", ["network", "fsx", "teardown", "sessions"])
    role = {"name": "Role", "ansible.builtin.include_role": {"name": "trainium.cluster.teardown"}}
    kept = controller.run(controller.play([role]))
    assert changed(kept) == 1
    said = " ".join(re.sub(r'[\\"]', "", kept.stdout).split())
    assert (
        f"Nothing is left of the cluster bert in us-west-2 but the shared file system {made['FileSystemId']}, whose"
        in said
    )
    (vpc,) = controller.ec2.describe_vpcs(Filters=mine)["Vpcs"]
    assert vpc["VpcId"] == made["VpcId"]
    assert controller.ec2.describe_key_pairs(Filters=mine)["KeyPairs"] == []
    assert changed(controller.run(network, *options)) > 0
    assert [one["FileSystemId"] for one in fsx.describe_file_systems()["FileSystems"]] == [made["FileSystemId"]]
    assert [one["VpcId"] for one in controller.ec2.describe_vpcs(Filters=mine)["Vpcs"]] == [vpc["VpcId"]]

    elsewhere, fixed, deleted = controller.cases(
        (
            "shared_storage:create",
            {
                "network_cluster_owner": owner,
                "network_result": {"vpc_id": "vpc-1", "private_subnet_ids": [], "security_group_id": "sg-1"},
            },
        ),
        (
            "shared_storage:look",
            {"network_cluster_owner": owner, "trainium_shared_storage_deployment_type": "SCRATCH_2"},
        ),
        ("teardown", {"trainium_keep_shared_storage": False}),
    )
    assert f"of the cluster bert lies in {vpc['VpcId']}, and its nodes would be in vpc-1" in elsewhere
    assert "has deployment_type PERSISTENT_2, not SCRATCH_2, which FSx cannot change" in fixed
    assert deleted == ""
    assert fsx.describe_file_systems()["FileSystems"] == []
    assert controller.ec2.describe_vpcs(Filters=mine)["Vpcs"] == []
