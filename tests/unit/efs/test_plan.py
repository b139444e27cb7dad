"""What to do about a file system of EFS."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._efs import plan as efs

PARAMS: dict[str, Any] = {"name": "data", "cluster_name": "c1", "state": "present"}
ARN = "arn:aws:elasticfilesystem:us-west-2:123456789012:file-system/fs-1"


def item(**changes: Any) -> dict[str, Any]:
    """A file system as EFS describes it."""
    tags = [{"Key": "Name", "Value": "data"}, {"Key": "trainium:cluster", "Value": "c1"}]
    base = {"FileSystemId": "fs-1", "FileSystemArn": ARN, "LifeCycleState": "available", "ThroughputMode": "elastic"}
    return {**base, "Encrypted": True, "KmsKeyId": "arn:aws:kms:us-west-2:1:key/k1", "Tags": tags, **changes}


def target(zone: str, **changes: Any) -> dict[str, Any]:
    base = {"MountTargetId": f"fsmt-{zone}", "SubnetId": f"subnet-{zone}", "VpcId": "vpc-1"}
    return {**base, "AvailabilityZoneName": zone, "LifeCycleState": "available", **changes}


def subnet(identity: str, zone: str, vpc: str = "vpc-1") -> dict[str, str]:
    return {"SubnetId": identity, "AvailabilityZone": zone, "VpcId": vpc}


def plan(current: dict[str, Any] | None, targets: tuple[Any, ...] = (), subnets: Any = (), **changes: Any) -> efs.Plan:
    found = [efs.file_system_of(current, targets)] if current else []
    return efs.plan_file_system(found, {**PARAMS, **changes}, subnets)


def test_the_name_that_it_is_mounted_by() -> None:
    assert efs.dns_name("fs-1", ARN) == "fs-1.efs.us-west-2.amazonaws.com"
    assert efs.dns_name("fs-1", ARN.replace("aws:", "aws-cn:", 1)).endswith(".amazonaws.com.cn")
    assert efs.dns_name("", "") == ""


def test_a_zone_gets_one_mount_target_in_the_first_subnet_named() -> None:
    subnets = [subnet("s1", "a"), subnet("s2", "a"), subnet("s3", "b")]
    assert plan(None, subnets=subnets).attach == ["s1", "s3"]
    assert plan(item(), (target("a"),), subnets).attach == ["s3"]
    # One that goes does not serve its zone.
    assert plan(item(), (target("a", LifeCycleState="deleting"),), subnets).attach == ["s1", "s3"]
    with pytest.raises(TrainiumError, match=r"would be in 2 VPCs \(vpc-1, vpc-2\)"):
        plan(item(), (target("a"),), [subnet("s4", "b", "vpc-2")])


def test_the_token_follows_from_cluster_and_name_alone() -> None:
    first = efs.creation({**PARAMS, "tags": {"a": "b"}, "throughput_mode": "bursting"})
    assert first["CreationToken"] == efs.creation(PARAMS)["CreationToken"]
    assert len(first["CreationToken"]) <= 64
    assert efs.creation_token("a", "b-c") != efs.creation_token("a-b", "c")
    assert first["Encrypted"] is True
    provisioned = efs.creation({**PARAMS, "throughput_mode": "provisioned", "provisioned_throughput": 64})
    assert provisioned["ProvisionedThroughputInMibps"] == 64.0


@pytest.mark.parametrize(
    ("there", "wanted", "request_"),
    [
        ({}, {}, None),
        ({}, {"throughput_mode": "bursting"}, {"ThroughputMode": "bursting"}),
        (
            {},
            {"throughput_mode": "provisioned", "provisioned_throughput": 5},
            {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 5.0},
        ),
        ({"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 5.0}, {"provisioned_throughput": 5}, None),
        (
            {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 5.0},
            {"provisioned_throughput": 9},
            {"ProvisionedThroughputInMibps": 9.0},
        ),
        (
            {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 5.0},
            {"throughput_mode": "elastic"},
            {"ThroughputMode": "elastic"},
        ),
    ],
)
def test_a_change_of_throughput(there: Any, wanted: Any, request_: Any) -> None:
    found = plan(item(**there), **wanted)
    current = efs.file_system_of(item(**there))
    sent = efs.updating(current, found.update) if found.update else None
    assert sent == ({"FileSystemId": "fs-1", **request_} if request_ else None)


@pytest.mark.parametrize(
    ("there", "wanted", "words"),
    [
        ({}, {"provisioned_throughput": 5}, "the mode is elastic"),
        ({}, {"throughput_mode": "provisioned"}, "provisioned_throughput is missing"),
        ({}, {"kms_key_id": "k2"}, "not k2, which EFS cannot change"),
        ({"Encrypted": False}, {}, "is not encrypted, which EFS cannot change"),
        ({"LifeCycleState": "error"}, {}, "is in the state error"),
    ],
)
def test_what_EFS_cannot_do_is_refused(there: Any, wanted: Any, words: str) -> None:  # noqa: N802
    with pytest.raises(TrainiumError, match=words):
        plan(item(**there), **wanted)


def test_a_key_by_its_id_and_an_alias_are_no_other_key() -> None:
    for key in ("k1", "arn:aws:kms:us-west-2:1:key/k1", "alias/mine"):
        assert not plan(item(), kms_key_id=key).changes


def test_what_goes_and_what_stays() -> None:
    found = [
        efs.file_system_of(item(), (target("a"), target("b"))),
        efs.file_system_of(item(LifeCycleState="deleting")),
    ]
    absent = efs.plan_file_system(found, {**PARAMS, "state": "absent"})
    assert (absent.detach, len(absent.delete), len(absent.gone_first)) == (["fsmt-a", "fsmt-b"], 1, 1)
    detached = efs.plan_file_system(found, {**PARAMS, "state": "detached"})
    assert (detached.detach, detached.delete) == (["fsmt-a", "fsmt-b"], [])


def test_those_of_the_cluster_by_tag_alone() -> None:
    others = [
        item(FileSystemId="fs-2", Tags=[{"Key": "Name", "Value": "data"}]),
        item(FileSystemId="fs-3", LifeCycleState="deleted"),
    ]
    assert [one["FileSystemId"] for one in efs.belonging([item(), *others], PARAMS)] == ["fs-1"]
    assert efs.belonging([item()], {**PARAMS, "cluster_name": "c2"}) == []
