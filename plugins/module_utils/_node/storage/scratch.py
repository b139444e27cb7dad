# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What lsblk says about the NVMe instance store -> the next step towards one file system over all of it.

The instance store is blank after every stop and start of an instance, so the same decision is made at every boot, by a
program on the host that has a copy of this file beside it. So it imports Python's own library only, and runs on 3.7.
A device is only ever written to when it shows no sign of use at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

MODEL = "Amazon EC2 NVMe Instance Storage"
LABEL = "tc-scratch"
ARRAY = "/dev/md/tc-scratch"


class ScratchError(ValueError):
    """An instance store that cannot be used as it is; the message is one sentence for the user."""


class Step(NamedTuple):
    """``nothing``, ``create_array`` or ``assemble`` (devices), ``make_filesystem`` or ``mount`` (one device)."""

    action: str
    devices: list[str]


def next_step(lsblk: dict[str, Any], path: str, filesystem: str) -> Step:
    """The next step from the parsed output of ``lsblk --json``; repeated until it is ``nothing``.

    Raises ScratchError where there is no instance store, or where any part of it, or the path, is used by others.
    """
    everything = list(lsblk.get("blockdevices") or [])
    disks = sorted((d for d in everything if _is_instance_store(d)), key=lambda d: _text(d, "name"))
    if not disks:
        raise ScratchError(
            f"This instance has no NVMe instance store for {path}; set shared_storage_scratch to false for it, "
            "or choose an instance type that has one."
        )
    arrays = {_text(child, "name"): child for disk in disks for child in _children(disk)}
    _check_path_is_free(everything, disks, path)
    for disk in disks:
        _check_device_is_ours(disk)
    if len(disks) == 1:
        return _file_system_step(disks[0], path, filesystem)
    members = [disk for disk in disks if _text(disk, "fstype") == "linux_raid_member"]
    names = [_device(disk) for disk in disks]
    if not members:
        # A blank device, or one whose file system of ours is from before there were several.
        for disk in disks:
            if _text(disk, "fstype"):
                raise ScratchError(
                    f"{_device(disk)} has a file system of its own, although there are {len(disks)} devices; erase it "
                    "with wipefs if nothing on it is needed."
                )
        return Step("create_array", names)
    if len(members) < len(disks):
        blank = [_device(disk) for disk in disks if disk not in members]
        raise ScratchError(
            f"The array for {path} does not span all devices ({', '.join(blank)} is blank); stop it and erase "
            "its members with wipefs if nothing on it is needed."
        )
    if not arrays:
        return Step("assemble", names)
    if len(arrays) > 1 or any(len(_children(disk)) != 1 for disk in disks):
        raise ScratchError(
            "The devices of the instance store belong to several arrays, or only some to one "
            f"({', '.join(names)}); stop them and erase their members with wipefs if nothing on them is needed."
        )
    array = next(iter(arrays.values()))
    if _text(array, "type") != "raid0":
        raise ScratchError(
            f"{_device(array)} is {_text(array, 'type') or 'unknown'} and not raid0; use it by hand, or stop it "
            "and erase its members with wipefs."
        )
    if _children(array) or _text(array, "pttype"):
        raise ScratchError(f"{_device(array)} has partitions or other users on it; free it first.")
    return _file_system_step(array, path, filesystem)


def _file_system_step(device: dict[str, Any], path: str, filesystem: str) -> Step:
    kind = _text(device, "fstype")
    mounted = _mount_points(device)
    if not kind:
        if mounted:
            raise ScratchError(f"{_device(device)} is in use at {mounted[0]}; unmount it first.")
        return Step("make_filesystem", [_device(device)])
    if kind != filesystem or _text(device, "label") != LABEL:
        raise ScratchError(
            f"{_device(device)} has a file system {kind} that is not the {filesystem} of this role; erase it "
            "with wipefs if nothing on it is needed."
        )
    if path in mounted:
        return Step("nothing", [])
    if mounted:
        raise ScratchError(f"{_device(device)} is mounted at {mounted[0]} and not at {path}; unmount it first.")
    return Step("mount", [_device(device)])


def _check_device_is_ours(disk: dict[str, Any]) -> None:
    """Whether a disk is blank, a member of the role's array or has the role's file system: else it is refused."""
    kind, label = _text(disk, "fstype"), _text(disk, "label")
    if kind == "linux_raid_member" and label.rpartition(":")[2] == LABEL:
        return
    use = ""
    if kind and not (label == LABEL and kind in ("xfs", "ext4")):
        use = kind + (" " + label if label else "")
    elif _text(disk, "pttype"):
        use = "a partition table (" + _text(disk, "pttype") + ")"
    elif _children(disk):
        child = _children(disk)[0]
        use = (_text(child, "type") or "a device") + " " + _text(child, "name") + " on it"
    elif not kind and _mount_points(disk):
        use = "a mount at " + _mount_points(disk)[0]
    if use:
        raise ScratchError(
            f"{_device(disk)} has {use} and is left as it is; erase it with wipefs if nothing on it is needed, "
            "or set shared_storage_scratch to false."
        )


def _check_path_is_free(everything: list[dict[str, Any]], disks: list[dict[str, Any]], path: str) -> None:
    """Refuse a path where a device is mounted that is no part of the instance store."""
    for device in everything:
        if device not in disks:
            for part in _with_descendants(device):
                if path in _mount_points(part):
                    raise ScratchError(
                        f"{_device(part)} is mounted at {path} already; set shared_storage_scratch_path to another "
                        "directory."
                    )


def _is_instance_store(device: dict[str, Any]) -> bool:
    return _text(device, "type") == "disk" and _text(device, "model").replace("_", " ").strip() == MODEL


def _with_descendants(device: dict[str, Any]) -> list[dict[str, Any]]:
    return [device] + [part for child in _children(device) for part in _with_descendants(child)]


def _children(device: dict[str, Any]) -> list[dict[str, Any]]:
    return list(device.get("children") or [])


def _mount_points(device: dict[str, Any]) -> list[str]:
    found = [device.get("mountpoint"), *(device.get("mountpoints") or [])]
    return [str(point) for point in found if point]


def _device(device: dict[str, Any]) -> str:
    return "/dev/" + _text(device, "name")


def _text(device: dict[str, Any], key: str) -> str:
    value = device.get(key)
    return "" if value is None else str(value).strip()
