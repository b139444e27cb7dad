"""The policies in docs/iam, with the modules of nodes: they allow what is needed and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._lease.run import Lease, this_run

from tests.contract.conftest import REGION, actions, idle, policy

Account = Any
KEY = "0a1b2c3d-4e5f-6000-0000-000000000011"
# For the role efa_nodes: tests/contract/network/test_head_node.py.
OF_THE_ROLE = {"ReadTheNameOfTheImage", "LookAtTheQuota", "LookAtPrices"}
GROUP = [{"ResourceType": "placement-group", "Tags": [{"Key": "trainium:cluster", "Value": "bert"}]}]


def user(cloud: Account, service: str, name: str = "nodes") -> Any:
    make: Any = boto3.client
    keys = {"aws_access_key_id": name, "aws_secret_access_key": "x"}
    return make(service, REGION, endpoint_url=cloud.api.url, **keys)


def without(cloud: Account, sid: str) -> None:
    """From now on the caller has all but one statement."""
    cloud.environment["AWS_ACCESS_KEY_ID"] = "nodes"
    rest = [one for one in policy("nodes") if one["Sid"] != sid]
    assert len(rest) == len(policy("nodes")) - 1
    cloud.api.control("POST", "policies", {"access_key": "nodes", "statements": rest})


def reserved(cloud: Account) -> str:
    made = cloud.ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=cloud.zones[0],
        InstanceCount=1,
        InstanceMatchCriteria="targeted",
    )
    return str(made["CapacityReservation"]["CapacityReservationId"])


def test_nodes_come_and_go_with_their_policy(cloud: Account) -> None:
    cloud.environment["AWS_ACCESS_KEY_ID"] = "nodes"
    cloud.ec2.create_key_pair(KeyName="key")
    reservation = reserved(cloud)
    cloud.api.limit("nodes", ["nodes"])
    ec2 = user(cloud, "ec2")
    ec2.create_placement_group(GroupName="bert", Strategy="cluster", TagSpecifications=GROUP)
    wanted = {"count": 1, "key_name": "key", "public_ip": "primary", "placement_group": "bert"}
    (identity,) = cloud.efa(**wanted, volumes=[{"size": 200, "kms_key_id": KEY}])["instance_ids"]
    arguments = {"cluster_name": "bert", "path": "/nonexistent/pins", "timeout": 0}
    assert cloud.run("internal.host_keys", arguments)["unknown"] == [identity]
    cloud.efa(count=1, state="stopped")
    cloud.efa(**wanted, tags={"team": "speech"})
    assert {"Key": "team", "Value": "speech"} in cloud.instances()[0]["Tags"]
    assert cloud.efa(**wanted, tags={"team": "speech"}, replace=[identity])["replaced"] == [identity]
    for public in ("none", "primary"):
        cloud.efa(**{**wanted, "public_ip": public}, tags={"team": "speech"})
    assert cloud.efa(state="absent")["changed"]
    assert cloud.ec2.describe_addresses()["Addresses"] == []
    ec2.delete_placement_group(GroupName="bert")
    for name, more in (("reserved", {"capacity_reservation": {"id": reservation}}), ("spot", {"market": "spot"})):
        cloud.efa(name=name, cluster_name="bert", count=1, **more)
    lease = Lease(user(cloud, "ssm"), "bert", this_run("arn:aws:iam::123456789012:user/ada", os.getpid()))
    assert lease.take(False, {"trainium:cluster": "bert"})
    lease.free()
    used = cloud.api.used("nodes")
    # The role looks for the group's VPC, and volumes are only looked at where some are there already.
    quota = {"servicequotas:ListServiceQuotas", "servicequotas:ListAWSDefaultServiceQuotas", "pricing:GetProducts"}
    seldom = {*quota, "ec2:DescribeVpcs", "ec2:DescribeVolumes"}
    assert actions("nodes") - used == seldom
    assert used <= actions("nodes")
    assert set(idle(cloud.api.needs("nodes"), "nodes")) == OF_THE_ROLE


@pytest.mark.parametrize(
    ("sid", "more"),
    [
        ("LaunchFrom", {}),
        ("LaunchInto", {}),
        ("LaunchWithTheTag", {}),
        ("WithEncryptedVolumes", {}),
        ("TagWhatIsMade", {}),
        ("LetEc2MakeItsSpotRole", {"market": "spot"}),
        ("EncryptWithAKey", {"volumes": [{"kms_key_id": KEY}]}),
        ("LendItToVolumes", {"volumes": [{"kms_key_id": KEY}]}),
        ("MakeAddressesAndGroups", {"public_ip": "primary"}),
    ],
)
def test_a_call_without_its_statement_is_refused_in_one_sentence(
    cloud: Account, sid: str, more: dict[str, Any]
) -> None:
    without(cloud, sid)
    assert "UnauthorizedOperation" in cloud.refused(count=1, **more)
    assert cloud.instances() == []


def test_nothing_is_launched_into_a_reservation_without_its_statement(cloud: Account) -> None:
    reservation = reserved(cloud)
    without(cloud, "LaunchIntoReservations")
    assert "UnauthorizedOperation" in cloud.refused(count=1, capacity_reservation={"id": reservation})


def test_a_volume_that_is_not_encrypted_is_refused(cloud: Account) -> None:
    cloud.environment["AWS_ACCESS_KEY_ID"] = "nodes"
    cloud.api.limit("nodes", ["nodes"])
    for volumes in ([{"encrypted": False}], [{"device_name": "/dev/sdf", "size": 10, "encrypted": False}]):
        assert "UnauthorizedOperation" in cloud.refused(count=1, volumes=volumes)
    assert cloud.instances() == []


def test_what_is_somebody_elses_stays_as_it_is(cloud: Account) -> None:
    """Instances, addresses and groups without the tag, and a launch that gives none."""
    launch = {"ImageId": cloud.image, "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1}
    (theirs,) = cloud.ec2.run_instances(**launch)["Instances"]
    instance, interface = theirs["InstanceId"], theirs["NetworkInterfaces"][0]["NetworkInterfaceId"]
    address = cloud.ec2.allocate_address(Domain="vpc")["AllocationId"]
    joined = cloud.ec2.associate_address(AllocationId=address, NetworkInterfaceId=interface)["AssociationId"]
    cloud.ec2.create_placement_group(GroupName="theirs", Strategy="cluster")
    cloud.api.limit("nodes", ["nodes"])
    ec2 = user(cloud, "ec2")
    tag = [{"Key": "trainium:cluster", "Value": "bert"}]
    of_cluster = [{"ResourceType": kind, "Tags": tag} for kind in ("instance", "network-interface", "volume")]
    refused: list[tuple[str, Callable[[], Any]]] = [
        ("TerminateInstances", lambda: ec2.terminate_instances(InstanceIds=[instance])),
        ("StopInstances", lambda: ec2.stop_instances(InstanceIds=[instance])),
        ("StartInstances", lambda: ec2.start_instances(InstanceIds=[instance])),
        ("GetConsoleOutput", lambda: ec2.get_console_output(InstanceId=instance)),
        ("DisassociateAddress", lambda: ec2.disassociate_address(AssociationId=joined)),
        ("ReleaseAddress", lambda: ec2.release_address(AllocationId=address)),
        ("AssociateAddress", lambda: ec2.associate_address(AllocationId=address, NetworkInterfaceId=interface)),
        ("DeletePlacementGroup", lambda: ec2.delete_placement_group(GroupName="theirs")),
        ("CreateTags", lambda: ec2.create_tags(Resources=[instance], Tags=tag)),
        ("CreateTags", lambda: ec2.create_tags(Resources=[address], Tags=tag)),
        ("AllocateAddress", lambda: ec2.allocate_address(Domain="vpc")),
        ("CreatePlacementGroup", lambda: ec2.create_placement_group(GroupName="a", Strategy="cluster")),
        ("RunInstances", lambda: ec2.run_instances(**launch)),
        ("RunInstances", lambda: ec2.run_instances(**launch, TagSpecifications=of_cluster)),
        ("RunInstances", lambda: ec2.run_instances(**launch, TagSpecifications=of_cluster[:1])),
    ]
    addresses = cloud.ec2.describe_addresses()["Addresses"]
    for action, call in refused:
        with pytest.raises(Exception, match=f"UnauthorizedOperation.*ec2:{action}"):
            call()
    assert [(one["InstanceId"], one.get("Tags", [])) for one in cloud.instances("pending", "running")] == [
        (instance, [])
    ]
    assert cloud.ec2.describe_addresses()["Addresses"] == addresses
    assert [one["GroupName"] for one in cloud.ec2.describe_placement_groups()["PlacementGroups"]] == ["theirs"]


def test_without_the_permission_for_consoles_a_warning_says_so(cloud: Account) -> None:
    without(cloud, "ReadHostKeys")
    (identity,) = cloud.efa(count=1)["instance_ids"]
    found = cloud.run("internal.host_keys", {"cluster_name": "bert", "path": "/nonexistent/pins"})
    assert (found["unknown"], found["changed"]) == ([identity], False)
    assert "ec2:GetConsoleOutput" in str(found["warnings"])
