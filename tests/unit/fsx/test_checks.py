"""What FSx for Lustre takes, by the API reference of CreateFileSystem, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import checks
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import plan as fsx

from tests.unit.fsx.test_plan import PARAMS, item, plan

GIVEN = {**PARAMS, "subnet_id": "subnet-0a1b2c3d"}


@pytest.mark.parametrize(
    ("kind", "storage", "throughput"),
    [
        ("SCRATCH_2", "SSD", None),
        *(("PERSISTENT_1", "SSD", number) for number in (50, 100, 200)),
        *(("PERSISTENT_1", "HDD", number) for number in (12, 40)),
        *(("PERSISTENT_2", "SSD", number) for number in (125, 250, 500, 1000)),
    ],
)
def test_the_throughput_of_each_kind(kind: str, storage: str, throughput: int | None) -> None:
    checks.check_throughput(kind, storage, throughput)
    with pytest.raises(TrainiumError, match="per_unit_storage_throughput"):
        checks.check_throughput(kind, storage, (throughput or 49) + 1)


@pytest.mark.parametrize(
    ("storage", "throughput", "fits", "not_"),
    [
        ("SSD", 50, (1200, 2400, 4800, 7200), (0, 600, 1800, 3600)),
        ("HDD", 12, (6000, 12000), (0, 1200, 1800, 2400, 9000)),
        ("HDD", 40, (1800, 3600), (0, 1200, 2400, 6000)),
    ],
)
def test_the_sizes_of_each_kind(storage: str, throughput: int, fits: tuple[int, ...], not_: tuple[int, ...]) -> None:
    for size in fits:
        checks.check_capacity("PERSISTENT_1", storage, throughput, size)
    for size in not_:
        with pytest.raises(TrainiumError, match=f"storage_capacity is {size} GiB; PERSISTENT_1 on {storage} takes"):
            checks.check_capacity("PERSISTENT_1", storage, throughput, size)
    # Nothing grows to the smallest size.
    with pytest.raises(TrainiumError, match="takes a multiple of"):
        checks.check_capacity("PERSISTENT_1", storage, throughput, 1200, first=False)


@pytest.mark.parametrize(
    ("storage", "capacity", "first", "said"),
    [
        ("SSD", 1000, True, "takes 1200 or a multiple of 2400, such as 2400 or 4800"),
        ("SSD", 5000, False, "takes a multiple of 2400, such as 4800 or 7200"),
        ("HDD", 13000, True, "takes a multiple of 6000, such as 12000 or 18000"),
    ],
)
def test_the_next_sizes_are_named(storage: str, capacity: int, first: bool, said: str) -> None:
    with pytest.raises(TrainiumError, match=said):
        checks.check_capacity("PERSISTENT_1", storage, 12, capacity, first)


@pytest.mark.parametrize(
    ("option", "values", "refused"),
    [
        ("daily_automatic_backup_start_time", ("00:00", "19:59", "23:00"), ("24:00", "5:00", "05:60", "05:000")),
        ("weekly_maintenance_start_time", ("1:00:00", "7:23:59"), ("0:03:00", "8:03:00", "7:24:00", "03:00")),
        ("subnet_id", ("subnet-0a1b2c3d",), ("subnet-", "sg-0a1b2c3d")),
        ("import_path", ("s3://abc", "s3://a.b-c/in/"), ("bucket", "s3://Bucket", "s3://a", "s3://abc/a b")),
        ("export_path", ("s3://abc/out",), ("s3:/abc", "s3://-bc")),
        ("automatic_backup_retention_days", (0, 1, 90), (-1, 91)),
        ("security_groups", (["sg-0a1b2c3d"], []), (["default"],)),
        ("wait_timeout", (1,), (0,)),
        ("name", ("a", "A.b_c-1"), ("-a", "a b", None, "")),
    ],
)
def test_a_value_that_fsx_does_not_take_is_refused_by_its_option(
    option: str, values: tuple[Any, ...], refused: tuple[Any, ...]
) -> None:
    for value in values:
        checks.check_arguments({**GIVEN, option: value})
    for value in refused:
        with pytest.raises(TrainiumError, match=option):
            checks.check_arguments({**GIVEN, option: value})


def test_what_is_to_go_is_named_and_no_more_is_asked() -> None:
    going = {**GIVEN, "state": "absent", "subnet_id": "nonsense"}
    for whose in ({"name": None}, {"cluster_name": None}):
        checks.check_arguments({**going, **whose})
    with pytest.raises(TrainiumError, match="give one of them to say what to delete"):
        checks.check_arguments({**going, "name": None, "cluster_name": None})
    with pytest.raises(TrainiumError, match="tags holds Name, which is reserved"):
        checks.check_arguments({**GIVEN, "tags": {"Name": "x"}})


DISK = {"deployment_type": "PERSISTENT_1", "storage_type": "HDD", "storage_capacity": 6000, "drive_cache": "NONE"}
SOLID = {"deployment_type": "PERSISTENT_1", "per_unit_storage_throughput": 50}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {**DISK, "per_unit_storage_throughput": 12},
        {
            **SOLID,
            "kms_key_id": "k",
            "automatic_backup_retention_days": 1,
            "daily_automatic_backup_start_time": "05:00",
        },
        {**SOLID, "automatic_backup_retention_days": 1, "copy_tags_to_backups": True},
        {**SOLID, "import_path": "s3://bucket/a", "export_path": "s3://bucket/b", "auto_import_policy": "NEW"},
        {"import_path": "s3://bucket", "automatic_backup_retention_days": 0},
    ],
)
def test_what_fits_together(change: dict[str, Any]) -> None:
    full = fsx.complete({**PARAMS, **change})
    checks.check_new(full, check_mode=False)
    checks.check_new({**full, "subnet_id": None}, check_mode=True)
    with pytest.raises(TrainiumError, match="subnet_id is missing"):
        checks.check_new({**full, "subnet_id": None}, check_mode=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"storage_type": "HDD"}, "SCRATCH_2 has no storage_type=HDD; only PERSISTENT_1 takes HDD"),
        ({"per_unit_storage_throughput": 50}, "SCRATCH_2 has a fixed throughput"),
        ({"storage_capacity": 1800}, "storage_capacity is 1800"),
        ({"kms_key_id": "k"}, "SCRATCH_2 is encrypted with a key of FSx"),
        ({"auto_import_policy": "NEW"}, "need import_path"),
        ({"copy_tags_to_backups": True}, "leave copy_tags_to_backups out"),
        ({**SOLID, "import_path": "s3://bucket", "copy_tags_to_backups": True}, "leave copy_tags_to_backups out"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(TrainiumError, match=words):
        checks.check_new(fsx.complete({**PARAMS, **change}), check_mode=False)


@pytest.mark.parametrize(
    ("there", "change"),
    [
        ({"Lifecycle": "UPDATING"}, {"data_compression": "NONE"}),
        ({"FileSystemTypeVersion": "2.12"}, {"file_system_version": "2.15"}),
        ({}, {"automatic_backup_retention_days": 1}),
        ({"lustre": {"DataRepositoryConfiguration": {"ImportPath": "s3://b"}}}, {"auto_import_policy": "NEW"}),
        ({"Lifecycle": "CREATING"}, {"tags": {"team": "text"}}),
    ],
)
def test_what_FSx_changes(there: dict[str, Any], change: dict[str, Any]) -> None:  # noqa: N802
    assert plan(item(**there), **change).changes


@pytest.mark.parametrize(
    ("there", "change", "words"),
    [
        ({}, {"storage_capacity": 3600}, "PERSISTENT_2 on SSD takes a multiple of 2400, such as 2400 or 4800"),
        ({}, {"per_unit_storage_throughput": 300}, "takes one of 125, 250, 500, 1000"),
        ({}, {"auto_import_policy": "NEW"}, "fs-1 is not linked to a bucket"),
        ({}, {"import_path": "s3://bucket"}, "fs-1 has import_path none, not s3://bucket"),
        ({}, {"subnet_id": "subnet-2"}, "fs-1 has subnet_id subnet-1, not subnet-2"),
        ({}, {"storage_type": "HDD"}, "fs-1 has storage_type SSD, not HDD, which FSx cannot change"),
        ({}, {"drive_cache": "READ"}, "fs-1 has drive_cache NONE, not READ"),
        ({}, {"export_path": "s3://bucket"}, "fs-1 has export_path none, not s3://bucket"),
        (
            {"lustre": {"CopyTagsToBackups": True}},
            {"copy_tags_to_backups": False},
            "copy_tags_to_backups true, not false",
        ),
        ({"FileSystemTypeVersion": "2.15"}, {"file_system_version": "2.9"}, "version=2.9 is lower"),
        (
            {"lustre": {"DataRepositoryConfiguration": {"ImportPath": "s3://b"}}},
            {"automatic_backup_retention_days": 1},
            "being PERSISTENT_2 or linked to a bucket",
        ),
        ({"Lifecycle": "FAILED"}, {}, "could not be made: FSx gives no reason; remove it"),
    ],
)
def test_what_FSx_does_not_change(there: dict[str, Any], change: dict[str, Any], words: str) -> None:  # noqa: N802
    with pytest.raises(TrainiumError, match=words):
        plan(item(**there), **change)


def test_disks_grow_by_the_step_of_their_throughput() -> None:
    disk = item(
        StorageType="HDD",
        StorageCapacity=6000,
        lustre={"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 12, "DriveCacheType": "READ"},
    )
    assert plan(disk, storage_capacity=12000).update == {"storage_capacity": 12000}
    with pytest.raises(TrainiumError, match="a multiple of 6000"):
        plan(disk, storage_capacity=7800)


def test_a_tag_that_is_too_long_is_told_by_whom() -> None:
    with pytest.raises(TrainiumError, match="is too long for FSx; a key has at most 128 characters, a value 256"):
        checks.check_arguments({**GIVEN, "tags": {"team": 257 * "v"}})
