"""efs_file_system call by call: what it asks in which order, what it waits for, and what it returns."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._efs.plan import creation_token
from ansible_collections.trainium.cluster.plugins.module_utils._efs.run import EfsFileSystem

from tests.unit.efs.stubbed import Efs, known, target
from tests.unit.efs.test_plan import PARAMS

Result = dict[str, Any]
SUBNETS = {"subnet-00000001": "a", "subnet-00000002": "b"}


class Hurried(EfsFileSystem):
    """Its time is over after one look."""

    def _left(self) -> float:
        return 0.0


def run(api: Efs, check: bool = False, **changes: Any) -> Result:
    wanted = {**PARAMS, "wait": True, "wait_timeout": 60, **changes}
    return Hurried(api.client, api.ec2, {"provisioned_throughput": None, **wanted}, check).run()


def test_what_is_as_wanted_is_only_looked_at(api: Efs) -> None:
    api.lists(known())
    api.targets(target("b"), target("a"))
    # Whether it is available, and its mount targets are, then how it is.
    api.shows(known())
    api.targets(target("a"), target("b"))
    api.shows(known())
    api.targets(target("a"), target("b"))
    result = run(api)
    assert result["changed"] is False
    assert (result["file_system_id"], result["dns_name"]) == ("fs-1", "fs-1.efs.us-west-2.amazonaws.com")
    assert result["mount_source"] == "fs-1.efs.us-west-2.amazonaws.com:/"
    lists = [result[name] for name in ("deleted", "deleting", "detached", "kept")]
    assert lists == [[], [], [], []] and result["diff"]["before"] == result["diff"]["after"]
    shown = result["diff"]["after"]["mount_targets"]
    assert shown == [
        {"availability_zone": zone, "subnet_id": f"subnet-0000000{zone}", "security_groups": []} for zone in ("a", "b")
    ]
    assert "lifecycle" not in result["diff"]["after"] and result["file_system"]["lifecycle"] == "available"


def test_a_new_one_takes_mount_targets_when_it_is_there(api: Efs) -> None:
    api.lists()
    api.subnets(**SUBNETS)
    api.makes()
    api.shows(known())
    api.targets()
    # In the order of the subnets as they were given.
    api.attaches("subnet-00000001", "sg-0000000a")
    api.attaches("subnet-00000002", "sg-0000000a")
    api.shows(known())
    api.targets(target("a"), target("b"))
    api.shows(known())
    api.targets(target("a"), target("b"))
    for zone in "ab":
        api.groups(f"fsmt-0000000{zone}", "sg-0000000a")
    result = run(api, subnets=list(SUBNETS), security_groups=["sg-0000000a"])
    assert result["changed"] is True and result["diff"]["before"] == {}
    assert [one["security_groups"] for one in result["file_system"]["mount_targets"]] == [
        ["sg-0000000a"],
        ["sg-0000000a"],
    ]
    api.lists()
    api.makes()
    api.has_none()
    # EFS may not show yet what it has made.
    assert run(api, wait=False)["file_system_id"] == "fs-1"


def test_check_mode_only_looks(api: Efs) -> None:
    api.lists()
    api.subnets(**SUBNETS)
    wanted: Result = {"throughput_mode": "provisioned", "provisioned_throughput": 64}
    result = run(api, check=True, subnets=list(SUBNETS), security_groups=["sg-0000000b", "sg-0000000a"], **wanted)
    assert (result["changed"], result["file_system_id"], result["mount_source"]) == (True, "", "")
    made = result["file_system"]
    assert (made["throughput_mode"], made["provisioned_throughput"], made["encrypted"]) == ("provisioned", 64, True)
    assert [(one["subnet_id"], one["availability_zone"]) for one in made["mount_targets"]] == [
        ("subnet-00000001", "a"),
        ("subnet-00000002", "b"),
    ]
    assert made["mount_targets"][0]["security_groups"] == ["sg-0000000a", "sg-0000000b"]
    # Those that come are not waited for either.
    api.lists(known())
    api.targets(target("a", LifeCycleState="creating"))
    assert run(api, check=True, security_groups=["sg-0000000a"])["changed"] is False
    for state, kept in (("absent", []), ("detached", ["fs-1"])):
        api.lists(known())
        api.targets(target("a"))
        result = run(api, check=True, state=state)
        assert (result["changed"], result["detached"], result["kept"]) == (True, ["fsmt-0000000a"], kept)


def test_changes_in_their_order(api: Efs) -> None:
    broken = target("b", LifeCycleState="error")
    api.lists(known())
    api.targets(target("a"), broken)
    api.groups("fsmt-0000000a", "sg-0000000a")
    api.subnets(**SUBNETS)
    api.tags(team="text")
    api.shows(known())
    api.changes(ThroughputMode="bursting")
    api.detaches("fsmt-0000000b")
    api.shows(known())
    api.targets(target("a"))
    api.attaches("subnet-00000002", "sg-0000000b")
    api.regroups("fsmt-0000000a", "sg-0000000b")
    api.shows(known(ThroughputMode="bursting"))
    api.targets(target("a"), target("b"))
    api.shows(known(ThroughputMode="bursting"))
    api.targets(target("a"), target("b"))
    for zone in "ab":
        api.groups(f"fsmt-0000000{zone}", "sg-0000000b")
    change: Result = {"throughput_mode": "bursting", "security_groups": ["sg-0000000b"], "tags": {"team": "text"}}
    result = run(api, subnets=list(SUBNETS), **change)
    assert (result["changed"], result["detached"]) == (True, ["fsmt-0000000b"])


def test_mount_targets_that_come_are_waited_for_before_their_groups_are_compared(api: Efs) -> None:
    api.lists(known())
    api.targets(target("a", LifeCycleState="creating"))
    api.targets(target("a"), target("b", LifeCycleState="error"), target("c", LifeCycleState="deleting"))
    api.targets(target("a"), target("c", LifeCycleState="deleting"))
    api.groups("fsmt-0000000a", error="IncorrectMountTargetState")
    api.shows(known())
    api.targets(target("a"))
    api.shows(known())
    api.targets(target("a"))
    api.groups("fsmt-0000000a", error="MountTargetNotFound")
    assert run(api, security_groups=["sg-0000000a"])["changed"] is False
    api.lists(known())
    api.targets(target("a", LifeCycleState="creating"))
    api.targets(target("a", LifeCycleState="creating"))
    with pytest.raises(TrainiumError, match=r"fsmt-0000000a \(creating\) is not available after"):
        run(api, security_groups=["sg-0000000a"])


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ("error", "fs-1 is in the state error; remove it with state=absent, then run again"),
        ("creating", r"fs-1 \(creating\) is not available after"),
        ("", r"fs-1 \(not visible yet\) is not available after"),
    ],
)
def test_a_file_system_that_does_not_come(api: Efs, seen: str, said: str) -> None:
    api.lists()
    api.makes()
    if seen:
        api.shows(known(LifeCycleState=seen))
    else:
        api.has_none()
    with pytest.raises(TrainiumError, match=said):
        run(api)


def test_a_mount_target_that_does_not_come(api: Efs) -> None:
    api.lists(known())
    api.targets()
    api.shows(known())
    coming = target("c", LifeCycleState="creating")
    api.targets(target("a", LifeCycleState="error"), target("b", LifeCycleState="error"), coming)
    with pytest.raises(
        TrainiumError, match="EFS could not make the mount targets fsmt-0000000a, fsmt-0000000b of fs-1; look"
    ):
        run(api)


def test_one_that_goes_in_the_zone_is_gone_before_another_comes(api: Efs) -> None:
    going = target("a", LifeCycleState="deleting")
    api.lists(known())
    api.targets(going, target("b"))
    api.subnets(**{"subnet-00000001": "a"})
    api.shows(known())
    api.targets(going, target("b"))
    with pytest.raises(TrainiumError, match=r"fsmt-0000000a \(deleting\) is not gone after"):
        run(api, subnets=["subnet-00000001"])


def test_a_conflict_counts_only_where_the_mount_target_is_not_there(api: Efs) -> None:
    for there in ([], [target("b")]):
        api.lists(known())
        api.targets()
        api.subnets(**{"subnet-00000001": "a"})
        api.shows(known())
        api.targets()
        api.attaches("subnet-00000001", error="MountTargetConflict")
        api.targets(*there)
        with pytest.raises(AwsCallError, match="would not make the mount target"):
            run(api, subnets=["subnet-00000001"])
    api.lists(known())
    api.targets()
    api.subnets(**{"subnet-00000001": "a"})
    api.shows(known())
    api.targets()
    api.attaches("subnet-00000001", error="MountTargetConflict")
    api.targets(target("a", SubnetId="subnet-00000001"))
    api.shows(known())
    api.targets(target("a"))
    assert run(api, subnets=["subnet-00000001"], wait=False)["changed"] is True


def test_what_an_earlier_run_made_is_known_by_its_token(api: Efs) -> None:
    token = creation_token("c1", "data")
    api.lists()
    api.makes("FileSystemAlreadyExists", CreationToken=token)
    api.has_of_token(token, known(FileSystemId="fs-2"))
    api.shows(known(FileSystemId="fs-2"))
    api.targets(of="fs-2")
    assert run(api, wait=False)["file_system_id"] == "fs-2"
    api.lists()
    api.makes("FileSystemAlreadyExists", CreationToken=token)
    api.has_of_token(token, known(more={"trainium:owner": "you"}))
    with pytest.raises(TrainiumError, match="the file system fs-1 with the same creation token belongs to you"):
        run(api, owner="me")
    api.lists()
    api.makes("FileSystemAlreadyExists", CreationToken=token)
    api.has_of_token(token)
    with pytest.raises(TrainiumError, match="by the same name is just being deleted; run again in a minute"):
        run(api)


def test_one_of_the_name_that_goes_is_gone_first(api: Efs) -> None:
    going = known(LifeCycleState="deleting")
    api.lists(going)
    api.targets()
    with pytest.raises(TrainiumError, match="fs-1 by the same name is being deleted; wait until it is gone"):
        run(api, wait=False)
    api.lists(going)
    api.targets()
    api.shows(known(LifeCycleState="deleted"))
    api.makes()
    api.has_none()
    with pytest.raises(TrainiumError, match="not visible yet"):
        run(api)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("TooManyRequests", "AWS changes the throughput mode of fs-1, or lowers .* only 24 hours after"),
        ("ThroughputLimitExceeded", "the throughput of fs-1 would be more than this account may have"),
        ("IncorrectFileSystemLifeCycleState", "AWS would not change the file system: for the test"),
    ],
)
def test_the_limits_of_throughput(api: Efs, code: str, said: str) -> None:
    api.lists(known())
    api.targets()
    api.shows(known())
    api.changes(code, ThroughputMode="provisioned", ProvisionedThroughputInMibps=64.0)
    wanted: Result = {"throughput_mode": "provisioned", "provisioned_throughput": 64}
    with pytest.raises(TrainiumError, match=said):
        run(api, **wanted)
    if code == "ThroughputLimitExceeded":
        api.lists()
        api.makes(code, ThroughputMode="provisioned", ProvisionedThroughputInMibps=64.0)
        with pytest.raises(TrainiumError, match="the throughput of the file system would be more"):
            run(api, **wanted)


def test_whose_it_is(api: Efs) -> None:
    mine, theirs = known(FileSystemId="fs-2", more={"trainium:owner": "me"}), known(more={"trainium:owner": "you"})
    stacks = known(FileSystemId="fs-3", more={"parallelcluster:cluster-name": "c1", "trainium:owner": "me"})
    api.lists(theirs, stacks, mine)
    api.targets(of="fs-2")
    assert run(api, check=True, owner="me")["file_system_id"] == "fs-2"
    api.lists(theirs, mine)
    with pytest.raises(TrainiumError, match="the file system fs-1 belongs to you"):
        run(api, state="absent", owner="me", name=None)
    api.lists(known())
    with pytest.raises(TrainiumError, match="the file system fs-1 carries no tag trainium:owner"):
        run(api, state="detached", owner="me")
