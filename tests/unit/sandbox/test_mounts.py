"""What the hosts of the sandbox are shown of file systems of EFS and FSx: what the role shared_storage compares."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.mount_state import (
    is_sound,
    parse_mountinfo,
)

from sandbox.paths import Paths

ROOTFS = Path(__file__).resolve().parents[3] / "sandbox/rootfs"
IDENTITY = "fs-0a1b2c3d4e5f60010"
SERVER = f"{IDENTITY}.efs.us-west-2.amazonaws.com"
TEXT = f"""\
29 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 29 254:0 /srv/.sandbox/filesystems/efs/{IDENTITY} /neuron_shared rw,nosuid,nodev - ext4 /dev/vda rw
32 29 254:0 /srv/.sandbox/filesystems/efs/{IDENTITY}/data /data ro - ext4 /dev/vda rw
34 29 254:0 /srv/.sandbox/filesystems/fsx/fs-0b1b2c3d4e5f60011 /fsx rw,nosuid,nodev - ext4 /dev/vda rw
33 29 254:0 /srv/.sandbox/filesystems/efs/fs-0000000000000000f /other rw - ext4 /dev/vda rw
"""


def stand_in() -> Any:
    path = ROOTFS / "usr/lib/python3/dist-packages/sandbox_mounts.py"
    spec = importlib.util.spec_from_file_location("sandbox_mounts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_folders_of_EFS_and_FSx_are_shown_as_NFS_and_Lustre_and_nothing_else_is(tmp_path: Path) -> None:  # noqa: N802
    (tmp_path / IDENTITY).write_text(f"nfs4 {SERVER}:\n")
    lustre = "fs-0b1b2c3d4e5f60011.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh"
    (tmp_path / "fs-0b1b2c3d4e5f60011").write_text(f"lustre {lustre}\n")
    text = stand_in().shown(TEXT, tmp_path)
    found = parse_mountinfo(text)
    assert is_sound(found["/neuron_shared"], f"{SERVER}:/", "nfs4", False)
    assert is_sound(found["/data"], f"{SERVER}:/data", "nfs4", False)
    assert is_sound(found["/fsx"], lustre, "lustre", False)
    assert not is_sound(found["/fsx"], lustre.replace("abcdefgh", "other"), "lustre", False)
    assert not is_sound(found["/other"], f"{SERVER}:/", "nfs4", False)
    assert found["/other"] == parse_mountinfo(TEXT)["/other"]
    assert text.splitlines()[0] == TEXT.splitlines()[0]
    assert "rw,nosuid,nodev - nfs4" in text


def test_nobody_else_of_the_machine_gets_at_what_hosts_share(tmp_path: Path) -> None:
    """Their root is the machine's, and may leave a setuid shell there."""
    folder = Paths(tmp_path).shared("efs")
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    folder.parent.chmod(0o755)
    assert Paths(tmp_path).shared("vpc-1").parent.stat().st_mode & 0o777 == 0o700
