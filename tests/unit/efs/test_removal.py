"""efs_file_system call by call, where a file system lets go of its network or goes."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError

from tests.unit.efs.stubbed import Efs, known, target
from tests.unit.efs.test_run import run

KEEP = {"trainium:keep": "true"}


def test_it_is_marked_as_kept_before_its_mount_targets_go(api: Efs) -> None:
    api.lists(known(), known(FileSystemId="fs-2", more=KEEP))
    api.targets(target("a", AvailabilityZoneName="z"), target("b"))
    api.targets(of="fs-2")
    api.tags(**KEEP)
    api.detaches("fsmt-0000000b")
    # Somebody else was faster.
    api.detaches("fsmt-0000000a", error="MountTargetNotFound")
    api.targets()
    api.targets(of="fs-2")
    result = run(api, state="detached", name=None)
    assert (result["changed"], result["kept"], result["detached"]) == (
        True,
        ["fs-1", "fs-2"],
        ["fsmt-0000000a", "fsmt-0000000b"],
    )
    assert (result["deleted"], result["deleting"], result["file_system"]) == ([], [], {})
    before, after = (result["diff"][when]["file_systems"]["fs-1"] for when in ("before", "after"))
    assert len(before["mount_targets"]) == 2 and after["mount_targets"] == []
    assert "trainium:keep" not in before["tags"] and after["tags"] == {**before["tags"], **KEEP}
    assert result["diff"]["after"]["file_systems"]["fs-2"]["tags"]["trainium:keep"] == "true"


def test_what_is_detached_and_marked_already_is_not_changed(api: Efs) -> None:
    api.lists(known(more=KEEP))
    api.targets()
    api.targets()
    result = run(api, state="detached")
    assert (result["changed"], result["kept"]) == (False, ["fs-1"])


def test_it_goes_when_its_mount_targets_are_gone(api: Efs) -> None:
    api.lists(known(), known(FileSystemId="fs-2", LifeCycleState="deleting"))
    api.targets(target("a"))
    api.targets(of="fs-2")
    api.detaches("fsmt-0000000a")
    api.targets(error="FileSystemNotFound")
    api.targets(of="fs-2")
    api.deletes(error="FileSystemNotFound")
    api.has_none()
    api.has_none("fs-2")
    result = run(api, state="absent", name=None)
    assert (result["changed"], result["deleted"], result["deleting"]) == (True, ["fs-1"], ["fs-2"])
    assert (result["kept"], result["detached"]) == ([], ["fsmt-0000000a"])
    assert sorted(result["diff"]["before"]["file_systems"]) == ["fs-1", "fs-2"]
    assert list(result["diff"]["after"]["file_systems"]) == ["fs-2"]


def test_a_mount_target_that_does_not_go_keeps_its_file_system(api: Efs) -> None:
    """Also one that EFS could not make, and one that is not on its way out yet."""
    left = [target("a", LifeCycleState="deleting"), target("b", LifeCycleState="error")]
    api.lists(known())
    api.targets(*left)
    api.detaches("fsmt-0000000a")
    api.detaches("fsmt-0000000b")
    api.targets(*left)
    with pytest.raises(TrainiumError, match=r"fsmt-0000000a \(deleting\), fsmt-0000000b \(error\) is not gone after"):
        run(api, state="absent")


def test_what_EFS_refuses_is_said(api: Efs) -> None:  # noqa: N802
    api.lists(known())
    api.targets()
    api.targets()
    api.deletes(error="BadRequest")
    with pytest.raises(AwsCallError, match="AWS would not delete the file system: for the test"):
        run(api, state="absent", wait=False)


def test_one_that_is_still_in_use_is_deleted_when_it_is_free(api: Efs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mount target that is not listed any more may keep it for a moment."""
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    api.lists(known())
    api.targets()
    api.targets()
    api.deletes(error="FileSystemInUse")
    api.deletes(error="FileSystemInUse")
    api.deletes()
    assert run(api, state="absent", wait=False)["deleted"] == ["fs-1"]


def test_one_that_is_not_waited_for_or_that_goes_already(api: Efs) -> None:
    api.lists(known())
    api.targets()
    api.targets()
    api.deletes()
    assert run(api, state="absent", wait=False)["changed"] is True
    for state, deleting in (("absent", ["fs-1"]), ("detached", [])):
        api.lists(known(LifeCycleState="deleting"))
        api.targets()
        api.targets()
        result = run(api, state=state, wait=False)
        assert (result["changed"], result["deleted"], result["deleting"]) == (False, [], deleting)
    # One that is gone for good is none.
    api.lists(known(LifeCycleState="deleted"))
    assert run(api, state="absent")["deleting"] == []
    # A last one that is still there when the time is over.
    api.lists(known(LifeCycleState="deleting"))
    api.targets()
    api.targets()
    api.shows(known(LifeCycleState="deleting"))
    with pytest.raises(TrainiumError, match=r"fs-1 \(deleting\) is not gone after"):
        run(api, state="absent")
