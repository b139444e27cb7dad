"""Teardown of a cluster whose file system of FSx is kept: its network stays with it, and goes with it later."""

from __future__ import annotations

from typing import Any

Account = Any
MINE = [{"Key": "trainium:cluster", "Value": "c1"}]


def test_the_network_of_what_is_kept_stays_until_that_goes(cloud: Account) -> None:
    fsx = cloud.client("fsx")
    cloud.ec2.create_tags(Resources=[cloud.vpc, cloud.group, *cloud.subnets], Tags=MINE)
    gateway = cloud.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    cloud.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=cloud.vpc)
    # Another network of the cluster, in which nothing is kept.
    other = cloud.ec2.create_vpc(CidrBlock="10.78.0.0/16")["Vpc"]["VpcId"]
    cloud.ec2.create_tags(Resources=[gateway, other], Tags=MINE)
    cloud.ec2.create_key_pair(KeyName="c1", TagSpecifications=[{"ResourceType": "key-pair", "Tags": MINE}])
    arguments = {"name": "c1", "subnet_id": cloud.subnets[0], "security_groups": [cloud.group], "owner": "me"}
    made = cloud.run("fsx_lustre", arguments)["file_system"]
    wanted = {"cluster_name": "c1", "owner": "me", "state": "absent"}

    # Before anything goes: what is not marked would be deleted by the next teardown.
    cloud.api.fault("TagResource", "AccessDeniedException", status=403)
    failed = cloud.run("internal.cluster_resources", {**wanted, "keep_shared_storage": True})
    assert failed["failed"]
    assert "would not tag the file system" in failed["msg"]
    done = cloud.run("internal.cluster_resources", {**wanted, "keep_shared_storage": True})
    assert not done.get("failed"), done["msg"]
    assert (done["found"], done["left"]) == ({"file systems to be marked as kept": [made["file_system_id"]]}, {})
    assert failed["left"] == done["found"]
    (said,) = done["kept_file_systems"]
    assert said == (
        f"the shared file system {made['file_system_id']}, whose 1200 GiB AWS bills by the hour, and its network "
        f"{cloud.vpc}, which is free; trainium_keep_shared_storage: false deletes it"
    )
    filters = [{"Name": "tag:trainium:cluster", "Values": ["c1"]}]
    assert [one["VpcId"] for one in cloud.ec2.describe_vpcs(Filters=filters)["Vpcs"]] == [cloud.vpc]
    assert len(cloud.ec2.describe_subnets(Filters=filters)["Subnets"]) == len(cloud.subnets)
    assert cloud.ec2.describe_internet_gateways(Filters=filters)["InternetGateways"]
    assert cloud.ec2.describe_key_pairs(Filters=filters)["KeyPairs"] == []

    again = cloud.run("internal.cluster_resources", wanted)
    assert (again["changed"], again["found"], again["kept_file_systems"]) == (False, {}, [said])
    # Who mounts it once more without a word of that keeps it kept.
    assert not cloud.run("fsx_lustre", arguments)["changed"]
    gone = cloud.run("internal.cluster_resources", {**wanted, "keep_shared_storage": False})
    assert not gone.get("failed"), gone["msg"]
    assert gone["kept_file_systems"] == []
    assert fsx.describe_file_systems()["FileSystems"] == []
    assert cloud.ec2.describe_vpcs(Filters=filters)["Vpcs"] == []


def test_what_is_kept_and_being_deleted_is_waited_for(slow_cloud: Account) -> None:
    arguments = {"name": "c1", "subnet_id": slow_cloud.subnets[0], "keep": True, "wait": False}
    made = slow_cloud.run("fsx_lustre", arguments)["file_system_id"]
    look = {"cluster_name": "c1"}
    before = slow_cloud.run("internal.cluster_resources", look)
    assert (before["found"], len(before["kept_file_systems"])) == ({}, 1)
    slow_cloud.client("fsx").delete_file_system(FileSystemId=made)
    after = slow_cloud.run("internal.cluster_resources", look)
    assert (after["found"], after["kept_file_systems"]) == ({"file systems": [made]}, [])


def test_what_is_another_owner_s_stays_and_is_named_and_the_rest_goes(cloud: Account) -> None:
    fsx = cloud.client("fsx")
    cloud.ec2.create_tags(Resources=[cloud.vpc, cloud.group, *cloud.subnets], Tags=MINE)
    cloud.ec2.create_key_pair(KeyName="c1", TagSpecifications=[{"ResourceType": "key-pair", "Tags": MINE}])
    made = cloud.run("fsx_lustre", {"name": "c1", "subnet_id": cloud.subnets[0], "owner": "alice"})["file_system_id"]
    wanted = {"cluster_name": "c1", "owner": "me", "state": "absent"}
    done = cloud.run("internal.cluster_resources", wanted)
    assert done["failed"]
    assert f"the file system {made} does not carry your tag trainium:owner" in done["msg"]
    assert f"{made} of FSx carries the tag of the cluster c1, but not your tag" in str(done["warnings"])
    (still,) = fsx.describe_file_systems()["FileSystems"]
    assert still["Lifecycle"] == "AVAILABLE"
    assert cloud.ec2.describe_key_pairs()["KeyPairs"] == []
    # Alice finds her own.
    assert cloud.run("internal.cluster_resources", {**wanted, "owner": "alice", "state": "listed"})["found"][
        "file systems"
    ] == [made]


def test_what_anybody_may_have_tagged_stays(cloud: Account) -> None:
    """Who may tag file systems of others cannot have them deleted by a teardown."""
    made = cloud.run("fsx_lustre", {"name": "c1", "subnet_id": cloud.subnets[0]})["file_system_id"]
    done = cloud.run("internal.cluster_resources", {"cluster_name": "c1", "owner": "me", "state": "absent"})
    assert (done["found"], done["kept_file_systems"]) == ({}, [])
    assert f"{made} of FSx carries the tag of the cluster c1, but not your tag" in str(done["warnings"])
    assert [one["FileSystemId"] for one in cloud.client("fsx").describe_file_systems()["FileSystems"]] == [made]
