"""What to do about a file system of EFS."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import KEEP_TAG, check_owner, of_owner
from ansible_collections.trainium.cluster.plugins.module_utils._efs import plan as efs
from ansible_collections.trainium.cluster.plugins.module_utils._efs import run_teardown

PARAMS: dict[str, Any] = {"name": "data", "cluster_name": "c1", "state": "present"}
ARN = "arn:aws:elasticfilesystem:us-west-2:123456789012:file-system/fs-1"


def item(**changes: Any) -> dict[str, Any]:
    """A file system as EFS describes it."""
    tags = [{"Key": "Name", "Value": "data"}, {"Key": "trainium:cluster", "Value": "c1"}]
    base = {"FileSystemId": "fs-1", "FileSystemArn": ARN, "LifeCycleState": "available", "ThroughputMode": "elastic"}
    return {**base, "Encrypted": True, "KmsKeyId": "arn:aws:kms:us-west-2:123456789012:key/k1", "Tags": tags, **changes}


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


def test_only_a_provisioned_throughput_is_shown() -> None:
    for there, shown in (
        ({"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 5.0}, 5),
        ({"ThroughputMode": "provisioned"}, 0),
        ({"ThroughputMode": "elastic", "ProvisionedThroughputInMibps": 5.0}, 0),
        ({"ThroughputMode": None}, 0),
    ):
        assert efs.file_system_of(item(**there))["provisioned_throughput"] == shown


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
    for key in ("k1", "arn:aws:kms:us-west-2:123456789012:key/k1", "alias/mine"):
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


@pytest.mark.parametrize(
    ("there", "keep", "tag"),
    [
        (None, True, "true"),
        ("false", True, "true"),
        ("true", True, None),
        ("true", False, "false"),
        ("false", False, None),
        (None, False, None),
        ("true", None, None),
        (None, None, None),
    ],
)
def test_what_is_to_be_kept_is_marked_and_unmarked(there: str | None, keep: bool | None, tag: str | None) -> None:
    marks = [{"Key": KEEP_TAG, "Value": there}] if there else []
    done = plan(item(Tags=item()["Tags"] + marks), keep=keep)
    assert done.tags == ({KEEP_TAG: tag} if tag else {})
    assert done.changes is (tag is not None)
    asked = {one["Key"]: one["Value"] for one in efs.creation({**PARAMS, "keep": keep})["Tags"]}
    assert asked.get(KEEP_TAG) == ("true" if keep else None)


def test_those_of_the_cluster_by_tag_alone() -> None:
    others = [
        item(FileSystemId="fs-2", Tags=[{"Key": "Name", "Value": "data"}]),
        item(FileSystemId="fs-3", LifeCycleState="deleted"),
    ]
    assert [one["FileSystemId"] for one in efs.belonging([item(), *others], PARAMS)] == ["fs-1"]
    assert efs.belonging([item()], {**PARAMS, "cluster_name": "c2"}) == []


def tags(**changes: str) -> list[dict[str, str]]:
    """The tags of the file system; a keyword is what follows ``trainium:``."""
    found = {"Name": "data", "trainium:cluster": "c1", **{f"trainium:{key}": value for key, value in changes.items()}}
    return [{"Key": key, "Value": value} for key, value in found.items()]


def test_one_that_nobody_owns_or_another_is_none_of_the_owner_s() -> None:
    params = {**PARAMS, "owner": "me"}
    mine, theirs, nobodys = item(Tags=tags(owner="me")), item(Tags=tags(owner="you")), item()
    assert of_owner([theirs, mine, nobodys], params) == [mine]
    # Where there is none of the owner's the others are told, and refused.
    assert of_owner([theirs, nobodys], params) == [theirs, nobodys]
    for one, words in ((theirs, "belongs to you, and you are me"), (nobodys, "carries no tag trainium:owner")):
        with pytest.raises(TrainiumError, match=words):
            check_owner(efs.file_system_of(one)["tags"], params, "fs-1")
    check_owner(efs.file_system_of(mine)["tags"], params, "fs-1")


def test_a_key_of_another_account_is_trusted_where_it_is_named() -> None:
    key = "arn:aws:kms:us-west-2:999999999999:key/k1"
    with pytest.raises(TrainiumError, match="encrypted with a key of another account"):
        plan(item(KmsKeyId=key))
    assert not plan(item(KmsKeyId=key), kms_key_id=key).changes


def test_a_mount_target_that_could_not_be_made_is_made_anew() -> None:
    there = (target("a", LifeCycleState="error"), target("b", LifeCycleState="error"))
    found = plan(item(), there, [subnet("s1", "a")], security_groups=["sg-1"])
    # That of a zone that nobody asks for stays.
    assert (found.detach, found.attach, found.regroup) == (["fsmt-a"], ["s1"], [])


def test_groups_that_are_not_known_are_not_changed() -> None:
    coming = target("a", LifeCycleState="creating")
    assert not plan(item(), (coming,), security_groups=["sg-1"]).changes
    assert plan(item(), (target("a", SecurityGroups=["sg-2"]),), security_groups=["sg-1"]).regroup == ["fsmt-a"]


@pytest.mark.parametrize(
    ("given", "keep", "where"),
    [
        ({"owner": "me"}, None, "go"),
        ({"owner": "me"}, True, "keep"),
        # What was kept once is kept until somebody says that it is to go.
        ({"owner": "me", "keep": "true"}, None, "keep"),
        ({"owner": "me", "keep": "true"}, False, "go"),
        ({"owner": "you"}, False, "foreign"),
        ({}, False, "foreign"),
    ],
)
def test_what_teardown_does_with_it(given: dict[str, str], keep: bool | None, where: str) -> None:
    found = run_teardown.sort([item(Tags=tags(**given))], "me", keep)
    assert [name for name, there in found._asdict().items() if there] == [where]


@pytest.mark.parametrize("key", ["aws:cloudformation:stack-name", "parallelcluster:cluster-name"])
def test_what_a_stack_was_told_to_retain_is_not_deleted(key: str) -> None:
    one = item(Tags=[*tags(owner="me"), {"Key": key, "Value": "c1"}])
    assert run_teardown.sort([one], "me", False).retained == [one]
    # Anybody may give theirs the tags of a stack; ParallelCluster before 3.15 gives no owner's.
    theirs, nobodys = (item(Tags=[*tags(**own), {"Key": key, "Value": "c1"}]) for own in ({"owner": "you"}, {}))
    found = run_teardown.sort([theirs, nobodys], "me", False)
    assert (found.foreign, found.retained) == ([theirs], [nobodys])


def test_what_stays_is_told_with_what_it_costs() -> None:
    fast = {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 512.0}
    (said,) = run_teardown.told(run_teardown.Sorted([], [item(**fast)], [], []))
    assert "which AWS bills by what lies in it and by the hour for 512 MiB/s; trainium_keep" in said
    (said,) = run_teardown.told(run_teardown.Sorted([], [], [item()], []))
    assert "bills by what lies in it, since a stack was told to retain it" in said
    going = item(LifeCycleState="deleting")
    assert run_teardown.told(run_teardown.Sorted([], [going], [going], [])) == []
