# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What to do about a file system of FSx for Lustre. Pure.

A *file system* is a flat dict made of one ``FileSystems[]`` item of DescribeFileSystems, see ``file_system_of``. What
each deployment type allows, and what can be updated: the API reference of CreateFileSystem and UpdateFileSystem.
Capacities are GiB, throughput is MB/s for each TiB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    client_token,
    keep_tags,
    of_cluster,
    own_tags,
    tag_list,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._fsx.checks import check_capacity, check_throughput

# What a new file system has where the arguments say nothing.
DEFAULTS = {
    "deployment_type": "SCRATCH_2",
    "storage_type": "SSD",
    "storage_capacity": 1200,
    "file_system_version": "2.15",
    "data_compression": "LZ4",
}
# Option -> field of UpdateFileSystem's LustreConfiguration.
_LUSTRE_UPDATES = {
    "per_unit_storage_throughput": "PerUnitStorageThroughput",
    "data_compression": "DataCompressionType",
    "automatic_backup_retention_days": "AutomaticBackupRetentionDays",
    "daily_automatic_backup_start_time": "DailyAutomaticBackupStartTime",
    "weekly_maintenance_start_time": "WeeklyMaintenanceStartTime",
    "auto_import_policy": "AutoImportPolicy",
}
# Option -> field of CreateFileSystem's LustreConfiguration.
_LUSTRE_FIELDS = {
    **_LUSTRE_UPDATES,
    "deployment_type": "DeploymentType",
    "drive_cache": "DriveCacheType",
    "import_path": "ImportPath",
    "export_path": "ExportPath",
    "copy_tags_to_backups": "CopyTagsToBackups",
}
_UPDATES = {"storage_capacity": "StorageCapacity", "file_system_version": "FileSystemTypeVersion"}
_FIXED = ("deployment_type", "storage_type", "drive_cache", "import_path", "export_path", "copy_tags_to_backups")
_UNDER_WAY = ("PENDING", "IN_PROGRESS")

Params = Mapping[str, Any]
FileSystem = dict[str, Any]


class Plan(NamedTuple):
    """What to do: ``create`` one, ``update`` options of ``current``, set ``tags``, ``delete`` some.

    ``gone_first``: a deletion of the same name that must end before one is created.
    """

    current: FileSystem | None
    create: bool
    update: dict[str, Any]
    tags: dict[str, str]
    delete: list[FileSystem]
    gone_first: list[FileSystem]

    @property
    def changes(self) -> bool:
        return bool(self.create or self.update or self.tags or self.delete)


def file_system_of(item: Mapping[str, Any]) -> FileSystem:
    """The fields that matter here, by the module's options; what FSx leaves out becomes '' or 0.

    ``updating`` holds the options whose new values are on their way; they are shown as they will be.
    """
    lustre = item.get("LustreConfiguration") or {}
    linked = lustre.get("DataRepositoryConfiguration") or {}
    dns_name, mount_name = item.get("DNSName") or "", lustre.get("MountName") or ""
    found = {
        "file_system_id": item["FileSystemId"],
        "arn": item.get("ResourceARN") or "",
        "lifecycle": item.get("Lifecycle") or "",
        "failure": (item.get("FailureDetails") or {}).get("Message") or "",
        "dns_name": dns_name,
        "mount_name": mount_name,
        "mount_source": mount_source(dns_name, mount_name),
        "deployment_type": lustre.get("DeploymentType") or "",
        "storage_type": item.get("StorageType") or "SSD",
        "storage_capacity": int(item.get("StorageCapacity") or 0),
        "per_unit_storage_throughput": int(lustre.get("PerUnitStorageThroughput") or 0),
        "file_system_version": item.get("FileSystemTypeVersion") or "",
        "data_compression": lustre.get("DataCompressionType") or "NONE",
        "drive_cache": lustre.get("DriveCacheType") or "NONE",
        "import_path": linked.get("ImportPath") or "",
        "export_path": linked.get("ExportPath") or "",
        "auto_import_policy": linked.get("AutoImportPolicy") or "NONE",
        "automatic_backup_retention_days": int(lustre.get("AutomaticBackupRetentionDays") or 0),
        "daily_automatic_backup_start_time": lustre.get("DailyAutomaticBackupStartTime") or "",
        "weekly_maintenance_start_time": lustre.get("WeeklyMaintenanceStartTime") or "",
        "copy_tags_to_backups": bool(lustre.get("CopyTagsToBackups")),
        "vpc_id": item.get("VpcId") or "",
        "subnet_id": next(iter(item.get("SubnetIds") or ()), ""),
        "network_interface_ids": list(item.get("NetworkInterfaceIds") or ()),
        "kms_key_id": item.get("KmsKeyId") or "",
        "tags": tags_of(item),
    }
    coming = _coming(item.get("AdministrativeActions") or ())
    return {**found, **coming, "updating": sorted(coming), "last_update": _last_update(item)}


def mount_source(dns_name: str, mount_name: str) -> str:
    """What Lustre mounts, and what role shared_storage takes as ``source``; '' while the names are not known."""
    return f"{dns_name}@tcp:/{mount_name}" if dns_name and mount_name else ""


def _coming(actions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The values of updates that were asked for and are not done."""
    coming: dict[str, Any] = {}
    for action in actions:
        if action.get("AdministrativeActionType") != "FILE_SYSTEM_UPDATE" or action.get("Status") not in _UNDER_WAY:
            continue
        values = action.get("TargetFileSystemValues") or {}
        lustre = values.get("LustreConfiguration") or {}
        coming.update({option: values[field] for option, field in _UPDATES.items() if field in values})
        coming.update({option: lustre[field] for option, field in _LUSTRE_UPDATES.items() if field in lustre})
    return coming


def _moment(action: Mapping[str, Any]) -> float:
    """When an update was asked for, seconds since 1970."""
    asked = action.get("RequestTime")
    return float(asked.timestamp()) if asked is not None else 0.0


def _last_update(item: Mapping[str, Any]) -> float:
    """When the newest update was asked for: the same update on top of it gets another token."""
    return max((_moment(action) for action in item.get("AdministrativeActions") or ()), default=0.0)


def failed_update(item: Mapping[str, Any], since: float) -> str:
    """Why the newest update after ``since`` (a ``last_update``) failed; '' if it did not."""
    for action in item.get("AdministrativeActions") or ():
        if action.get("Status") == "FAILED" and _moment(action) > since:
            return str((action.get("FailureDetails") or {}).get("Message") or "no reason was given")
    return ""


def wanted_tags(params: Params) -> dict[str, str]:
    """The tags of the file system; its name is what it is found by, so the user's cannot change that."""
    return {**own_tags(params), "Name": params["name"], **keep_tags({}, params.get("keep"))}


def belonging(items: Iterable[Mapping[str, Any]], params: Params) -> list[Mapping[str, Any]]:
    """Those of all file systems of the account that are meant."""
    return of_cluster((item for item in items if item.get("FileSystemType") == "LUSTRE"), params)


def plan_file_system(found: Sequence[FileSystem], params: Params) -> Plan:
    """What to do, given every file system of the name. Raises TrainiumError for what FSx would not do."""
    going = [item for item in found if item["lifecycle"] == "DELETING"]
    living = [item for item in found if item["lifecycle"] != "DELETING"]
    if params["state"] == "absent":
        return Plan(None, False, {}, {}, living, going)
    if len(living) > 1:
        ids = ", ".join(sorted(item["file_system_id"] for item in living))
        raise TrainiumError(f"{len(living)} file systems have this name: {ids}; delete those that are too many")
    if not living:
        return Plan(None, True, {}, {}, [], going)
    current = living[0]
    if current["lifecycle"] == "FAILED":
        reason = current["failure"].rstrip(".") or "FSx gives no reason"
        raise TrainiumError(
            f"{current['file_system_id']} could not be made: {reason}; remove it with state=absent, then run again"
        )
    tags = {key: value for key, value in wanted_tags(params).items() if current["tags"].get(key) != value}
    tags.update(keep_tags(current["tags"], params.get("keep")))
    return Plan(current, False, _update(current, params), tags, [], [])


def _update(current: FileSystem, params: Params) -> dict[str, Any]:
    """The options of ``current`` that change; an option that is not given stays as it is."""
    identity = current["file_system_id"]
    for option in (*_FIXED, "subnet_id", "kms_key_id"):
        wanted = params.get(option)
        if wanted not in (None, "") and not _same(option, wanted, current[option]):
            raise TrainiumError(
                f"{identity} has {option} {_shown(current[option])}, not {_shown(wanted)}, which FSx cannot change; "
                "make another file system by another name and copy the data"
            )
    update = {}
    for option in (*_UPDATES, *_LUSTRE_UPDATES):
        if params.get(option) is not None and params[option] != current[option]:
            update[option] = params[option]
    if "storage_capacity" in update:
        _check_growth(current, update["storage_capacity"], params)
    if "per_unit_storage_throughput" in update and current["storage_type"] == "HDD":
        raise TrainiumError(f"{identity} is on HDD, whose per_unit_storage_throughput FSx cannot change; leave it out")
    if "per_unit_storage_throughput" in update:
        check_throughput(current["deployment_type"], current["storage_type"], update["per_unit_storage_throughput"])
    if "file_system_version" in update and _version(update["file_system_version"]) < _version(
        current["file_system_version"]
    ):
        raise TrainiumError(
            f"{identity} has Lustre {current['file_system_version']}, and FSx only raises the version; "
            f"file_system_version={update['file_system_version']} is lower"
        )
    if "auto_import_policy" in update and not current["import_path"]:
        raise TrainiumError(f"{identity} is not linked to a bucket, so it takes no auto_import_policy; leave it out")
    backups = update.get("automatic_backup_retention_days")
    if backups and (current["deployment_type"].startswith("SCRATCH") or current["import_path"]):
        raise TrainiumError(
            f"{identity} has no backups, being {current['deployment_type']} or linked to a bucket; "
            "leave automatic_backup_retention_days out"
        )
    if update and current["lifecycle"] not in ("AVAILABLE", "UPDATING"):
        raise TrainiumError(
            f"{identity} is {current['lifecycle']}, and FSx changes {', '.join(sorted(update))} only while it is "
            "available; wait for it and run again"
        )
    if update and current["updating"]:
        raise TrainiumError(
            f"{identity} is still being changed ({', '.join(current['updating'])}); wait until that is done, then "
            f"change {', '.join(sorted(update))}"
        )
    return update


def _check_growth(current: FileSystem, capacity: int, params: Params) -> None:
    identity, now = current["file_system_id"], current["storage_capacity"]
    if capacity < now:
        raise TrainiumError(
            f"{identity} has {now} GiB, and FSx only raises that; storage_capacity={capacity} is lower, so make "
            "another file system by another name"
        )
    throughput = params.get("per_unit_storage_throughput") or current["per_unit_storage_throughput"]
    check_capacity(current["deployment_type"], current["storage_type"], throughput, capacity, first=False)


def _same(option: str, wanted: Any, there: Any) -> bool:
    if option == "kms_key_id":
        # FSx shows an ARN where the key's id was given; what an alias stands for cannot be seen here.
        return bool("alias/" in wanted or wanted == there or str(there).endswith(f"/{wanted}"))
    return bool(wanted == there)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) or "none"


def complete(params: Params) -> dict[str, Any]:
    """The arguments of a new file system with the defaults."""
    return {**params, **{option: value for option, value in DEFAULTS.items() if params.get(option) is None}}


def creation(params: Params) -> dict[str, Any]:
    """The request of CreateFileSystem with its ClientRequestToken: the same request has the same one."""
    full = complete(params)
    lustre = {
        field: full[option] for option, field in _LUSTRE_FIELDS.items() if full.get(option) not in (None, "", False)
    }
    if lustre.get("AutomaticBackupRetentionDays") == 0:
        del lustre["AutomaticBackupRetentionDays"]
    request: dict[str, Any] = {
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": full["file_system_version"],
        "StorageCapacity": full["storage_capacity"],
        "StorageType": full["storage_type"],
        "SubnetIds": [full["subnet_id"]],
        "LustreConfiguration": lustre,
        "Tags": tag_list(wanted_tags(full)),
    }
    if full.get("security_groups"):
        request["SecurityGroupIds"] = list(full["security_groups"])
    if full.get("kms_key_id"):
        request["KmsKeyId"] = full["kms_key_id"]
    request["ClientRequestToken"] = client_token(request)
    return request


def updating(current: FileSystem, update: Mapping[str, Any]) -> dict[str, Any]:
    """The request of UpdateFileSystem with its ClientRequestToken."""
    request: dict[str, Any] = {"FileSystemId": current["file_system_id"]}
    request.update({field: update[option] for option, field in _UPDATES.items() if option in update})
    lustre = {field: update[option] for option, field in _LUSTRE_UPDATES.items() if option in update}
    if lustre:
        request["LustreConfiguration"] = lustre
    request["ClientRequestToken"] = client_token({**request, "after": current["last_update"]})
    return request


def predicted(params: Params, plan: Plan) -> FileSystem:
    """The file system as it will be; a new one has no id and no names yet."""
    if plan.current:
        return {**plan.current, **plan.update, "tags": {**plan.current["tags"], **plan.tags}}
    full = complete(params)
    empty = file_system_of({"FileSystemId": "", "Lifecycle": "AVAILABLE"})
    given = {key: full[key] for key in empty if full.get(key) is not None}
    return {**empty, **given, "tags": wanted_tags(full)}


def shown(file_system: FileSystem) -> dict[str, Any]:
    """The file system as the module returns it."""
    return {key: value for key, value in file_system.items() if key not in ("failure", "last_update")}
