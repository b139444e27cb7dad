"""The image of backend ec2: built once, waited for where it was begun, and what nodes are launched from."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.contract.conftest import REPOSITORY, actions, idle
from tests.contract.network.conftest import Controller, changed

Item = dict[str, Any]
NAMED = {"trainium_cluster_name": "bert", "network_cluster_owner": "me", "trainium_root_volume_size": 60}


@pytest.fixture
def site(controller: Controller) -> Controller:
    controller.api.reset()
    controller.variables.update(NAMED)
    ec2 = controller.ec2
    zone = "us-west-2b"
    tags = [{"Key": "trainium:cluster", "Value": "bert"}]
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/20", AvailabilityZone=zone)["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="bert", Description="bert", VpcId=vpc)["GroupId"]
    ec2.create_tags(Resources=[subnet, group], Tags=[*tags, {"Key": "trainium:subnet", "Value": "private"}])
    controller.variables.update(trainium_subnet_ids=[subnet], trainium_security_group_ids=[group])
    ec2.create_key_pair(KeyName="bert")
    return controller


def build(site: Controller, *options: str, cleaned: bool = True, facts: Item | None = None) -> Any:
    """What image.yml does on the controller; what it does on the builder is no business of EC2's."""
    main, finish = (
        {"name": "Role", "ansible.builtin.include_role": {"name": "trainium.cluster.node_image", "tasks_from": tasks}}
        for tasks in ("main", "finish")
    )
    builder: Item = {"name": "builder", "groups": ["trainium_image_builder"], **(facts or {})}
    if cleaned:
        builder["__node_image_cleaned"] = "{{ node_image_builder.instance_ids | default([]) | first | default('') }}"
    met = {"name": "Met", "ansible.builtin.add_host": builder, "changed_when": False}
    return site.run(site.play([main, met, {**finish, "when": "not ansible_check_mode"}]), *options)


def images(site: Controller) -> list[Item]:
    found: list[Item] = site.ec2.describe_images(Owners=["self"])["Images"]
    return found


def living(site: Controller) -> list[Item]:
    filters = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
    found = site.ec2.describe_instances(Filters=filters)["Reservations"]
    return [instance for one in found for instance in one["Instances"]]


def test_it_is_built_once_with_its_policy(site: Controller) -> None:
    assert changed(build(site, "--check")) == 1
    assert images(site) == []
    assert site.api.writes()[-1] != "CreateImage"
    site.limit("node-image")
    site.api.limit("node-image", ["nodes", "node-image"])
    done = build(site)
    assert changed(done) == 4
    assert "Set trainium_image to own for nodes from the image" in done.stdout
    (image,) = images(site)
    assert image["State"] == "available"
    assert image["Name"].startswith("trainium-bert-")
    assert image["Description"].startswith("Neuron SDK 2.29.1, by trainium.cluster ")
    tags = {tag["Key"]: tag["Value"] for tag in image["Tags"]}
    assert (tags["trainium:cluster"], tags["trainium:owner"], tags["trainium:image"]) == (
        "bert",
        "me",
        image["Name"][-16:],
    )
    (disk,) = [device["Ebs"] for device in image["BlockDeviceMappings"]]
    assert (disk["Encrypted"], disk["VolumeSize"]) == (True, 60)
    (snapshot,) = site.ec2.describe_snapshots(SnapshotIds=[disk["SnapshotId"]])["Snapshots"]
    assert {"Key": "trainium:cluster", "Value": "bert"} in snapshot["Tags"]
    assert living(site) == []
    site.api.clear_calls()
    assert changed(build(site)) == 0
    assert site.api.writes() == []
    # How far the snapshot is is asked only if the image is not there at once, and users delete images themselves.
    seldom = {"ec2:DescribeSnapshots", "ec2:DeregisterImage", "ec2:DeleteSnapshot"}
    assert actions("node-image") - seldom <= site.api.used("node-image")
    of_image = {"MakeImagesOfBuilders", "MakeImagesWithTheTag"}
    assert of_image & set(idle(site.api.needs("node-image"), "nodes", "node-image")) == set()
    # A newer image with another SDK is not what nodes want.
    newer = {"SourceImageId": image["ImageId"], "SourceRegion": "us-west-2", "Description": "Neuron SDK 2.29.0, by me"}
    copied = site.ec2.copy_image(Name="newer", **newer)["ImageId"]
    site.ec2.create_tags(Resources=[copied], Tags=[tag for tag in image["Tags"] if tag["Key"] != "Name"])
    own = {"trainium_image": "own", "efa_nodes_cluster_name": "bert", "trainium_instance_type": "trn1.2xlarge"}
    launch = {**own, "efa_nodes_interface_layout": "none", "trainium_node_count": 1, "trainium_placement_group": False}
    done = site.role("efa_nodes", "-e", json.dumps(launch))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [one["ImageId"] for one in living(site)] == [image["ImageId"]]


def test_a_run_that_was_killed_is_taken_up(site: Controller) -> None:
    site.access_key = "testing-id"
    assert site.role("node_image").returncode == 0
    (builder,) = living(site)
    # Nobody knows how far it came.
    assert changed(site.role("node_image")) == 2
    (second,) = living(site)
    assert second["InstanceId"] != builder["InstanceId"]
    # Killed after the image was begun: it is waited for, and the builder goes then.
    first = build(site)
    assert changed(first) == 5, first.stdout
    assert len(images(site)) == 1
    assert living(site) == []


def test_a_builder_that_was_not_cleaned_goes_without_an_image(site: Controller) -> None:
    site.access_key = "testing-id"
    done = build(site, cleaned=False)
    assert done.returncode != 0
    assert "was not made ready in this run, as where it can no longer be reached, or where" in " ".join(
        done.stdout.split()
    )
    assert images(site) == living(site) == []


def test_nodes_called_like_a_builder_are_not_terminated(site: Controller) -> None:
    site.access_key = "testing-id"
    marks = {
        "trainium:cluster": "bert",
        "trainium:set": "bert-image",
        "trainium:role": "compute",
        "trainium:owner": "me",
    }
    tags = [{"Key": key, "Value": value} for key, value in marks.items()]
    launch = {"ImageId": "ami-0b5e2404000000001", "InstanceType": "trn1.2xlarge", "MinCount": 1, "MaxCount": 1}
    made = site.ec2.run_instances(**launch, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])
    identity = made["Instances"][0]["InstanceId"]
    (said,) = site.cases(("node_image", {}))
    assert said == (
        f"{identity} of the set bert-image is no builder of me's, and a builder of that name is terminated; terminate "
        "or rename it, or give another trainium_cluster_name."
    )
    assert [one["InstanceId"] for one in living(site)] == [identity]


def test_a_host_of_the_users_own_in_the_builders_group_is_left_alone(site: Controller) -> None:
    """Nothing there would be left to log in with."""
    site.access_key = "testing-id"
    host = {
        "name": "packer1",
        "groups": ["trainium_image_builder"],
        "ansible_connection": "local",
        "instance_id": "i-0",
    }
    add = {"name": "Met", "ansible.builtin.add_host": host, "changed_when": False}
    plays = yaml.safe_load((REPOSITORY / "playbooks/image.yml").read_text(encoding="utf-8"))
    here = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [add]}
    book = site.folder / "builder.yml"
    book.write_text(yaml.safe_dump([here, *(play for play in plays if play["hosts"] != "localhost")]))
    done = site.run(book)
    assert done.returncode != 0
    assert "has packer1 in the group trainium_image_builder, which this run has not launched; nothing was changed" in (
        " ".join(done.stdout.split())
    )
    assert "Wait until the builder answers" not in done.stdout
    assert "Check the variables" not in done.stdout


def test_refusals(site: Controller) -> None:
    site.access_key = "testing-id"
    instance = site.ec2.run_instances(
        ImageId="ami-0b5e2404000000001", InstanceType="trn1.2xlarge", MinCount=1, MaxCount=1
    )["Instances"][0]["InstanceId"]
    site.ec2.get_waiter("instance_running").wait(InstanceIds=[instance], WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    theirs = site.ec2.create_image(InstanceId=instance, Name="mine", Description="Neuron SDK 2.29.1, by me")["ImageId"]
    # As somebody else in the account may tag it.
    tags = {"trainium:cluster": "bert", "trainium:image": "0123456789abcdef", "trainium:owner": "them"}
    site.ec2.create_tags(Resources=[theirs], Tags=[{"Key": key, "Value": value} for key, value in tags.items()])
    said = site.cases(
        ("node_image", {"node_image_name": "mine"}),
        ("efa_nodes:image", {"efa_nodes_own_image": True}),
    )
    assert said[0].startswith(f"The name mine belongs to the image {theirs}, which is not what would be built, or not")
    assert said[1] == (
        "There is no image of the cluster bert in us-west-2 with Neuron SDK 2.29.1 that me has built "
        f"({theirs} have another SDK or another owner); run image.yml, or leave trainium_image out."
    )


def test_a_builder_of_which_no_image_is_made_is_terminated(site: Controller) -> None:
    site.access_key = "testing-id"
    site.api.fault("CreateImage", "ResourceLimitExceeded")
    done = build(site)
    assert done.returncode != 0
    assert "the builder was terminated; run image.yml again." in " ".join(done.stdout.split())
    assert images(site) == living(site) == []


def test_a_failure_on_the_builder_is_said_once(site: Controller) -> None:
    site.access_key = "testing-id"
    marks = {"__node_image_said": True}
    done = build(site, cleaned=False, facts=marks)
    assert done.returncode == 0, done.stdout
    assert "was not made ready in this run" not in done.stdout
    assert images(site) == []
