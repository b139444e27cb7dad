"""The instance store: what lsblk shows, what is done next, and that nothing of anybody's is ever written to."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.scratch import (
    ARRAY,
    LABEL,
    MODEL,
    ScratchError,
    Step,
    next_step,
)
from hypothesis import given
from hypothesis import strategies as st

ROOT = {
    "name": "nvme0n1",
    "type": "disk",
    "model": "Amazon Elastic Block Store",
    "pttype": "gpt",
    "children": [{"name": "nvme0n1p1", "type": "part", "fstype": "ext4", "label": "cloudimg", "mountpoint": "/"}],
}


def disk(number: int, **more: Any) -> dict[str, Any]:
    blank = {"model": f"{MODEL}        ", "fstype": None, "label": None, "mountpoint": None, "pttype": None}
    return {"name": f"nvme{number}n1", "type": "disk", **blank, **more}


def member(number: int, **array: Any) -> dict[str, Any]:
    children = {"children": [{"name": "md127", "type": "raid0", **array}]} if array else {}
    return disk(number, fstype="linux_raid_member", label=f"any:{LABEL}", **children)


def step(*disks: dict[str, Any], path: str = "/scratch", filesystem: str = "xfs") -> Step:
    return next_step({"blockdevices": [ROOT, *disks]}, path, filesystem)


OURS = {"fstype": "xfs", "label": LABEL}


@pytest.mark.parametrize(
    ("disks", "action", "devices"),
    [
        ([disk(1)], "make_filesystem", ["/dev/nvme1n1"]),
        ([disk(1, **OURS)], "mount", ["/dev/nvme1n1"]),
        ([disk(1, **OURS, mountpoint="/scratch")], "nothing", []),
        ([disk(2), disk(1)], "create_array", ["/dev/nvme1n1", "/dev/nvme2n1"]),
        ([member(1), member(2)], "assemble", ["/dev/nvme1n1", "/dev/nvme2n1"]),
        ([member(1, fstype=None), member(2, fstype=None)], "make_filesystem", ["/dev/md127"]),
        ([member(1, **OURS), member(2, **OURS)], "mount", ["/dev/md127"]),
        ([member(1, **OURS, mountpoint="/scratch"), member(2, **OURS, mountpoint="/scratch")], "nothing", []),
    ],
)
def test_the_next_step(disks: list[dict[str, Any]], action: str, devices: list[str]) -> None:
    assert step(*disks) == Step(action, devices)


@pytest.mark.parametrize(
    ("disks", "message"),
    [
        ([], "no NVMe instance store"),
        ([disk(1, fstype="ext4", label="data")], "nvme1n1 has ext4 data and is left as it is"),
        ([disk(1), disk(2, fstype="LVM2_member")], "nvme2n1 has LVM2_member"),
        ([disk(1, pttype="gpt")], "a partition table"),
        ([disk(1, children=[{"name": "vg-lv", "type": "lvm"}])], "lvm vg-lv on it"),
        ([disk(1, mountpoint="/data")], "a mount at /data"),
        ([disk(1, **OURS, mountpoint="/old")], "is mounted at /old and not at /scratch"),
        ([disk(1, fstype="ext4", label=LABEL)], "not the xfs of this role"),
        ([disk(1, fstype="linux_raid_member", label="other:0"), disk(2)], "linux_raid_member other:0"),
        ([member(1), disk(2)], "does not span all devices"),
        ([disk(1, **OURS), disk(2)], "has a file system of its own"),
        ([member(1, **OURS), member(2)], "only some to one"),
        ([{**member(1), "children": [{"name": "md127", "type": "raid1"}]}] * 2, "raid1 and not raid0"),
        ([member(1, pttype="gpt"), member(2, pttype="gpt")], "has partitions"),
    ],
)
def test_whatever_is_in_use_is_refused(disks: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ScratchError, match=message) as found:
        step(*disks)
    assert "\n" not in str(found.value)


def test_a_path_where_another_device_is_mounted_is_refused() -> None:
    with pytest.raises(ScratchError, match="nvme0n1p1 is mounted at / already"):
        step(disk(1), path="/")


def test_newer_lsblk_lists_several_mount_points() -> None:
    assert step(disk(1, **OURS, mountpoints=["/bind", "/scratch"])).action == "nothing"


def do(found: Step, devices: dict[str, Any]) -> None:
    """What the program on the host does, on the output of lsblk instead of on devices. Fails on anything not blank."""
    named = {f"/dev/{device['name']}": device for device in devices["blockdevices"]}
    if found.action in ("create_array", "assemble"):
        for name in found.devices:
            if found.action == "create_array":
                assert not any(named[name].get(key) for key in ("fstype", "pttype", "mountpoint", "children"))
                assert named[name]["model"].strip() == MODEL
            named[name].update(fstype="linux_raid_member", label=f"any:{LABEL}")
            named[name]["children"] = [{"name": "md127", "type": "raid0"}]
        return
    targets = [named[name] for name in found.devices if name in named]
    if found.devices == ["/dev/md127"]:
        targets = [child for device in named.values() for child in device.get("children", []) if "md" in child["name"]]
    assert targets
    for target in targets:
        if found.action == "make_filesystem":
            assert not any(target.get(key) for key in ("fstype", "pttype", "mountpoint", "children"))
            target.update(OURS)
        elif found.action == "mount":
            assert (target["fstype"], target["label"]) == ("xfs", LABEL)
            target["mountpoint"] = "/scratch"


USES: list[dict[str, Any]] = [
    {},
    OURS,
    {"fstype": "ext4", "label": "data"},
    {"pttype": "gpt"},
    {"mountpoint": "/data"},
    {"fstype": "linux_raid_member", "label": f"any:{LABEL}"},
    {"fstype": "linux_raid_member", "label": "other:0"},
    {"children": [{"name": "vg-lv", "type": "lvm", "fstype": "xfs"}]},
]


@given(st.lists(st.sampled_from(USES), max_size=5))
def test_any_devices_are_refused_or_end_up_mounted_and_others_are_never_written_to(uses: list[dict[str, Any]]) -> None:
    devices = {"blockdevices": [copy.deepcopy(ROOT), *(disk(n, **copy.deepcopy(use)) for n, use in enumerate(uses, 1))]}
    before = copy.deepcopy(devices)
    for _step in range(7):
        try:
            found = next_step(devices, "/scratch", "xfs")
        except ScratchError as error:
            assert "\n" not in str(error)
            foreign = [use for use in uses if use in (USES[2], USES[3], USES[4], USES[6], USES[7])]
            mixed = len({str(use) for use in uses}) > 1 or (len(uses) > 1 and uses[0] == OURS)
            # A lone member of an array is of no use either.
            assert not uses or foreign or mixed or uses == [USES[5]]
            assert devices == before or uses == [USES[5]]
            return
        if found.action == "nothing":
            return
        do(found, devices)
    raise AssertionError("the steps do not end")


def test_the_label_fits_every_file_system() -> None:
    assert len(LABEL) <= 12
    assert ARRAY.endswith(LABEL)
