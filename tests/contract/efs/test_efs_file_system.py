"""efs_file_system makes a file system and its mount targets once, changes what EFS lets change, and deletes them."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.mounts import plan_mounts

from tests.contract.file_systems import Account, Result, Systems


class FileSystems(Systems):
    MODULE, SERVICE = "efs_file_system", "efs"

    def __init__(self, cloud: Account) -> None:
        super().__init__(cloud)
        # Two in one zone, and one in a zone more.
        self.subnets = [*cloud.subnets, cloud.subnet(cloud.zones[0], 8), cloud.subnet("us-west-2b", 9)]
        cloud.api.clear_calls()

    def usual(self) -> dict[str, Any]:
        return {"subnets": self.subnets}

    def targets(self) -> list[Result]:
        found = [self.client.describe_mount_targets(FileSystemId=one["FileSystemId"]) for one in self.shown()]
        return [target for page in found for target in page["MountTargets"]]


@pytest.fixture
def systems(cloud: Account) -> FileSystems:
    return FileSystems(cloud)


@pytest.fixture
def slow_systems(slow_cloud: Account) -> FileSystems:
    return FileSystems(slow_cloud)


def test_made_as_asked_and_once(systems: FileSystems) -> None:
    first = systems.run(tags={"team": "speech"})
    assert first["changed"]
    (made,) = systems.shown()
    assert (made["LifeCycleState"], made["Encrypted"], made["ThroughputMode"]) == ("available", True, "elastic")
    assert made["PerformanceMode"] == "generalPurpose"
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    assert tags == {"Name": "data", "team": "speech", "trainium:cluster": "c1"}
    assert first["file_system_id"] == made["FileSystemId"]
    assert first["dns_name"] == f"{made['FileSystemId']}.efs.us-west-2.amazonaws.com"
    # One a zone, in the first subnet that was named.
    zones = [target["AvailabilityZoneName"] for target in systems.targets()]
    assert sorted(zones) == sorted({*systems.cloud.zones, "us-west-2b"})
    for target in systems.targets():
        assert target["SubnetId"] in [*systems.cloud.subnets, systems.subnets[-1]]
        assert target["LifeCycleState"] == "available"
        interface = systems.cloud.ec2.describe_network_interfaces(NetworkInterfaceIds=[target["NetworkInterfaceId"]])
        assert [group["GroupId"] for group in interface["NetworkInterfaces"][0]["Groups"]] == [systems.cloud.group]
    # The name that hosts of the sandbox mount it by.
    assert systems.cloud.api.control("GET", "names")[first["dns_name"]] in [
        one["IpAddress"] for one in systems.targets()
    ]
    systems.cloud.api.clear_calls()
    second = systems.run(tags={"team": "speech"})
    assert not second["changed"]
    assert second["file_system"] == first["file_system"]
    assert systems.cloud.api.writes() == []


def test_the_role_mounts_what_the_module_returns(systems: FileSystems) -> None:
    result = systems.run()
    by_source, by_id = plan_mounts(
        [
            {"type": "efs", "path": "/a", "source": result["mount_source"]},
            {"type": "efs", "path": "/b", "file_system_id": result["file_system_id"]},
        ],
        "us-west-2",
    )
    assert by_source.source == by_id.source == f"{result['dns_name']}:/"


def test_killed_after_the_request(systems: FileSystems) -> None:
    process = systems.cloud.start("efs_file_system", systems.arguments())
    deadline = time.monotonic() + 300
    while not any(call["write"] for call in systems.cloud.api.calls()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    result = systems.run()
    assert [item["FileSystemId"] for item in systems.shown()] == [result["file_system_id"]]
    assert len(systems.targets()) == len({*systems.cloud.zones, "us-west-2b"})


def test_what_has_the_token_and_not_the_tag_is_not_taken(systems: FileSystems) -> None:
    first = systems.run()
    systems.client.untag_resource(ResourceId=first["file_system_id"], TagKeys=["trainium:cluster"])
    text = systems.refused()
    assert f"the file system {first['file_system_id']} with the same creation token carries no tag" in text
    assert len(systems.shown()) == 1


def test_one_of_the_same_name_is_left_alone(systems: FileSystems) -> None:
    theirs = systems.client.create_file_system(CreationToken="x", Tags=[{"Key": "Name", "Value": "data"}])
    result = systems.run()
    assert result["changed"]
    systems.run(state="absent")
    assert [item["FileSystemId"] for item in systems.shown()] == [theirs["FileSystemId"]]


def test_throughput_tags_and_groups_change(systems: FileSystems) -> None:
    first = systems.run()
    other = systems.cloud.ec2.create_security_group(GroupName="nfs", Description="nfs", VpcId=systems.cloud.vpc)
    change: dict[str, Any] = {
        "throughput_mode": "provisioned",
        "provisioned_throughput": 512,
        "tags": {"team": "text"},
        "security_groups": [other["GroupId"]],
    }
    checked = systems.run(check=True, **change)
    assert checked["changed"]
    assert systems.shown()[0]["ThroughputMode"] == "elastic"
    result = systems.run(**change)
    assert result["file_system_id"] == first["file_system_id"]
    (made,) = systems.shown()
    assert (made["ThroughputMode"], made["ProvisionedThroughputInMibps"]) == ("provisioned", 512)
    assert result["diff"] == checked["diff"]
    groups = {tuple(target["security_groups"]) for target in result["file_system"]["mount_targets"]}
    assert groups == {(other["GroupId"],)}
    # More is taken at any time.
    assert systems.run(**{**change, "provisioned_throughput": 600})["changed"]
    systems.cloud.api.clear_calls()
    # What is not said stays.
    assert not systems.run(security_groups=None)["changed"]
    assert systems.cloud.api.writes() == []


def test_teardown_keeps_what_was_marked_and_no_longer(systems: FileSystems) -> None:
    """Of the mark alone: teardown is given nothing but the name of the cluster."""

    def marked() -> str | None:
        (made,) = systems.shown()
        return {tag["Key"]: tag["Value"] for tag in made["Tags"]}.get("trainium:keep")

    def torn() -> Result:
        done: Result = systems.cloud.run("internal.cluster_resources", {"cluster_name": "c1", "state": "absent"})
        assert not done.get("failed"), done.get("msg")
        return done

    made = systems.run(keep=True)
    assert marked() == "true"
    assert made["file_system"]["tags"]["trainium:keep"] == "true"
    # Said again, or not said at all, it stays as it is.
    assert not systems.run(keep=True)["changed"]
    assert not systems.run()["changed"]
    assert made["file_system_id"] in torn()["kept_file_systems"][0]
    assert systems.targets() == []

    checked = systems.run(check=True, keep=False, subnets=None)
    assert (checked["changed"], marked()) == (True, "true")
    done = systems.run(keep=False, subnets=None)
    assert (done["changed"], marked()) == (True, "false")
    assert done["diff"] == checked["diff"]
    assert not systems.run(keep=False, subnets=None)["changed"]
    assert "keep is for state=present" in systems.refused(state="absent", keep=True)
    assert torn()["kept_file_systems"] == []
    assert systems.shown() == []


def test_what_AWS_takes_once_a_day_is_one_sentence(systems: FileSystems) -> None:  # noqa: N802
    made = systems.run(throughput_mode="provisioned", provisioned_throughput=512)
    systems.run(throughput_mode="provisioned", provisioned_throughput=600)
    # Botocore would try it again.
    systems.cloud.environment["AWS_MAX_ATTEMPTS"] = "1"
    for change in ({"provisioned_throughput": 100}, {"throughput_mode": "elastic"}):
        text = systems.refused(**change)
        assert "only 24 hours after its throughput was provisioned or raised; wait until then, or leave" in text
        assert text.count(".") == 1
    action = f"PUT /2015-02-01/file-systems/{made['file_system_id']}"
    systems.cloud.api.fault(action, "ThroughputLimitExceeded", status=400)
    assert "more than this account may have in the region" in systems.refused(provisioned_throughput=3000)


def test_a_conflict_is_fine_where_the_mount_target_is_there(systems: FileSystems) -> None:
    action = "POST /2015-02-01/mount-targets"
    systems.cloud.api.fault(action, "MountTargetConflict", status=409)
    assert "would not make the mount target: for the test (MountTargetConflict)" in systems.refused()
    assert systems.targets() == []
    # As when the answer was lost and the call was repeated.
    systems.cloud.api.fault(action, "MountTargetConflict", status=409, after=True)
    assert systems.run()["changed"]
    assert len(systems.targets()) == len({*systems.cloud.zones, "us-west-2b"})


def test_a_file_system_that_does_not_come_is_named(slow_systems: FileSystems) -> None:
    systems = slow_systems
    made = systems.run(wait=False, subnets=None)
    assert made["file_system"]["lifecycle"] == "creating"
    assert not systems.run(wait=False, subnets=None)["changed"]
    text = systems.refused(wait_timeout=1)
    assert f"{made['file_system_id']} (creating) is not available after " in text
    assert len(systems.shown()) == 1
    assert systems.targets() == []


def test_a_mount_target_that_is_being_made_has_no_groups_yet(unhurried_cloud: Account) -> None:
    """EFS refuses to tell or to change them before the interface is there."""
    systems = FileSystems(unhurried_cloud)
    first = systems.run(wait=False)
    shown = {(one["lifecycle"], *one["security_groups"]) for one in first["file_system"]["mount_targets"]}
    assert shown == {("creating",)}
    other = systems.cloud.ec2.create_security_group(GroupName="nfs", Description="nfs", VpcId=systems.cloud.vpc)
    changed = systems.run(security_groups=[other["GroupId"]])
    groups = [one["security_groups"] for one in changed["file_system"]["mount_targets"]]
    assert groups == [[other["GroupId"]]] * len(systems.targets())
    # As when its deletion has begun since it was listed.
    target = systems.targets()[0]["MountTargetId"]
    action = f"GET /2015-02-01/mount-targets/{target}/security-groups"
    systems.cloud.api.fault(action, "MountTargetNotFound", status=404)
    assert not systems.run(security_groups=[other["GroupId"]], wait=False)["changed"]


def test_one_without_the_owner_s_tag_is_not_taken(systems: FileSystems) -> None:
    """Anybody may make one with the tags of a cluster, and whoever mounts it runs what lies in it."""
    tags = [{"Key": "Name", "Value": "data"}, {"Key": "trainium:cluster", "Value": "c1"}]
    theirs = systems.client.create_file_system(CreationToken="x", Encrypted=True, Tags=tags)["FileSystemId"]
    text = systems.refused(owner="me", subnets=None)
    assert f"the file system {theirs} carries no tag trainium:owner, so that anybody may have made it" in text
    assert systems.targets() == []
    systems.client.tag_resource(ResourceId=theirs, Tags=[{"Key": "trainium:owner", "Value": "me"}])
    assert systems.run(owner="me", subnets=None)["file_system_id"] == theirs


def test_detached_keeps_the_data_and_attached_again(systems: FileSystems) -> None:
    first = systems.run()
    checked = systems.run(check=True, state="detached")
    assert (checked["changed"], len(checked["detached"])) == (True, len(systems.targets()))
    gone = systems.run(state="detached")
    assert (gone["kept"], gone["deleted"]) == ([first["file_system_id"]], [])
    assert gone["diff"] == checked["diff"]
    assert systems.targets() == []
    assert not systems.run(state="detached")["changed"]
    assert first["dns_name"] not in systems.cloud.api.control("GET", "names")
    # The interfaces go as well, a little later, so that the network can be deleted.
    deadline = time.monotonic() + 300
    while systems.cloud.ec2.describe_network_interfaces()["NetworkInterfaces"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    again = systems.run()
    assert again["file_system_id"] == first["file_system_id"]
    assert systems.targets() != []


def test_deleted_and_made_again(systems: FileSystems) -> None:
    first = systems.run()
    checked = systems.run(check=True, state="absent")
    assert (checked["changed"], checked["deleted"]) == (True, [first["file_system_id"]])
    assert len(systems.shown()) == 1
    systems.cloud.api.clear_calls()
    gone = systems.run(state="absent")
    assert gone["diff"] == checked["diff"]
    assert systems.shown() == []
    assert not systems.run(state="absent")["changed"]
    systems.run()
    # One that is being deleted is waited for.
    systems.run(state="absent", wait=False)
    assert systems.run()["changed"]
    assert [item["LifeCycleState"] for item in systems.shown()] == ["available"]


def test_all_of_a_cluster_and_no_other_owner_s(systems: FileSystems) -> None:
    for name in ("a", "b"):
        systems.run(name=name, owner="me")
    other = systems.run(name="a", cluster_name="c2")
    refused = systems.cloud.run("efs_file_system", {"cluster_name": "c1", "state": "absent", "owner": "you"})
    assert "belongs to me, and you are you" in refused["msg"]
    result = systems.cloud.run("efs_file_system", {"cluster_name": "c1", "state": "absent", "owner": "me"})
    assert len(result["deleted"]) == 2
    assert [item["FileSystemId"] for item in systems.shown()] == [other["file_system_id"]]


def test_check_mode_makes_nothing(systems: FileSystems) -> None:
    for subnets in (None, systems.subnets):
        result = systems.run(check=True, subnets=subnets)
        assert result["changed"]
        assert (result["file_system_id"], result["mount_source"]) == ("", "")
        assert result["file_system"]["throughput_mode"] == "elastic"
        assert result["diff"]["before"] == {}
    assert systems.shown() == []
    assert systems.cloud.api.writes() == []


def test_a_second_VPC_is_refused(systems: FileSystems) -> None:  # noqa: N802
    made = systems.run()
    vpc = systems.cloud.ec2.create_vpc(CidrBlock="10.78.0.0/16")["Vpc"]["VpcId"]
    subnet = systems.cloud.ec2.create_subnet(VpcId=vpc, CidrBlock="10.78.0.0/20")["Subnet"]["SubnetId"]
    text = systems.refused(subnets=[subnet])
    assert f"the mount targets of {made['file_system_id']} would be in 2 VPCs" in text
    assert "state=detached" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": None}, "name is missing"),
        ({"name": "a b"}, "name is 'a b'"),
        ({"tags": {"Name": "x"}}, "which is reserved"),
        ({"subnets": ["vpc-1"]}, "subnets holds 'vpc-1'"),
        ({"subnets": ["subnet-0a1b2c3d"]}, "would not look at the subnets"),
        ({"security_groups": ["default"]}, "security_groups holds 'default'"),
        ({"security_groups": [f"sg-{number}" for number in range(6)]}, "a mount target takes at most 5"),
        ({"throughput_mode": "provisioned"}, "provisioned_throughput is missing"),
        ({"throughput_mode": "provisioned", "provisioned_throughput": 3415}, "give 1 to 3414 MiB/s"),
        ({"provisioned_throughput": 100}, "is for throughput_mode=provisioned, and the mode is elastic"),
        ({"wait_timeout": 0}, "give a number of seconds"),
        ({"state": "absent", "name": None, "cluster_name": None}, "name and cluster_name are missing"),
    ],
)
def test_refused_before_it_costs(systems: FileSystems, change: Result, words: str) -> None:
    systems.cloud.api.clear_calls()
    assert words in systems.refused(**change)
    assert systems.cloud.api.writes() == []
    assert systems.shown() == []
