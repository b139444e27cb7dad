# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The SharedStorage section of a ParallelCluster configuration, from short variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

Variables = Mapping[str, Any]


class Kind(NamedTuple):
    """``existing``: the option that names a file system or volume that exists. ``defaults`` hold for a new one only."""

    storage_type: str
    existing: str
    defaults: Mapping[str, Any]

    @property
    def settings(self) -> str:
        """The section's name."""
        return f"{self.storage_type}Settings"


KINDS: dict[str, Kind] = {
    "efs": Kind("Efs", "file_system_id", {"encrypted": True}),
    "fsx_lustre": Kind(
        "FsxLustre",
        "file_system_id",
        {
            "storage_capacity": 1200,
            "deployment_type": "PERSISTENT_2",
            "per_unit_storage_throughput": 250,
            "data_compression_type": "LZ4",
        },
    ),
    "fsx_openzfs": Kind("FsxOpenZfs", "volume_id", {}),
    "fsx_ontap": Kind("FsxOntap", "volume_id", {}),
    "file_cache": Kind("FileCache", "file_cache_id", {}),
    "ebs": Kind("Ebs", "volume_id", {"encrypted": True, "volume_type": "gp3", "size": 200}),
}
NFS = "nfs"

# Options whose key is not simply their name in another spelling.
_SPECIAL = {"fsx_storage_type": "StorageType"}
_OWN = ("type", "name", "mount_dir")


def pascal(name: str) -> str:
    """``provisioned_throughput`` as ``ProvisionedThroughput``."""
    return _SPECIAL.get(name) or "".join(part.capitalize() for part in name.split("_"))


def storage_name(item: Variables) -> str:
    """The name of an entry; by default, what its mount directory says: ``fsx`` for ``/fsx``."""
    return str(item.get("name") or str(item.get("mount_dir", "")).strip("/").replace("/", "-").replace("_", "-"))


def render_storage(items: Iterable[Variables]) -> list[dict[str, Any]]:
    """The SharedStorage section.

    Args:
        items: {type, mount_dir, name, and the options of the type in snake case}. Type ``nfs`` is not in it: a node
            mounts that by a script.

    Raises:
        TrainiumError: a type that there is not.
    """
    sections = []
    for index, item in enumerate(items):
        if item.get("type") == NFS:
            continue
        kind = KINDS.get(str(item.get("type")))
        if kind is None:
            raise TrainiumError(
                f"shared_storage[{index}].type is {item.get('type')!r}; use one of {', '.join([*KINDS, NFS])}"
            )
        section: dict[str, Any] = {"Name": storage_name(item), "StorageType": kind.storage_type}
        if item.get("mount_dir") is not None:
            section["MountDir"] = item["mount_dir"]
        settings = _settings(kind, item)
        if settings:
            section[kind.settings] = settings
        sections.append(section)
    return sections


def _settings(kind: Kind, item: Variables) -> dict[str, Any]:
    given = {key: value for key, value in item.items() if key not in _OWN}
    if kind.existing not in given and "backup_id" not in given:
        defaults = dict(kind.defaults)
        if str(given.get("deployment_type", "")).startswith("SCRATCH"):
            defaults.pop("per_unit_storage_throughput", None)
        if "snapshot_id" in given:
            defaults.pop("size", None)
        if "provisioned_throughput" in given:
            defaults["throughput_mode"] = "provisioned"
        given = {**defaults, **given}
    return {pascal(key): value for key, value in given.items()}


def nfs_actions(items: Iterable[Variables]) -> list[dict[str, Any]]:
    """The custom actions that mount the entries of type ``nfs``.

    ParallelCluster has no shared storage of that kind: each entry's ``script`` is run on every node with the source,
    the directory and the mount options.

    Raises:
        TrainiumError: an entry lacks its server or its script.
    """
    actions = []
    for index, item in enumerate(items):
        if item.get("type") != NFS:
            continue
        missing = [key for key in ("server", "path", "mount_dir", "script") if not item.get(key)]
        if missing:
            raise TrainiumError(
                f"shared_storage[{index}] of type nfs lacks {', '.join(missing)}; script is the URL of a script that "
                "takes the source, the directory and the mount options"
            )
        options = str(item.get("options") or "nfsvers=4.1,_netdev,noatime")
        source = f"{item['server']}:{item['path']}"
        actions.append({"script": item["script"], "args": [source, str(item["mount_dir"]), options]})
    return actions
