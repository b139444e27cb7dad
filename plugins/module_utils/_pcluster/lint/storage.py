# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules about shared and local storage.

Source: the ParallelCluster 3.16 and FSx documentation, and what ParallelCluster's dry run was seen to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.storage import KINDS, pascal
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.queues import repeated
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import (
    WARNING,
    Finding,
    View,
    entries,
    number,
    queues,
    section,
    subnets_of,
    text,
)

STORAGE = "SharedStorage"
NAME_LENGTH = 30
# Where a node has something of its own already.
RESERVED = frozenset(
    f"/{name}"
    for name in (
        *("", "bin", "boot", "dev", "etc", "lib", "lib64", "media", "mnt", "opt", "opt/intel", "opt/slurm"),
        *("opt/parallelcluster", "opt/parallelcluster/shared", "opt/parallelcluster/shared_login_nodes"),
        *("proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"),
    )
)
EXISTING = {pascal(kind.existing) for kind in KINDS.values()}
# How many file systems ParallelCluster makes, and how many it mounts that exist.
NEW = {"Efs": 1, "FsxLustre": 1, "Ebs": 5}
MOUNTED = {"Efs": 20, "FsxLustre": 20}
# MB/s per TiB that FSx offers.
THROUGHPUT = {"PERSISTENT_1": (50, 100, 200), "PERSISTENT_2": (125, 250, 500, 1000)}
EPHEMERAL_DEFAULT = "/scratch"


class Mount(NamedTuple):
    """A directory with its key; ``what`` describes it to a reader."""

    key: str
    path: str
    what: str


def storages(view: View) -> list[tuple[str, Mapping[str, Any]]]:
    return list(entries(view.configuration, STORAGE))


def settings_of(storage: Mapping[str, Any]) -> Mapping[str, Any]:
    return section(storage, f"{storage.get('StorageType')}Settings")


def is_new(storage: Mapping[str, Any]) -> bool:
    """Whether ParallelCluster makes it, and does not merely mount it."""
    return not any(settings_of(storage).get(key) for key in EXISTING)


def _shared(view: View) -> list[Mount]:
    return [
        Mount(f"{key}/MountDir", text(item.get("MountDir")), f"shared storage {item.get('Name')}")
        for key, item in storages(view)
        if text(item.get("MountDir"))
    ]


def _disks(view: View) -> list[tuple[str, Mapping[str, Any]]]:
    """What is said of the disks of head node and queues."""
    return [
        ("HeadNode/LocalStorage", section(view.configuration, "HeadNode", "LocalStorage")),
        *(
            (f"{key}/ComputeSettings/LocalStorage", section(queue, "ComputeSettings", "LocalStorage"))
            for key, queue in queues(view)
        ),
    ]


def _local(view: View) -> list[Mount]:
    """Directories of the nodes' own disks; on /scratch where nothing else is said."""
    return [
        Mount(
            f"{key}/EphemeralVolume/MountDir",
            text(section(holder, "EphemeralVolume").get("MountDir")) or EPHEMERAL_DEFAULT,
            "the local disks",
        )
        for key, holder in _disks(view)
    ]


def _plain(path: str) -> str:
    """``/fsx/`` and ``fsx`` as ``/fsx``."""
    return "/" + path.strip("/")


def directories(view: View) -> Iterator[Finding]:
    for mount in _shared(view) + _local(view):
        if any(character.isspace() for character in mount.path):
            yield Finding(mount.key, f"{mount.path!r} has a space in it; give one directory, such as /shared")
        elif not mount.path.startswith("/"):
            yield Finding(mount.key, f"{mount.path!r} is relative; write /{mount.path}")
        elif _plain(mount.path) in RESERVED:
            yield Finding(mount.key, f"{mount.path} belongs to the system; mount elsewhere, such as /shared")


def clashes(view: View) -> Iterator[Finding]:
    """Directories that are used twice, or of which one lies in the other."""
    shared = _shared(view)
    for index, mount in enumerate(shared + _local(view)):
        path = _plain(mount.path)
        for other in shared[:index]:
            taken = _plain(other.path)
            if path == taken:
                problem = f"{path} is used by {other.what} as well ({other.key}); choose another directory"
                yield Finding(mount.key, problem)
            elif path.startswith(taken + "/") or taken.startswith(path + "/"):
                where = f"{path} and {taken} of {other.what} lie in each other ({other.key})"
                yield Finding(mount.key, f"{where}; choose directories side by side")


def names(view: View) -> Iterator[Finding]:
    yield from repeated("shared storage", [(f"{key}/Name", item.get("Name")) for key, item in storages(view)])
    for key, item in storages(view):
        name = text(item.get("Name"))
        if len(name) > NAME_LENGTH:
            yield Finding(f"{key}/Name", f"{name!r} has {len(name)} characters; use at most {NAME_LENGTH}")
        if name == "default":
            yield Finding(f"{key}/Name", "the name 'default' is reserved; choose another")


def kinds(view: View) -> Iterator[Finding]:
    """Settings of one type beside the name of another, such as EFS and FSx mixed up."""
    for key, item in storages(view):
        for kind in KINDS.values():
            if kind.settings in item and item.get("StorageType") != kind.storage_type:
                yield Finding(
                    f"{key}/{kind.settings}",
                    f"they are for StorageType {kind.storage_type}, and it is {item.get('StorageType')}; "
                    "make the two agree",
                )


def how_many(view: View) -> Iterator[Finding]:
    for limits, new, kind, does, remedy in (
        (NEW, True, "new", "makes", "give the others' ids, or remove them"),
        (MOUNTED, False, "existing", "mounts", "remove some"),
    ):
        for name, limit in limits.items():
            found = [key for key, item in storages(view) if item.get("StorageType") == name and is_new(item) is new]
            if len(found) > limit:
                problem = f"there are {len(found)} {kind} {name} and ParallelCluster {does} {limit}; {remedy}"
                yield Finding(found[limit], problem)


def lustre(view: View) -> Iterator[Finding]:
    for key, item in storages(view):
        settings, where = section(item, "FsxLustreSettings"), f"{key}/FsxLustreSettings"
        if item.get("StorageType") != "FsxLustre" or not is_new(item) or settings.get("BackupId"):
            continue
        yield from _lustre_capacity(settings, where)
        deployment = text(settings.get("DeploymentType"))
        throughput = settings.get("PerUnitStorageThroughput")
        offered = THROUGHPUT.get(deployment)
        if settings.get("StorageType") == "HDD":
            offered = (12, 40)
        if offered and throughput not in offered:
            yield Finding(
                f"{where}/PerUnitStorageThroughput",
                f"{deployment} has {', '.join(map(str, offered))} MB/s per TiB, not {throughput}; choose one of them",
            )
        if not offered and throughput is not None:
            yield Finding(
                f"{where}/PerUnitStorageThroughput",
                "only PERSISTENT_1 and PERSISTENT_2 have it; remove it or change DeploymentType",
            )
        if deployment == "PERSISTENT_2" and (settings.get("ImportPath") or settings.get("ExportPath")):
            name = "ImportPath" if settings.get("ImportPath") else "ExportPath"
            yield Finding(
                f"{where}/{name}", "PERSISTENT_2 has no import and export paths; use DataRepositoryAssociations"
            )


def _lustre_capacity(settings: Mapping[str, Any], where: str) -> Iterator[Finding]:
    capacity, deployment = settings.get("StorageCapacity"), settings.get("DeploymentType")
    key = f"{where}/StorageCapacity"
    if capacity is None:
        yield Finding(key, "is missing; a new file system has 1200 GiB or a multiple of 2400")
        return
    size = number(capacity, 0)
    if settings.get("StorageType") == "HDD":
        return
    step = 3600 if deployment == "SCRATCH_1" else 2400
    small = (1200, 2400) if deployment == "SCRATCH_1" else (1200,)
    if size <= 0 or (size not in small and size % step):
        choices = " or ".join(map(str, small))
        yield Finding(key, f"FSx has no {size} GiB for {deployment}; use {choices}, or a multiple of {step}")


def zones(view: View) -> Iterator[Finding]:
    """A new Lustre file system lies in one subnet; the nodes of another zone would not reach it.

    ManagedFsxMultiAzValidator looks at the subnets of all queues together.
    """
    of_queues = {key: set(subnets_of(queue)) for key, queue in queues(view)}
    subnets = set().union(*of_queues.values())
    wide = [key for key, found in of_queues.items() if len(found) > 1]
    for key, item in storages(view):
        if len(subnets) < 2 or item.get("StorageType") != "FsxLustre" or not is_new(item):
            continue
        yield Finding(
            key,
            f"ParallelCluster makes FSx for Lustre only where all nodes are in one subnet, and there are "
            f"{len(subnets)}; give the id of a file system that is there, or leave one subnet",
        )
        if wide:
            yield Finding(
                f"{wide[0]}/Networking/SubnetIds",
                f"a new FSx for Lustre ({key}) lies in one subnet, and this queue has several; leave one "
                "subnet or mount a file system that exists",
            )


def encryption(view: View) -> Iterator[Finding]:
    for key, item in storages(view):
        kind = item.get("StorageType")
        if kind not in ("Efs", "Ebs") or not is_new(item):
            continue
        # EBS volumes are encrypted by default, EFS is not.
        encrypted = settings_of(item).get("Encrypted", kind == "Ebs")
        if encrypted is not True:
            yield Finding(
                f"{key}/{kind}Settings/Encrypted", "the data would lie there in clear; set it to true", WARNING
            )
    for key, holder in _disks(view):
        if section(holder, "RootVolume").get("Encrypted") is False:
            yield Finding(f"{key}/RootVolume/Encrypted", "the node's disk would be in clear; set it to true", WARNING)


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (
    directories,
    clashes,
    names,
    kinds,
    how_many,
    lustre,
    zones,
    encryption,
)
