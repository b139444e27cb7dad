"""What the kernel shows of mounts, and whether that is what is wanted."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.mount_state import (
    Mounted,
    is_sound,
    parse_mountinfo,
)

MOUNTINFO = """\
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw
30 22 0:50 / /home rw - nfs4 fs-1.efs.us-west-2.amazonaws.com:/ rw,vers=4.1
31 22 259:1 /srv/a\\040b /mnt/a\\040b rw,relatime shared:1 master:2 - ext4 /dev/nvme0n1p1 rw
32 22 0:51 / /fsx rw - autofs systemd-1 rw
33 32 0:52 / /fsx rw - lustre 10.0.0.9@tcp:/abcdef rw
broken line
"""


def test_the_mount_on_top_counts_and_escapes_are_undone() -> None:
    found = parse_mountinfo(MOUNTINFO)
    assert found["/mnt/a b"].root == "/srv/a b"
    assert found["/fsx"].fstype == "lustre"
    assert set(found) == {"/", "/home", "/mnt/a b", "/fsx"}


@pytest.mark.parametrize(
    ("path", "source", "fstype", "same", "sound"),
    [
        ("/home", "fs-1.efs.us-west-2.amazonaws.com:/", "nfs4", False, True),
        ("/home", "fs-2.efs.us-west-2.amazonaws.com:/", "nfs4", False, False),
        ("/fsx", "fs-1.fsx.us-west-2.amazonaws.com@tcp:/abcdef", "lustre", False, True),
        ("/fsx", "fs-1.fsx.us-west-2.amazonaws.com@tcp:/other", "lustre", False, False),
        ("/mnt/a b", "/srv/a b", "none", True, True),
        ("/mnt/a b", "/srv/a b", "none", False, False),
        ("/", "/dev/nvme0n1p1", "ext4", False, True),
        ("/", "fs-1:/", "nfs4", False, False),
    ],
)
def test_what_is_mounted_is_compared_with_what_is_wanted(
    path: str, source: str, fstype: str, same: bool, sound: bool
) -> None:
    there: Mounted = parse_mountinfo(MOUNTINFO)[path]
    assert is_sound(there, source, fstype, same) is sound
