"""fsx_lustre makes a file system once, changes what FSx lets change, and deletes it."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.mounts import plan_mounts

from tests.contract.file_systems import Account, Result, Systems


class FileSystems(Systems):
    MODULE, SERVICE = "fsx_lustre", "fsx"

    def usual(self) -> dict[str, Any]:
        return {"subnet_id": self.cloud.subnets[0]}

    def persistent(self, check: bool = False, **changes: Any) -> Result:
        base = {"deployment_type": "PERSISTENT_2", "per_unit_storage_throughput": 250, "storage_capacity": 2400}
        return self.run(check, **{**base, **changes})


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
    assert made["Lifecycle"] == "AVAILABLE"
    assert (made["StorageCapacity"], made["FileSystemTypeVersion"]) == (1200, "2.15")
    assert made["LustreConfiguration"]["DeploymentType"] == "SCRATCH_2"
    assert made["LustreConfiguration"]["DataCompressionType"] == "LZ4"
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    assert tags == {"Name": "data", "team": "speech", "trainium:cluster": "c1"}
    interface = systems.cloud.ec2.describe_network_interfaces(NetworkInterfaceIds=made["NetworkInterfaceIds"])
    assert [group["GroupId"] for group in interface["NetworkInterfaces"][0]["Groups"]] == [systems.cloud.group]
    assert (first["file_system_id"], first["dns_name"]) == (made["FileSystemId"], made["DNSName"])
    assert first["mount_name"] == made["LustreConfiguration"]["MountName"]
    systems.cloud.api.clear_calls()
    second = systems.run(tags={"team": "speech"})
    assert not second["changed"]
    assert second["file_system"] == first["file_system"]
    assert [call["action"] for call in systems.cloud.api.calls()] == ["DescribeFileSystems"]


def test_the_role_mounts_what_the_module_returns(systems: FileSystems) -> None:
    result = systems.run()
    (mount,) = plan_mounts([{"type": "lustre", "path": "/fsx", "source": result["mount_source"]}], "")
    assert mount.source == f"{result['dns_name']}@tcp:/{result['mount_name']}"


def test_every_kind(systems: FileSystems) -> None:
    systems.run(name="a", storage_capacity=4800, import_path="s3://bucket/in", export_path="s3://bucket/out")
    systems.run(
        name="b",
        deployment_type="PERSISTENT_1",
        storage_type="HDD",
        drive_cache="READ",
        per_unit_storage_throughput=12,
        storage_capacity=6000,
        automatic_backup_retention_days=7,
        daily_automatic_backup_start_time="05:00",
    )
    linked, disk = systems.shown()
    assert linked["LustreConfiguration"]["DataRepositoryConfiguration"]["ImportPath"] == "s3://bucket/in"
    assert disk["LustreConfiguration"]["AutomaticBackupRetentionDays"] == 7
    assert not systems.run(name="a", import_path="s3://bucket/in")["changed"]
    assert not systems.run(name="b", storage_type="HDD", per_unit_storage_throughput=12)["changed"]


def test_killed_after_the_request(systems: FileSystems) -> None:
    process = systems.cloud.start("fsx_lustre", systems.arguments())
    deadline = time.monotonic() + 300
    while not systems.cloud.api.calls("CreateFileSystem"):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    result = systems.run()
    assert [item["FileSystemId"] for item in systems.shown()] == [result["file_system_id"]]
    assert result["file_system"]["lifecycle"] == "AVAILABLE"


def test_one_that_cannot_be_seen_by_its_tags_yet_is_not_made_twice(systems: FileSystems) -> None:
    first = systems.run()
    systems.client.untag_resource(ResourceARN=first["file_system"]["arn"], TagKeys=["trainium:cluster"])
    assert systems.run()["file_system_id"] == first["file_system_id"]
    assert len(systems.shown()) == 1


def test_changes(systems: FileSystems) -> None:
    first = systems.persistent()
    change: dict[str, Any] = {
        "storage_capacity": 4800,
        "per_unit_storage_throughput": 500,
        "data_compression": "NONE",
        "automatic_backup_retention_days": 3,
        "tags": {"team": "text"},
    }
    checked = systems.persistent(check=True, **change)
    assert checked["changed"]
    assert systems.shown()[0]["StorageCapacity"] == 2400
    result = systems.persistent(**change)
    assert result["file_system_id"] == first["file_system_id"]
    (made,) = systems.shown()
    assert (made["StorageCapacity"], made["Lifecycle"]) == (4800, "AVAILABLE")
    assert made["LustreConfiguration"]["PerUnitStorageThroughput"] == 500
    assert made["LustreConfiguration"]["DataCompressionType"] == "NONE"
    assert result["diff"] == checked["diff"]
    assert result["diff"]["before"]["storage_capacity"] == 2400
    systems.cloud.api.clear_calls()
    assert not systems.persistent(**change)["changed"]
    assert systems.cloud.api.writes() == []


def test_there_and_back_and_there_again(systems: FileSystems) -> None:
    """The third change is like the first; its token must not be."""
    systems.run(data_compression="NONE")
    for kind in ("LZ4", "NONE", "LZ4"):
        systems.run(data_compression=kind)
        assert systems.shown()[0]["LustreConfiguration"]["DataCompressionType"] == kind


def test_a_newer_lustre_and_no_older(systems: FileSystems) -> None:
    systems.run(file_system_version="2.12")
    assert systems.run(file_system_version="2.15")["file_system"]["file_system_version"] == "2.15"
    assert "only raises the version" in systems.refused(file_system_version="2.12")


def test_a_change_under_way(slow_systems: FileSystems) -> None:
    """One that never ends is not asked for again, and says how far it is."""
    systems = slow_systems
    made = systems.run(wait=False)
    assert made["file_system"]["lifecycle"] == "CREATING"
    assert not systems.run(wait=False)["changed"]
    text = systems.refused(wait_timeout=1)
    assert f"{made['file_system_id']} (CREATING) is not available after" in text
    assert "FSx changes storage_capacity only while it is available" in systems.refused(storage_capacity=2400)
    assert len(systems.cloud.api.calls("CreateFileSystem")) == 1


def test_deleted_and_made_again(systems: FileSystems) -> None:
    first = systems.run()
    checked = systems.run(check=True, state="absent")
    assert (checked["changed"], checked["deleted"]) == (True, [first["file_system_id"]])
    assert len(systems.shown()) == 1
    gone = systems.run(state="absent")
    assert gone["diff"] == checked["diff"]
    assert systems.shown() == []
    assert not systems.run(state="absent")["changed"]
    systems.run()
    # One that is being deleted is waited for.
    systems.run(state="absent", wait=False)
    assert systems.run()["changed"]
    assert [item["Lifecycle"] for item in systems.shown()] == ["AVAILABLE"]


def test_all_of_a_cluster(systems: FileSystems) -> None:
    for name in ("a", "b"):
        systems.run(name=name)
    other = systems.run(name="a", cluster_name="c2")
    result = systems.cloud.run("fsx_lustre", {"cluster_name": "c1", "state": "absent"})
    assert len(result["deleted"]) == 2
    assert [item["FileSystemId"] for item in systems.shown()] == [other["file_system_id"]]


def test_check_mode_makes_nothing(systems: FileSystems) -> None:
    result = systems.run(check=True, subnet_id=None)
    assert result["changed"]
    assert result["file_system"]["storage_capacity"] == 1200
    assert result["diff"]["before"] == {}
    assert systems.shown() == []
    assert systems.cloud.api.writes() == []


def test_it_is_marked_as_kept_until_it_is_not(systems: FileSystems) -> None:
    made = systems.run(keep=True)
    assert made["file_system"]["tags"]["trainium:keep"] == "true"
    assert not systems.run()["changed"]
    done = systems.run(keep=False)
    assert (done["changed"], done["file_system"]["tags"]["trainium:keep"]) == (True, "false")
    assert not systems.run(keep=False)["changed"]


def test_one_without_the_owner_s_tag_is_not_taken(systems: FileSystems) -> None:
    """Anybody may make one with the tags of a cluster, and nodes would mount it."""
    theirs = systems.run()["file_system"]
    text = systems.refused(owner="me")
    assert f"the file system {theirs['file_system_id']} carries no tag trainium:owner, so that anybody may have" in text
    mine = [{"Key": "trainium:owner", "Value": "me"}]
    systems.client.tag_resource(ResourceARN=theirs["arn"], Tags=mine)
    assert systems.run(owner="me")["file_system_id"] == theirs["file_system_id"]
    # In no way where there is one of the owner's.
    systems.client.create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=systems.cloud.subnets[:1],
        Tags=[{"Key": "Name", "Value": "data"}, {"Key": "trainium:cluster", "Value": "c1"}],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )
    assert systems.run(owner="me")["file_system_id"] == theirs["file_system_id"]


def test_one_of_a_stack_is_not_taken(systems: FileSystems) -> None:
    """It goes with its stack."""
    theirs = systems.run(owner="me")["file_system"]
    stack = [{"Key": "aws:cloudformation:stack-name", "Value": "c1"}]
    systems.client.tag_resource(ResourceARN=theirs["arn"], Tags=stack)
    checked = systems.run(check=True, owner="me")
    assert (checked["changed"], checked["file_system_id"]) == (True, "")


def test_groups_that_do_not_let_lustre_in_are_refused(systems: FileSystems) -> None:
    ec2 = systems.cloud.ec2
    group = ec2.create_security_group(GroupName="web", Description="web", VpcId=systems.cloud.vpc)["GroupId"]
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    text = systems.refused(security_groups=[group])
    assert "security groups do not permit Lustre LNET network traffic on port 988 (InvalidNetworkSettings)" in text
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[{**rule, "FromPort": 988, "ToPort": 1023}])
    assert systems.run(security_groups=[group])["changed"]


def test_what_a_stack_was_told_to_retain_is_left_to_it(systems: FileSystems) -> None:
    """ParallelCluster's ``DeletionPolicy: Retain``: the stack is gone, and its tags are still there."""
    made = systems.run()
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "c1"}]
    systems.client.tag_resource(ResourceARN=made["file_system"]["arn"], Tags=tags)
    done = systems.cloud.run("internal.cluster_resources", {"cluster_name": "c1", "state": "absent"})
    assert (done["changed"], done["found"]) == (False, {})
    (said,) = done["kept_file_systems"]
    assert f"{made['file_system_id']}, which AWS bills and whose network stays with it" in said
    done = systems.cloud.run("fsx_lustre", {"cluster_name": "c1", "state": "absent"})
    assert (done["changed"], done["spared"]) == (False, [made["file_system_id"]])
    assert [item["Lifecycle"] for item in systems.shown()] == ["AVAILABLE"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"deployment_type": "PERSISTENT_1", "per_unit_storage_throughput": 50}, "not PERSISTENT_1, which FSx cannot"),
        ({"subnet_id": "subnet-0a1b2c3d"}, "has subnet_id"),
        ({"import_path": "s3://bucket"}, "has import_path none, not s3://bucket"),
        ({"storage_capacity": 1200}, "has 2400 GiB, and FSx only raises that"),
        ({"storage_capacity": 3600}, "takes a multiple of 2400, such as 2400 or 4800"),
        ({"per_unit_storage_throughput": 100}, "PERSISTENT_2 on SSD takes one of 125, 250, 500, 1000"),
        ({"auto_import_policy": "NEW"}, "not linked to a bucket"),
    ],
)
def test_what_FSx_cannot_change_is_refused(systems: FileSystems, change: Result, words: str) -> None:  # noqa: N802
    systems.persistent()
    systems.cloud.api.clear_calls()
    assert words in systems.refused(**change)
    assert systems.cloud.api.writes() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": None}, "name is missing"),
        ({"tags": {"Name": "x"}}, "which is reserved"),
        ({"subnet_id": "vpc-1"}, "subnet_id is 'vpc-1'"),
        ({"security_groups": ["default"]}, "security_groups holds 'default'"),
        ({"import_path": "bucket"}, "import_path is 'bucket'"),
        ({"automatic_backup_retention_days": 100}, "give 0 to 90"),
        ({"daily_automatic_backup_start_time": "5"}, "give one such as 05:00"),
        ({"storage_capacity": 1000}, "takes 1200 or a multiple of 2400"),
        ({"deployment_type": "PERSISTENT_2"}, "per_unit_storage_throughput is missing"),
        ({"per_unit_storage_throughput": 50}, "SCRATCH_2 has a fixed throughput"),
        ({"subnet_id": None}, "subnet_id is missing"),
        ({"storage_type": "HDD"}, "only PERSISTENT_1 takes HDD"),
        ({"kms_key_id": "k"}, "SCRATCH_2 is encrypted with a key of FSx"),
    ],
)
def test_refused_before_it_costs(systems: FileSystems, change: Result, words: str) -> None:
    assert words in systems.refused(**change)
    assert systems.cloud.api.writes() == []
    assert systems.shown() == []


def test_what_FSx_refuses_is_one_sentence(systems: FileSystems) -> None:  # noqa: N802
    text = systems.refused(subnet_id="subnet-0a1b2c3d")
    assert text.startswith("fsx_lustre data: AWS would not make the file system: ")
    assert text.endswith("(InvalidNetworkSettings).")
