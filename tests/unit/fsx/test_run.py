"""fsx_lustre call by call: what it asks FSx in which order, what it waits for, and what it returns."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._fsx.run import FsxLustre

from tests.unit.fsx.stubbed import ID, Fsx, known
from tests.unit.fsx.test_plan import PARAMS, action

OTHER = "fs-0a1b2c3d4e5f60011"
STACK = {"parallelcluster:cluster-name": "c1"}
Result = dict[str, Any]


def run(api: Fsx, check: bool = False, **changes: Any) -> Result:
    wanted = {**PARAMS, "subnet_id": "subnet-0a1b2c3d4e5f6", "wait": True, **changes}
    return FsxLustre(api.client, wanted, check).run()


def test_what_is_as_wanted_is_looked_at_once(api: Fsx) -> None:
    api.lists(known())
    result = run(api)
    assert result["changed"] is False
    assert (result["file_system_id"], result["mount_name"]) == (ID, "abcdefgh")
    assert result["dns_name"] == "fs-1.fsx.us-west-2.amazonaws.com"
    assert result["mount_source"] == "fs-1.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh"
    assert (result["deleted"], result["deleting"], result["spared"]) == ([], [], [])
    assert result["diff"]["before"] == result["diff"]["after"]
    # What comes and goes by itself is no difference, and is shown all the same.
    assert not {"lifecycle", "updating"} & set(result["diff"]["after"])
    assert (result["file_system"]["lifecycle"], result["file_system"]["updating"]) == ("AVAILABLE", [])


def test_tags_first_then_what_changes_until_it_is_done(api: Fsx) -> None:
    api.lists(known())
    api.tags(team="text")
    api.changes(StorageCapacity=4800)
    api.shows(known(StorageCapacity=4800, NetworkInterfaceIds=["eni-0a1b2c3d4e5f6"]))
    result = run(api, storage_capacity=4800, tags={"team": "text"})
    assert result["changed"] is True
    # As FSx shows it, not as it was expected.
    assert result["file_system"]["network_interface_ids"] == ["eni-0a1b2c3d4e5f6"]
    assert (result["diff"]["before"]["storage_capacity"], result["diff"]["after"]["storage_capacity"]) == (2400, 4800)


def test_what_is_not_waited_for_is_shown_as_it_will_be(api: Fsx) -> None:
    api.lists(known())
    api.changes(StorageCapacity=4800)
    result = run(api, storage_capacity=4800, wait=False)
    assert (result["changed"], result["file_system"]["storage_capacity"]) == (True, 4800)


def test_tags_alone_are_not_waited_for(api: Fsx) -> None:
    api.lists(known())
    api.tags(team="text")
    assert run(api, tags={"team": "text"})["file_system"]["tags"]["team"] == "text"


@pytest.mark.parametrize(
    "there",
    [
        {"Lifecycle": "CREATING"},
        {"Lifecycle": "UPDATING"},
        {"AdministrativeActions": [action("IN_PROGRESS", StorageCapacity=4800)]},
    ],
)
def test_what_another_run_has_begun_is_waited_for(api: Fsx, there: Result) -> None:
    api.lists(known(**there))
    api.shows(known(StorageCapacity=4800))
    result = run(api)
    assert result["changed"] is False
    assert (result["file_system"]["lifecycle"], result["file_system"]["storage_capacity"]) == ("AVAILABLE", 4800)
    api.lists(known(**there))
    assert not run(api, wait=False)["changed"]


def test_a_new_one(api: Fsx) -> None:
    api.lists()
    api.makes(known(Lifecycle="CREATING"))
    api.shows(known(DNSName="brand-new.example.com"))
    result = run(api)
    assert (result["changed"], result["dns_name"], result["diff"]["before"]) == (True, "brand-new.example.com", {})
    api.lists()
    api.makes(known(Lifecycle="CREATING"))
    assert run(api, wait=False)["file_system"]["lifecycle"] == "CREATING"


def test_check_mode_only_looks(api: Fsx) -> None:
    api.lists()
    result = run(api, check=True)
    assert (result["changed"], result["file_system_id"], result["mount_source"]) == (True, "", "")
    api.lists(known())
    assert run(api, check=True, storage_capacity=4800)["file_system"]["storage_capacity"] == 4800
    api.lists(known())
    assert run(api, check=True, state="absent")["deleted"] == [ID]
    with pytest.raises(TrainiumError, match="subnet_id is missing"):
        api.lists()
        run(api, subnet_id="")


def test_one_of_the_name_that_goes_is_gone_first(api: Fsx) -> None:
    api.lists(known(Lifecycle="DELETING"))
    api.has_none()
    api.makes(known(FileSystemId=OTHER))
    api.shows(known(FileSystemId=OTHER))
    assert run(api)["file_system_id"] == OTHER
    api.lists(known(Lifecycle="DELETING"))
    with pytest.raises(TrainiumError, match=f"{ID} by the same name is being deleted; wait until it is gone"):
        run(api, wait=False)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (
            {"Lifecycle": "FAILED", "FailureDetails": {"Message": "no addresses."}},
            f"{ID} could not be made: no addresses; remove it with state=absent",
        ),
        ({"Lifecycle": "FAILED"}, "could not be made: FSx gives no reason; remove it"),
        (
            {"AdministrativeActions": [{**action("FAILED", 5), "FailureDetails": {"Message": "no room."}}]},
            f"FSx gave up changing {ID}: no room$",
        ),
    ],
)
def test_what_fails_meanwhile_is_said(api: Fsx, seen: Result, said: str) -> None:
    api.lists(known(AdministrativeActions=[action("FAILED")]))
    api.changes(LustreConfiguration={"DataCompressionType": "NONE"})
    api.shows(known(**seen))
    with pytest.raises(TrainiumError, match=said):
        run(api, data_compression="NONE")


class Hurried(FsxLustre):
    """Its time is over after one look."""

    def _left(self) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ({"Lifecycle": "CREATING"}, "CREATING"),
        (None, "not visible yet"),
        ({"Lifecycle": "AVAILABLE", "AdministrativeActions": [action("PENDING", StorageCapacity=4800)]}, "AVAILABLE"),
    ],
)
def test_what_does_not_come_in_time_is_named(api: Fsx, seen: Result | None, state: str) -> None:
    api.lists(known(Lifecycle="CREATING"))
    if seen is None:
        api.has_none()
    else:
        api.shows(known(**seen))
    with pytest.raises(TrainiumError, match=rf"{ID} \({state}\) is not available after"):
        Hurried(api.client, {**PARAMS, "subnet_id": "", "wait": True}, False).run()


def test_what_goes_is_deleted_and_waited_for(api: Fsx) -> None:
    api.lists(known(), known(FileSystemId=OTHER, Lifecycle="DELETING"))
    api.deletes()
    api.has_none()
    api.has_none(OTHER)
    result = run(api, state="absent")
    assert (result["changed"], result["deleted"], result["deleting"], result["file_system"]) == (
        True,
        [ID],
        [OTHER],
        {},
    )
    assert result["diff"]["before"]["file_systems"][ID]["storage_capacity"] == 2400
    assert result["diff"]["after"] == {"file_systems": {}}
    # Somebody else was faster.
    api.lists(known())
    api.deletes(error="FileSystemNotFound")
    assert run(api, state="absent", wait=False)["changed"] is True
    api.lists(known(Lifecycle="DELETING"))
    assert (result := run(api, state="absent", wait=False))["changed"] is False and result["deleting"] == [ID]
    api.lists(known())
    api.deletes(error="BadRequest")
    with pytest.raises(AwsCallError, match="would not delete the file system"):
        run(api, state="absent")


def test_of_all_of_a_cluster_what_a_stack_has_made_is_spared(api: Fsx) -> None:
    """But one that goes anyway is waited for."""
    api.lists(
        known(more=STACK),
        known(FileSystemId=OTHER, more=STACK, Lifecycle="DELETING"),
        known(FileSystemId="fs-01234567"),
    )
    api.deletes("fs-01234567")
    api.has_none("fs-01234567")
    api.has_none(OTHER)
    result = run(api, state="absent", name=None)
    assert (result["spared"], result["deleting"], result["deleted"]) == ([ID], [OTHER], ["fs-01234567"])
    # By its name it goes.
    api.lists(known(more=STACK))
    assert run(api, check=True, state="absent") | {"diff": {}} == {
        **run_of_nothing(),
        "changed": True,
        "deleted": [ID],
    }


def run_of_nothing() -> Result:
    names = dict.fromkeys(("file_system_id", "dns_name", "mount_source", "mount_name"), "")
    return {**names, "changed": False, "file_system": {}, "deleted": [], "deleting": [], "spared": [], "diff": {}}


def test_what_is_not_the_owner_s(api: Fsx) -> None:
    mine, theirs = {"trainium:owner": "me"}, {"trainium:owner": "you"}
    api.lists(known(more=theirs), known(FileSystemId=OTHER, more=mine))
    assert run(api, owner="me")["file_system_id"] == OTHER
    api.lists(known())
    with pytest.raises(TrainiumError, match=f"the file system {ID} carries no tag trainium:owner"):
        run(api, owner="me")
    # What goes may be older than the tag.
    api.lists(known())
    assert run(api, check=True, state="absent", owner="me")["deleted"] == [ID]
    api.lists(known(more=theirs))
    with pytest.raises(TrainiumError, match=f"the file system {ID} belongs to you, and you are me"):
        run(api, state="absent", owner="me")
    # A stack's goes with that.
    api.lists(known(more=STACK))
    assert run(api, check=True)["file_system_id"] == ""


def test_empty_text_as_roles_pass_it_is_not_given(api: Fsx) -> None:
    api.lists(known())
    empty: Result = dict.fromkeys(("owner", "subnet_id", "kms_key_id", "import_path", "export_path"), "")
    assert run(api, **empty)["changed"] is False
    # Without a name all of the cluster goes.
    api.lists(known(), known(FileSystemId=OTHER, more={"Name": "other"}))
    assert run(api, check=True, state="absent", name="")["deleted"] == [ID, OTHER]
    api.lists()
    api.makes(known(Lifecycle="CREATING"))
    assert run(api, cluster_name="", wait=False)["changed"] is True
