# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with the arguments of fsx_lustre, before anything is made. Pure.

The rules are those of the API reference of CreateFileSystem. Each function raises TrainiumError with one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import (
    GROUP,
    SUBNET,
    check_ids,
    check_shared,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

# (deployment type, storage type) -> valid throughput, MB/s for each TiB; none where it cannot be chosen.
THROUGHPUT: dict[tuple[str, str], tuple[int, ...]] = {
    ("SCRATCH_2", "SSD"): (),
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
# Throughput of HDD -> the GiB by which such a file system grows.
_HDD_STEPS = {12: 6000, 40: 1800}
SSD_STEP = 2400
# The one SSD size below a step; a file system begins with it but does not grow to it.
SMALLEST = 1200

_BUCKET_PATH = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/\S*)?")
_DAILY = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_WEEKLY = re.compile(r"[1-7]:([01]\d|2[0-3]):[0-5]\d")

Params = Mapping[str, Any]


def check_throughput(kind: str, storage: str, throughput: int | None) -> None:
    """The throughput is one of those that the deployment type has."""
    valid = THROUGHPUT.get((kind, storage))
    if valid is None:
        raise TrainiumError(f"{kind} has no storage_type={storage}; only PERSISTENT_1 takes HDD")
    choices = ", ".join(str(number) for number in valid)
    if throughput and not valid:
        raise TrainiumError(f"{kind} has a fixed throughput; leave per_unit_storage_throughput out")
    if valid and not throughput:
        raise TrainiumError(f"per_unit_storage_throughput is missing; {kind} on {storage} takes one of {choices}")
    if throughput and throughput not in valid:
        raise TrainiumError(f"per_unit_storage_throughput is {throughput}; {kind} on {storage} takes one of {choices}")


def check_capacity(kind: str, storage: str, throughput: int | None, capacity: int, first: bool = True) -> None:
    """The capacity is one that FSx makes, or with ``first`` False one that a file system can grow to."""
    step = _HDD_STEPS[throughput or 0] if storage == "HDD" else SSD_STEP
    small = storage == "SSD" and first and capacity == SMALLEST
    if small or (capacity >= step and capacity % step == 0):
        return
    also = f"{SMALLEST} or " if storage == "SSD" and first else ""
    below = max(capacity // step, 1) * step
    raise TrainiumError(
        f"storage_capacity is {capacity} GiB; {kind} on {storage} takes {also}a multiple of {step}, such as "
        f"{below} or {below + step}"
    )


def check_arguments(params: Params) -> None:
    """Everything that can be seen without AWS and whatever there is already."""
    check_shared(params, ("name", "cluster_name"), "FSx", reserved=("Name",))
    if params["state"] == "absent":
        if not params.get("name") and not params.get("cluster_name"):
            raise TrainiumError("name and cluster_name are missing; give one of them to say what to delete")
        return
    if not params.get("name"):
        raise TrainiumError("name is missing; state=present needs it")
    for option, pattern, example in (
        ("daily_automatic_backup_start_time", _DAILY, "05:00"),
        ("weekly_maintenance_start_time", _WEEKLY, "7:03:00, the day being 1 to 7 from Monday"),
        ("subnet_id", SUBNET, "subnet-0a1b2c3d4e5f60001"),
        ("import_path", _BUCKET_PATH, "s3://bucket/prefix"),
        ("export_path", _BUCKET_PATH, "s3://bucket/prefix"),
    ):
        value = params.get(option)
        if value and not pattern.fullmatch(value):
            raise TrainiumError(f"{option} is {value!r}; give one such as {example}")
    check_ids(params, security_groups=GROUP)
    days = params.get("automatic_backup_retention_days")
    if days is not None and not 0 <= days <= 90:
        raise TrainiumError(f"automatic_backup_retention_days is {days}; give 0 to 90")


def check_new(full: Params, check_mode: bool) -> None:
    """The arguments of a new file system, completed with the defaults, fit together.

    In check mode the subnet may be missing, as an earlier task would have made it.
    """
    kind, storage, throughput = full["deployment_type"], full["storage_type"], full.get("per_unit_storage_throughput")
    check_throughput(kind, storage, throughput)
    check_capacity(kind, storage, throughput, full["storage_capacity"])
    if (storage == "HDD") != bool(full.get("drive_cache")):
        raise TrainiumError("drive_cache is needed for storage_type=HDD, and only taken with it; give NONE or READ")
    if not full.get("subnet_id") and not check_mode:
        raise TrainiumError("subnet_id is missing; a new file system needs the subnet that it is reached in")
    if full.get("kms_key_id") and kind.startswith("SCRATCH"):
        raise TrainiumError(f"{kind} is encrypted with a key of FSx; leave kms_key_id out, or choose a PERSISTENT type")
    _check_link(full, kind)
    _check_backups(full, kind)


def _check_link(full: Params, kind: str) -> None:
    """The link to a bucket that is part of the file system."""
    source, target = full.get("import_path"), full.get("export_path")
    if (target or full.get("auto_import_policy")) and not source:
        raise TrainiumError("export_path and auto_import_policy need import_path, the bucket that they are about")
    if source and kind == "PERSISTENT_2":
        raise TrainiumError(
            "PERSISTENT_2 takes no import_path; link it by a data repository association, or use another type"
        )
    if source and target and source.split("/")[2] != target.split("/")[2]:
        raise TrainiumError(f"export_path {target} is in another bucket than import_path {source}; FSx wants the same")


def _check_backups(full: Params, kind: str) -> None:
    for option in ("automatic_backup_retention_days", "daily_automatic_backup_start_time", "copy_tags_to_backups"):
        if full.get(option) and kind.startswith("SCRATCH"):
            raise TrainiumError(f"{kind} has no backups; leave {option} out, or choose a PERSISTENT type")
        if full.get(option) and full.get("import_path"):
            raise TrainiumError(f"a file system with import_path has no backups; leave {option} out")
    if full.get("daily_automatic_backup_start_time") and not full.get("automatic_backup_retention_days"):
        raise TrainiumError("daily_automatic_backup_start_time needs automatic_backup_retention_days, 1 to 90")
