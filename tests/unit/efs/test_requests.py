"""What is asked of EFS fits its API, and leads to the file system that was wanted."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._efs import checks
from ansible_collections.trainium.cluster.plugins.module_utils._efs import plan as efs
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from tests.unit.efs.test_plan import ARN, PARAMS, item, plan, subnet, target

EFS: Any = ServiceModel(Loader().load_service_model("efs", "service-2"))
FAST = {"throughput_mode": "provisioned", "provisioned_throughput": 64}
FULL = {**FAST, "kms_key_id": "k1", "tags": {"team": "speech"}, "owner": "me", "keep": True}


def check_request(operation: str, request: dict[str, Any]) -> None:
    report = ParamValidator().validate(request, EFS.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize("asked", [{}, {"throughput_mode": "bursting"}, FAST, FULL])
def test_what_is_asked_for_is_what_was_promised_and_is_not_changed(asked: dict[str, Any]) -> None:
    params = {"provisioned_throughput": None, **PARAMS, **asked}
    request = efs.creation(params)
    check_request("CreateFileSystem", request)
    found = efs.file_system_of({**request, "FileSystemId": "", "LifeCycleState": "available"})
    assert efs.predicted(params, efs.plan_file_system([], params), []) == found
    assert found["throughput_mode"] == asked.get("throughput_mode", "elastic")
    assert found["provisioned_throughput"] == asked.get("provisioned_throughput", 0)
    assert request.get("KmsKeyId") == asked.get("kms_key_id")
    assert not efs.plan_file_system([found], params).changes


def test_the_token_of_a_name_is_the_same_for_good() -> None:
    """Another one would make a second file system for a run that was killed under an older version."""
    token = efs.creation_token("c1", "data")
    assert token == "trainium-2076807411e182fd3b53ab005d70f29fb6a0c79f51ba20ef"
    assert efs.creation(PARAMS)["CreationToken"] == token
    assert len({efs.creation_token(*names) for names in (("c1", "data"), ("c1", "b"), ("c2", "data"))}) == 3


def test_only_what_is_provisioned_is_shown_as_such() -> None:
    """EFS goes on showing the number after the mode has changed."""
    left = item(ProvisionedThroughputInMibps=64.0)
    assert efs.file_system_of(left)["provisioned_throughput"] == 0
    assert efs.file_system_of({**left, "ThroughputMode": "provisioned"})["provisioned_throughput"] == 64


def test_a_mount_target_as_asked_for() -> None:
    where = {"FileSystemId": "fs-1", "SubnetId": "subnet-1"}
    groups = ["sg-2", "sg-1"]
    assert efs.attaching("fs-1", "subnet-1", {"security_groups": groups}) == {**where, "SecurityGroups": groups}
    # EFS takes the default group of the VPC.
    assert "SecurityGroups" not in efs.attaching("fs-1", "subnet-1", {"security_groups": []})


def test_what_only_describing_tells() -> None:
    shown = target("b", IpAddress="10.0.0.9", SecurityGroups=["sg-2", "sg-1"], LifeCycleState="creating")
    found = efs.file_system_of(item(), [shown, target("a")])
    assert [one["availability_zone"] for one in found["mount_targets"]] == ["a", "b"]
    ids = {"mount_target_id": "fsmt-b", "subnet_id": "subnet-b", "vpc_id": "vpc-1", "availability_zone": "b"}
    how = {"ip_address": "10.0.0.9", "lifecycle": "creating", "security_groups": ["sg-1", "sg-2"]}
    assert found["mount_targets"][1] == {**ids, **how}
    assert (found["arn"], found["encrypted"], found["lifecycle"]) == (ARN, True, "available")
    assert found["mount_source"] == "fs-1.efs.us-west-2.amazonaws.com:/"
    assert found["kms_key_id"].endswith(":key/k1") and found["tags"]["Name"] == "data"


def test_mount_targets_as_they_will_be() -> None:
    there = (target("c", SecurityGroups=["sg-9"]), target("b", LifeCycleState="error"))
    subnets = [subnet("s1", "b"), subnet("s2", "a")]
    params = {**PARAMS, "security_groups": ["sg-2", "sg-1"]}
    found = efs.plan_file_system([efs.file_system_of(item(), there)], params, subnets)
    assert (found.attach, found.detach, found.regroup) == (["s1", "s2"], ["fsmt-b"], ["fsmt-c"])
    after = efs.predicted(params, found, subnets)["mount_targets"]
    assert [(one["availability_zone"], one["subnet_id"]) for one in after] == [
        *(("a", "s2"), ("b", "s1"), ("c", "subnet-c")),
    ]
    assert {tuple(one["security_groups"]) for one in after} == {("sg-1", "sg-2")}
    assert after[0]["vpc_id"] == "vpc-1"
    assert efs.lasting({}) == {}


@pytest.mark.parametrize(
    ("there", "changes", "what"),
    [
        ((), {"subnets": [subnet("s1", "a")]}, "attach"),
        ((target("a", SecurityGroups=["sg-2"]),), {"security_groups": ["sg-1"]}, "regroup"),
        ((), {"tags": {"team": "text"}}, "tags"),
        ((), {"throughput_mode": "bursting"}, "update"),
        ((), {"state": "absent"}, "delete"),
        ((target("a"),), {"state": "detached", "more": True}, "detach"),
        ((), {"state": "detached"}, "keep"),
    ],
)
def test_each_thing_to_do_is_a_change(there: tuple[Any, ...], changes: dict[str, Any], what: str) -> None:
    marked = [{"Key": "trainium:keep", "Value": "true"}] if changes.pop("more", False) else []
    found = plan(item(Tags=item()["Tags"] + marked), there, changes.pop("subnets", ()), **changes)
    # The plan without a file system to be changed has nothing else in it.
    assert [name for name, value in found._asdict().items() if value and name != "current"] == [what]
    assert found.changes is True
    assert plan(item(), there).changes is False and plan(None).changes is True


@pytest.mark.parametrize(
    ("there", "wanted", "words"),
    [
        ({"LifeCycleState": "deleting"}, {"state": "absent"}, ""),
        ({"LifeCycleState": "updating"}, {"throughput_mode": "bursting"}, ""),
        ({"LifeCycleState": "creating"}, {"throughput_mode": "bursting"}, ""),
        ({"LifeCycleState": "frozen"}, {}, ""),
        ({"LifeCycleState": "frozen"}, {"throughput_mode": "bursting"}, "fs-1 is frozen; wait until it is available"),
        # Of a key of AWS's own nothing may be shown.
        ({"KmsKeyId": ""}, {"kms_key_id": "k2"}, ""),
        ({"KmsKeyId": "alias/aws/elasticfilesystem"}, {}, ""),
        ({"FileSystemArn": ""}, {}, ""),
        ({}, {"provisioned_throughput": 5}, "and the mode is elastic; leave it out, or set the mode"),
        ({}, {"throughput_mode": "provisioned"}, "takes 1 to 3414 MiB/s"),
    ],
)
def test_what_EFS_changes_and_what_not(there: Any, wanted: dict[str, Any], words: str) -> None:  # noqa: N802
    if not words:
        plan(item(**there), **wanted)
        return
    with pytest.raises(TrainiumError, match=words):
        plan(item(**there), **wanted)


def test_two_of_one_name() -> None:
    both = [efs.file_system_of(item(FileSystemId=identity)) for identity in ("fs-2", "fs-1")]
    with pytest.raises(TrainiumError, match="2 file systems have this name: fs-1, fs-2; delete those"):
        efs.plan_file_system(both, PARAMS)
    going = efs.file_system_of(item(FileSystemId="fs-2", LifeCycleState="deleted"))
    assert efs.plan_file_system([going, both[1]], PARAMS).current == both[1]
    for found in ([going], []):
        made = efs.plan_file_system(found, {**PARAMS, "provisioned_throughput": None})
        assert made.create is True and made.gone_first == found
    with pytest.raises(TrainiumError, match="the mode is elastic"):
        efs.plan_file_system([], {**PARAMS, "provisioned_throughput": 5})


@pytest.mark.parametrize(
    ("option", "values", "refused"),
    [
        # The quotas of EFS: MiB/s, and security groups of a mount target.
        ("provisioned_throughput", (1, 3414, None), (0, 3415)),
        (
            "security_groups",
            ([f"sg-{number}" for number in range(5)], None),
            ([f"sg-{one}" for one in range(6)], ["x"]),
        ),
        ("subnets", (["subnet-0a"], []), (["vpc-0a"],)),
        ("name", ("a", "a.b"), ("", None, "a b")),
        ("cluster_name", ("C1",), ("a/b",)),
        ("wait_timeout", (1,), (0,)),
        ("tags", ({"team": "speech"},), ({"Name": "x"}, {"trainium:owner": "x"})),
    ],
)
def test_a_value_that_efs_does_not_take_is_refused_by_its_option(
    option: str, values: tuple[Any, ...], refused: tuple[Any, ...]
) -> None:
    given = {**PARAMS, "wait_timeout": 60}
    for value in values:
        checks.check_arguments({**given, option: value})
    for value in refused:
        with pytest.raises(TrainiumError, match=option):
            checks.check_arguments({**given, option: value})


@pytest.mark.parametrize("state", ["absent", "detached"])
def test_what_is_to_go_is_named_and_not_told_to_be_kept(state: str) -> None:
    given = {**PARAMS, "wait_timeout": 60, "state": state, "provisioned_throughput": 9999}
    for whose in ({"name": None}, {"cluster_name": None}):
        checks.check_arguments({**given, **whose})
    with pytest.raises(TrainiumError, match="name and cluster_name are missing"):
        checks.check_arguments({**given, "name": None, "cluster_name": None})
    for keep in (True, False):
        with pytest.raises(TrainiumError, match=f"as state={state} says what becomes of the data"):
            checks.check_arguments({**given, "keep": keep})


def test_a_tag_that_is_too_long_is_told_by_whom() -> None:
    with pytest.raises(TrainiumError, match="is too long for EFS; a key has at most 128 characters, a value 256"):
        checks.check_arguments({**PARAMS, "wait_timeout": 60, "tags": {129 * "k": "v"}})
