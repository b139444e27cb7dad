"""Teardown of a network in which file systems were: their interfaces outlast them, or they stay."""

from __future__ import annotations

from typing import Any

Account = Any
MINE = [{"Key": "trainium:cluster", "Value": "c1"}]


def tagged(cloud: Account) -> None:
    """The network of the account is the cluster's."""
    cloud.ec2.create_tags(Resources=[cloud.vpc, cloud.group, *cloud.subnets], Tags=MINE)


def there(cloud: Account) -> bool:
    return bool(cloud.ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [cloud.vpc]}])["Vpcs"])


def test_the_network_goes_when_the_interfaces_of_the_mount_targets_have_gone(cloud: Account) -> None:
    tagged(cloud)
    made = cloud.run(
        "efs_file_system",
        {"name": "c1", "subnets": cloud.subnets, "security_groups": [cloud.group], "owner": "me"},
    )
    wanted = {"cluster_name": "c1", "owner": "me", "state": "absent"}
    done = cloud.run("internal.cluster_resources", {**wanted, "keep_shared_storage": True})
    assert not done.get("failed"), done["msg"]
    assert done["left"] == {}
    # The emulator has refused, as EC2 does for a while.
    statuses = [call["status"] for call in cloud.api.calls("DeleteSecurityGroup")]
    assert len(statuses) > 1, statuses
    assert not there(cloud)
    (said,) = done["kept_file_systems"]
    assert said.startswith(f"the shared file system {made['file_system_id']}, which AWS bills by what lies in it;")


def test_nothing_is_detached_before_it_is_marked_as_kept(cloud: Account) -> None:
    """A later teardown that does not say so would delete it."""
    made = cloud.run("efs_file_system", {"name": "c1", "subnets": cloud.subnets, "owner": "me"})["file_system_id"]
    efs = cloud.client("efs")
    wanted = {"cluster_name": "c1", "owner": "me", "state": "absent"}
    tag = f"POST /2015-02-01/resource-tags/{made}"
    cloud.api.fault(tag, "AccessDeniedException", status=403)
    failed = cloud.run("internal.cluster_resources", {**wanted, "keep_shared_storage": True})
    assert failed["failed"] and "would not tag the file system: for the test (AccessDeniedException)" in failed["msg"]
    assert len(efs.describe_mount_targets(FileSystemId=made)["MountTargets"]) == len(cloud.subnets)
    # As a run that was killed has left it, with a version that marked it last.
    for target in efs.describe_mount_targets(FileSystemId=made)["MountTargets"]:
        efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    done = cloud.run("internal.cluster_resources", {**wanted, "keep_shared_storage": True})
    assert done["found"]["EFS file systems to be marked as kept"] == [made]
    assert done["left"] == {}
    later = cloud.run("internal.cluster_resources", wanted)
    assert (later["found"], later["changed"]) == ({}, False)
    assert [one["FileSystemId"] for one in efs.describe_file_systems()["FileSystems"]] == [made]


def test_teardown_goes_on_where_mount_targets_may_not_be_listed(cloud: Account) -> None:
    """Those of a file system that a stack was told to retain: its cluster may be long gone."""
    made = cloud.run("efs_file_system", {"name": "c1", "subnets": cloud.subnets, "owner": "me"})["file_system_id"]
    efs = cloud.client("efs")
    efs.tag_resource(ResourceId=made, Tags=[{"Key": "parallelcluster:cluster-name", "Value": "c1"}])
    cloud.api.fault("GET /2015-02-01/mount-targets", "AccessDeniedException", status=403, times=9)
    cloud.ec2.create_key_pair(KeyName="c1", TagSpecifications=[{"ResourceType": "key-pair", "Tags": MINE}])
    done = cloud.run("internal.cluster_resources", {"cluster_name": "c1", "owner": "me", "state": "absent"})
    assert not done.get("failed"), done["msg"]
    assert (done["found"]["key pairs"], done["left"]) == (["c1"], {})
    (said,) = done["warnings"]
    assert f"the mount targets of {made} cannot be looked at" in str(said)


def test_what_is_retained_and_keeps_the_network_is_named(cloud: Account) -> None:
    tagged(cloud)
    made = cloud.run("fsx_lustre", {"name": "c1", "subnet_id": cloud.subnets[0], "security_groups": [cloud.group]})
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "c1"}]
    cloud.client("fsx").tag_resource(ResourceARN=made["file_system"]["arn"], Tags=tags)
    done = cloud.run("internal.cluster_resources", {"cluster_name": "c1", "state": "absent"})
    assert done["failed"]
    assert f"the file system {made['file_system_id']}, which AWS bills and whose network stays with it" in done["msg"]
    assert "DependencyViolation" in done["msg"]
    assert there(cloud)


def test_what_was_retained_and_is_being_deleted_is_waited_for(slow_cloud: Account) -> None:
    """Who has deleted it, as they were told to, need not wait before they run teardown again."""
    fsx = slow_cloud.client("fsx")
    made = slow_cloud.run("fsx_lustre", {"name": "c1", "subnet_id": slow_cloud.subnets[0], "wait": False})
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "c1"}]
    fsx.tag_resource(ResourceARN=made["file_system"]["arn"], Tags=tags)
    look = {"cluster_name": "c1"}
    before = slow_cloud.run("internal.cluster_resources", look)
    assert (before["found"], len(before["kept_file_systems"])) == ({}, 1)
    fsx.delete_file_system(FileSystemId=made["file_system_id"])
    after = slow_cloud.run("internal.cluster_resources", look)
    assert (after["found"], after["kept_file_systems"]) == ({"file systems": [made["file_system_id"]]}, [])
