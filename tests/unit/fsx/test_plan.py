"""What to do about a file system of FSx for Lustre."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import checks as fsx_checks
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import plan as fsx
from hypothesis import given
from hypothesis import strategies as st

PARAMS: dict[str, Any] = {
    "name": "data",
    "cluster_name": "c1",
    "state": "present",
    "subnet_id": "subnet-1",
    "wait_timeout": 60,
    **dict.fromkeys(fsx.DEFAULTS),
}
NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
KINDS = sorted(fsx_checks.THROUGHPUT)


def item(**changes: Any) -> dict[str, Any]:
    """A PERSISTENT_2 of 2400 GiB as FSx describes it."""
    lustre = {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 250,
        "MountName": "abcdefgh",
        "DataCompressionType": "LZ4",
        **changes.pop("lustre", {}),
    }
    return {
        "FileSystemId": "fs-1",
        "FileSystemType": "LUSTRE",
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": 2400,
        "StorageType": "SSD",
        "SubnetIds": ["subnet-1"],
        "DNSName": "fs-1.fsx.us-west-2.amazonaws.com",
        "KmsKeyId": "arn:aws:kms:us-west-2:123456789012:key/k-1",
        "FileSystemTypeVersion": "2.15",
        "LustreConfiguration": lustre,
        "Tags": [{"Key": "Name", "Value": "data"}, {"Key": "trainium:cluster", "Value": "c1"}],
        **changes,
    }


def action(status: str, minutes: int = 0, **values: Any) -> dict[str, Any]:
    return {
        "AdministrativeActionType": "FILE_SYSTEM_UPDATE",
        "Status": status,
        "RequestTime": NOW + timedelta(minutes=minutes),
        "TargetFileSystemValues": values,
    }


def plan(*found: dict[str, Any], **changes: Any) -> fsx.Plan:
    return fsx.plan_file_system([fsx.file_system_of(one) for one in found], {**PARAMS, **changes})


def test_what_is_not_given_stays() -> None:
    assert not plan(item()).changes


def test_how_it_is_mounted() -> None:
    assert fsx.file_system_of(item())["mount_source"] == "fs-1.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh"
    assert fsx.file_system_of(item(DNSName=None))["mount_source"] == ""


def test_which_are_meant() -> None:
    other = item(Tags=[{"Key": "Name", "Value": "data"}])
    windows = item(FileSystemType="WINDOWS")
    unnamed = item(Tags=[{"Key": "trainium:cluster", "Value": "c1"}])
    assert fsx.belonging([other, windows, unnamed, item()], PARAMS) == [item()]
    assert fsx.belonging([other, windows, unnamed, item()], {**PARAMS, "name": None}) == [unnamed, item()]


def test_one_that_is_being_deleted_is_waited_for() -> None:
    found = plan(item(Lifecycle="DELETING"))
    assert found.create
    assert [one["file_system_id"] for one in found.gone_first] == ["fs-1"]


def test_absent() -> None:
    found = plan(item(), item(FileSystemId="fs-2", Lifecycle="FAILED"), item(Lifecycle="DELETING"), state="absent")
    assert [one["file_system_id"] for one in found.delete] == ["fs-1", "fs-2"]


def test_two_of_one_name_and_one_that_failed() -> None:
    with pytest.raises(TrainiumError, match="2 file systems have this name: fs-1, fs-2"):
        plan(item(), item(FileSystemId="fs-2"))
    with pytest.raises(TrainiumError, match="fs-1 could not be made: no addresses; remove it"):
        plan(item(Lifecycle="FAILED", FailureDetails={"Message": "no addresses."}))


def test_an_update_under_way_counts_as_done() -> None:
    """So that a repeated run does not ask for it twice, and waits for it."""
    coming = item(AdministrativeActions=[action("IN_PROGRESS", StorageCapacity=4800)], Lifecycle="UPDATING")
    assert fsx.file_system_of(coming)["updating"] == ["storage_capacity"]
    assert not plan(coming, storage_capacity=4800).changes
    with pytest.raises(TrainiumError, match="still being changed"):
        plan(coming, storage_capacity=7200)
    done = item(AdministrativeActions=[action("UPDATED_OPTIMIZING", StorageCapacity=4800)], StorageCapacity=4800)
    assert fsx.file_system_of(done)["updating"] == []


def test_the_same_update_again_has_another_token() -> None:
    first = plan(item(), storage_capacity=4800)
    assert first.current is not None
    token = fsx.updating(first.current, first.update)["ClientRequestToken"]
    assert fsx.updating(first.current, first.update)["ClientRequestToken"] == token
    assert len(token) <= 63
    later = fsx.file_system_of(item(AdministrativeActions=[action("FAILED", StorageCapacity=4800)]))
    assert fsx.updating(later, first.update)["ClientRequestToken"] != token


def test_an_update_that_failed() -> None:
    before = fsx.file_system_of(item(AdministrativeActions=[action("FAILED")]))["last_update"]
    old = item(AdministrativeActions=[action("FAILED")])
    assert fsx.failed_update(old, before) == ""
    new = {**action("FAILED", 5), "FailureDetails": {"Message": "no room"}}
    assert fsx.failed_update(item(AdministrativeActions=[new, action("FAILED")]), before) == "no room"


def test_a_key_may_be_given_by_its_id() -> None:
    assert not plan(item(), kms_key_id="k-1").changes
    assert not plan(item(), kms_key_id="alias/mine").changes
    with pytest.raises(TrainiumError, match="kms_key_id"):
        plan(item(), kms_key_id="k-2")


@pytest.mark.parametrize(
    ("there", "change", "words"),
    [
        (item(), {"deployment_type": "SCRATCH_2"}, "has deployment_type PERSISTENT_2, not SCRATCH_2"),
        (item(), {"copy_tags_to_backups": True}, "has copy_tags_to_backups false, not true"),
        (item(), {"file_system_version": "2.12"}, "only raises the version"),
        (item(), {"storage_capacity": 1200}, "only raises that"),
        (item(Lifecycle="CREATING"), {"data_compression": "NONE"}, "is CREATING"),
        (item(lustre={"DeploymentType": "SCRATCH_2"}), {"automatic_backup_retention_days": 1}, "no backups"),
        (
            item(StorageType="HDD", lustre={"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 12}),
            {"per_unit_storage_throughput": 40},
            "is on HDD",
        ),
    ],
)
def test_refusals(there: dict[str, Any], change: dict[str, Any], words: str) -> None:
    with pytest.raises(TrainiumError, match=words):
        plan(there, **change)


@given(st.sampled_from(KINDS), st.integers(-5000, 40000), st.data())
def test_capacities(kind: tuple[str, str], capacity: int, data: st.DataObject) -> None:
    """A capacity that is refused comes with two that are not."""
    valid = fsx_checks.THROUGHPUT[kind]
    throughput = data.draw(st.sampled_from(valid)) if valid else None
    first = data.draw(st.booleans())
    fsx_checks.check_throughput(*kind, throughput)
    try:
        fsx_checks.check_capacity(*kind, throughput, capacity, first)
    except TrainiumError as error:
        text = str(error).rpartition("such as ")[2]
        assert text
        for better in text.split(" or "):
            fsx_checks.check_capacity(*kind, throughput, int(better), first)
    else:
        assert capacity > 0
        assert capacity % 600 == 0


@given(st.sampled_from(KINDS), st.one_of(st.none(), st.integers(0, 2000)))
def test_throughput(kind: tuple[str, str], throughput: int | None) -> None:
    valid = fsx_checks.THROUGHPUT[kind]
    fits = throughput in valid if valid else not throughput
    if fits:
        fsx_checks.check_throughput(*kind, throughput)
    else:
        with pytest.raises(TrainiumError, match="per_unit_storage_throughput"):
            fsx_checks.check_throughput(*kind, throughput)


@given(
    st.integers(1, 8).map(lambda number: number * 2400),
    st.sampled_from([125, 250, 500, 1000]),
    st.sampled_from(["LZ4", "NONE"]),
)
def test_an_update_leads_to_what_is_wanted(capacity: int, throughput: int, compression: str) -> None:
    wanted = {
        "storage_capacity": capacity,
        "per_unit_storage_throughput": throughput,
        "data_compression": compression,
    }
    found = plan(item(), **wanted)
    after = fsx.predicted({**PARAMS, **wanted}, found)
    assert {option: after[option] for option in wanted} == wanted
    assert not fsx.plan_file_system([after], {**PARAMS, **wanted}).changes


def test_the_request() -> None:
    request = fsx.creation({**PARAMS, "copy_tags_to_backups": False, "automatic_backup_retention_days": 0})
    assert request["LustreConfiguration"] == {"DeploymentType": "SCRATCH_2", "DataCompressionType": "LZ4"}
    assert (request["StorageCapacity"], request["FileSystemTypeVersion"]) == (1200, "2.15")
    assert "KmsKeyId" not in request
    assert "SecurityGroupIds" not in request
    assert len(request["ClientRequestToken"]) <= 63
    other = fsx.creation({**PARAMS, "storage_capacity": 2400})
    assert other["ClientRequestToken"] != request["ClientRequestToken"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"import_path": "s3://bucket", "deployment_type": "PERSISTENT_2"}, "data repository association"),
        ({"export_path": "s3://bucket"}, "need import_path"),
        ({"import_path": "s3://bucket/a", "export_path": "s3://other/a"}, "another bucket"),
        ({"automatic_backup_retention_days": 1}, "SCRATCH_2 has no backups"),
        (
            {"deployment_type": "PERSISTENT_1", "import_path": "s3://bucket", "automatic_backup_retention_days": 1},
            "with import_path has no backups",
        ),
        ({"deployment_type": "PERSISTENT_1", "daily_automatic_backup_start_time": "05:00"}, "needs automatic_backup"),
        ({"drive_cache": "READ"}, "drive_cache is needed for storage_type=HDD, and only"),
        ({"deployment_type": "PERSISTENT_1", "storage_type": "HDD"}, "drive_cache is needed"),
    ],
)
def test_new_ones_that_do_not_fit_together(change: dict[str, Any], words: str) -> None:
    full = fsx.complete({**PARAMS, **change})
    if full["deployment_type"].startswith("PERSISTENT"):
        full["per_unit_storage_throughput"] = fsx_checks.THROUGHPUT[full["deployment_type"], full["storage_type"]][0]
    if full["storage_type"] == "HDD":
        full["storage_capacity"] = 6000
    with pytest.raises(TrainiumError, match=words):
        fsx_checks.check_new(full, check_mode=False)
