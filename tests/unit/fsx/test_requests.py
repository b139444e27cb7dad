"""What is asked of FSx fits its API, and leads to the file system that was wanted."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import plan as fsx
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from tests.unit.fsx.test_plan import PARAMS, action, item, plan

FSX: Any = ServiceModel(Loader().load_service_model("fsx", "service-2"))
DISK: dict[str, Any] = {
    "deployment_type": "PERSISTENT_1",
    "storage_type": "HDD",
    "storage_capacity": 6000,
    "per_unit_storage_throughput": 12,
    "file_system_version": "2.12",
    "data_compression": "NONE",
    "drive_cache": "READ",
    "kms_key_id": "arn:aws:kms:us-west-2:123456789012:key/k-1",
    "security_groups": ["sg-0a1b2c3e", "sg-0a1b2c3d"],
    "automatic_backup_retention_days": 7,
    "daily_automatic_backup_start_time": "05:00",
    "weekly_maintenance_start_time": "7:03:00",
    "copy_tags_to_backups": True,
    "tags": {"team": "speech"},
    "owner": "me",
    "keep": True,
}
LINKED: dict[str, Any] = {
    "import_path": "s3://bucket/in",
    "export_path": "s3://bucket/out",
    "auto_import_policy": "NEW",
    "weekly_maintenance_start_time": "1:23:59",
}


def check_request(operation: str, request: dict[str, Any]) -> None:
    report = ParamValidator().validate(request, FSX.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()


def described(request: dict[str, Any]) -> dict[str, Any]:
    """What DescribeFileSystems shows of a file system that was made with a request."""
    lustre = dict(request["LustreConfiguration"])
    link = {key: lustre.pop(key) for key in ("ImportPath", "ExportPath", "AutoImportPolicy") if key in lustre}
    shown = {key: value for key, value in request.items() if key not in ("SecurityGroupIds", "ClientRequestToken")}
    return {
        **shown,
        "FileSystemId": "",
        "Lifecycle": "AVAILABLE",
        "LustreConfiguration": {**lustre, **({"DataRepositoryConfiguration": link} if link else {})},
    }


@pytest.mark.parametrize("asked", [{}, DISK, LINKED], ids=["plain", "disk", "linked"])
def test_what_is_asked_for_is_what_was_promised_and_is_not_changed(asked: dict[str, Any]) -> None:
    params = {**PARAMS, "subnet_id": "subnet-0a1b2c3d", **asked}
    request = fsx.creation(params)
    check_request("CreateFileSystem", request)
    found = fsx.file_system_of(described(request))
    promised = fsx.predicted(params, fsx.plan_file_system([], params))
    assert promised == found
    assert {option: found[option] for option in asked if option in found and option != "tags"} == {
        option: asked[option] for option in asked if option in found and option != "tags"
    }
    assert not fsx.plan_file_system([found], params).changes
    assert request.get("SecurityGroupIds") == asked.get("security_groups")


def test_the_tags_of_a_new_one() -> None:
    tags = {tag["Key"]: tag["Value"] for tag in fsx.creation({**PARAMS, **DISK})["Tags"]}
    own = {"Name": "data", "trainium:cluster": "c1", "trainium:owner": "me", "trainium:keep": "true"}
    assert tags == {**own, "team": "speech"}


@pytest.mark.parametrize(
    ("option", "value", "sent"),
    [
        ("storage_capacity", 4800, {"StorageCapacity": 4800}),
        ("file_system_version", "2.15", {"FileSystemTypeVersion": "2.15"}),
        ("per_unit_storage_throughput", 500, {"LustreConfiguration": {"PerUnitStorageThroughput": 500}}),
        ("data_compression", "NONE", {"LustreConfiguration": {"DataCompressionType": "NONE"}}),
        ("automatic_backup_retention_days", 3, {"LustreConfiguration": {"AutomaticBackupRetentionDays": 3}}),
        (
            "daily_automatic_backup_start_time",
            "06:00",
            {"LustreConfiguration": {"DailyAutomaticBackupStartTime": "06:00"}},
        ),
        (
            "weekly_maintenance_start_time",
            "1:00:00",
            {"LustreConfiguration": {"WeeklyMaintenanceStartTime": "1:00:00"}},
        ),
        ("auto_import_policy", "NEW_CHANGED", {"LustreConfiguration": {"AutoImportPolicy": "NEW_CHANGED"}}),
    ],
)
def test_one_option_that_changes_is_sent_alone(option: str, value: Any, sent: dict[str, Any]) -> None:
    link = {"DataRepositoryConfiguration": {"ImportPath": "s3://bucket/in"}} if option == "auto_import_policy" else {}
    there = item(FileSystemTypeVersion="2.12", lustre=link)
    found = plan(there, **{option: value})
    assert found.changes is True and found.update == {option: value}
    assert found.current is not None
    request = fsx.updating(found.current, found.update)
    token = request.pop("ClientRequestToken")
    assert request == {"FileSystemId": "fs-1", **sent} and token.startswith("trainium-")
    check_request("UpdateFileSystem", {**request, "FileSystemId": "fs-0a1b2c3d", "ClientRequestToken": token})
    # As FSx tells of it while it works on it, and in check mode before.
    coming = fsx.file_system_of({**there, "AdministrativeActions": [action("PENDING", **sent)]})
    assert (coming[option], coming["updating"]) == (value, [option])
    assert fsx.predicted({**PARAMS, option: value}, found)[option] == value


def test_what_was_done_or_is_of_another_kind_is_not_under_way() -> None:
    other = {**action("IN_PROGRESS", StorageCapacity=4800), "AdministrativeActionType": "STORAGE_OPTIMIZATION"}
    for one in (other, action("COMPLETED", StorageCapacity=4800), action("FAILED", StorageCapacity=4800)):
        found = fsx.file_system_of(item(AdministrativeActions=[one]))
        assert (found["updating"], found["storage_capacity"]) == ([], 2400)


def test_tags_that_change_are_all_that_changes() -> None:
    found = plan(item(), tags={"team": "text"}, owner="me")
    assert (found.tags, found.update, found.create) == ({"team": "text", "trainium:owner": "me"}, {}, False)
    assert found.changes is True
    after = fsx.predicted(PARAMS, found)["tags"]
    assert after == {"Name": "data", "trainium:cluster": "c1", "team": "text", "trainium:owner": "me"}


@pytest.mark.parametrize(("state", "found"), [("present", []), ("absent", [item()])])
def test_what_is_made_or_deleted_is_a_change(state: str, found: list[dict[str, Any]]) -> None:
    assert plan(*found, state=state).changes is True
    assert plan(state="absent").changes is False


def test_what_only_describing_tells() -> None:
    found = fsx.file_system_of(
        item(
            ResourceARN="arn:aws:fsx:us-west-2:123456789012:file-system/fs-1",
            VpcId="vpc-1",
            NetworkInterfaceIds=["eni-2", "eni-1"],
            SubnetIds=["subnet-1", "subnet-2"],
            FailureDetails={"Message": "no addresses"},
        )
    )
    assert found["arn"].endswith("file-system/fs-1") and found["mount_name"] == "abcdefgh"
    assert (found["vpc_id"], found["subnet_id"], found["network_interface_ids"]) == (
        *("vpc-1", "subnet-1"),
        ["eni-2", "eni-1"],
    )
    assert (found["failure"], found["lifecycle"]) == ("no addresses", "AVAILABLE")
    assert found["kms_key_id"] == "arn:aws:kms:us-west-2:123456789012:key/k-1"
    shown = fsx.shown(found)
    assert "failure" not in shown and "last_update" not in shown and shown["vpc_id"] == "vpc-1"


def test_no_update_is_newer_than_none() -> None:
    """An action without a time, and one that has failed without a reason."""
    nameless = {"AdministrativeActionType": "FILE_SYSTEM_UPDATE", "Status": "FAILED"}
    assert fsx.file_system_of(item(AdministrativeActions=[nameless]))["last_update"] == 0.0
    assert fsx.failed_update(item(AdministrativeActions=[nameless]), 0.0) == ""
    assert fsx.failed_update(item(AdministrativeActions=[action("FAILED")]), 0.0) == "no reason was given"
    assert fsx.failed_update(item(AdministrativeActions=[action("COMPLETED")]), 0.0) == ""
    assert fsx.failed_update(item(), 0.0) == ""
