"""The program that makes the scratch volume at boot, with programs in the place of lsblk, mdadm and the like."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rendered import ROLES
from tests.unit.node.storage.test_storage_scratch import OURS, ROOT, disk, member

PLANNER = ROLES.parent / "plugins/module_utils/_node/storage/scratch.py"
# Each notes how it was called. lsblk shows one picture after the other, the last again and again.
TOOL = """#!/bin/sh
here=$(dirname "$0"); name=$(basename "$0")
echo "$name $*" >> "$here/told"
if [ "$name" = lsblk ]; then
  number=$(cat "$here/number" 2> /dev/null || echo 0)
  [ -e "$here/picture$number" ] || number=$((number - 1))
  cat "$here/picture$number"
  echo $((number + 1)) > "$here/number"
fi
[ ! -e "$here/$name.says" ] || cat "$here/$name.says"
if [ -e "$here/$name.fails" ]; then cat "$here/$name.fails" >&2; exit 1; fi
"""
TOOLS = ("lsblk", "wipefs", "mdadm", "mkfs.xfs", "mkfs.ext4", "mount", "udevadm")


class Machine:
    def __init__(self, folder: Path) -> None:
        self.tools, self.path = folder / "tools", folder / "scratch"
        self.tools.mkdir()
        for name in TOOLS:
            (self.tools / name).write_text(TOOL)
            (self.tools / name).chmod(0o755)
        shutil.copy(ROLES / "shared_storage/files/scratch.py", folder / "scratch.py")
        shutil.copy(PLANNER, folder / "scratch_planner.py")
        self.program = folder / "scratch.py"

    def run(self, *arguments: str, pictures: Any = ()) -> tuple[int, list[str], str]:
        """The code, what it says and why it failed, where lsblk shows these disks one time after the other."""
        for number, disks in enumerate(pictures):
            (self.tools / f"picture{number}").write_text(json.dumps({"blockdevices": [ROOT, *disks]}))
        done = subprocess.run(
            [sys.executable, str(self.program), *arguments],
            env={"PATH": f"{self.tools}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines(), done.stderr.strip()

    def make(self, *pictures: Any, filesystem: str = "xfs", mode: str = "1777") -> tuple[int, list[str], str]:
        return self.run("make", str(self.path), filesystem, mode, pictures=pictures)

    @property
    def told(self) -> list[str]:
        """What was run, but for lsblk."""
        lines = (self.tools / "told").read_text().splitlines()
        return [line for line in lines if not line.startswith("lsblk")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


SETTLE = "udevadm settle --timeout=30"


@pytest.mark.parametrize(
    ("filesystem", "made"),
    [
        ("xfs", "mkfs.xfs -q -L tc-scratch /dev/nvme1n1"),
        # Devices are erased already, and it would take minutes.
        ("ext4", "mkfs.ext4 -q -E nodiscard -L tc-scratch /dev/nvme1n1"),
    ],
)
def test_one_device_gets_a_file_system_and_everybody_may_write(machine: Machine, filesystem: str, made: str) -> None:
    ours = {**OURS, "fstype": filesystem}
    mounted = {**ours, "mountpoint": str(machine.path)}
    found = machine.make([disk(1)], [disk(1, **ours)], [disk(1, **mounted)], filesystem=filesystem)
    assert found == (0, ["make_filesystem /dev/nvme1n1", "mount /dev/nvme1n1"], "")
    assert machine.told == [
        "wipefs --no-act /dev/nvme1n1",
        made,
        SETTLE,
        f"mount -t {filesystem} -o noatime,nodev,nosuid /dev/nvme1n1 {machine.path}",
        SETTLE,
    ]
    assert machine.path.stat().st_mode & 0o7777 == 0o1777


def test_several_devices_become_one_array(machine: Machine) -> None:
    array = [member(1, fstype=None), member(2, fstype=None)]
    mounted = [member(1, **OURS, mountpoint=str(machine.path)), member(2, **OURS, mountpoint=str(machine.path))]
    machine.path.mkdir()
    code, said, why = machine.make([disk(1), disk(2)], array, mounted, mode="0750")
    assert (code, said[0], why) == (0, "create_array /dev/nvme1n1 /dev/nvme2n1", "")
    create = machine.told[2].split()
    assert machine.told[:2] == ["wipefs --no-act /dev/nvme1n1", "wipefs --no-act /dev/nvme2n1"]
    assert create[:3] == ["mdadm", "--create", "/dev/md/tc-scratch"]
    assert create[-2:] == ["/dev/nvme1n1", "/dev/nvme2n1"]
    # Striped, without questions, and found again under any name of the host.
    assert {"--run", "--level=0", "--raid-devices=2", "--homehost=any", "--name=tc-scratch"} < set(create)
    assert "--metadata=1.2" in create
    assert machine.told[3:5] == [SETTLE, "wipefs --no-act /dev/md127"]
    assert machine.path.stat().st_mode & 0o7777 == 0o750


def test_an_array_that_is_there_is_put_together_again(machine: Machine) -> None:
    mounted = [member(1, **OURS, mountpoint=str(machine.path)), member(2, **OURS, mountpoint=str(machine.path))]
    machine.path.mkdir()
    assert machine.make([member(1), member(2)], mounted)[0] == 0
    assert machine.told == ["mdadm --assemble /dev/md/tc-scratch --run /dev/nvme1n1 /dev/nvme2n1", SETTLE]


@pytest.mark.parametrize("disks", [[disk(1)], [disk(1), disk(2)]])
def test_what_lsblk_does_not_know_of_is_left_all_the_same(machine: Machine, disks: list[dict[str, Any]]) -> None:
    (machine.tools / "wipefs.says").write_text("DEVICE OFFSET TYPE\n")
    code, _said, why = machine.make(disks)
    assert code == 1
    assert why == "/dev/nvme1n1 is not blank and is left as it is; erase it with wipefs if it is not needed."
    assert machine.told == ["wipefs --no-act /dev/nvme1n1"]


@pytest.mark.parametrize(
    ("error", "output", "reason"),
    [
        ("first\nno space\n", "", "no space"),
        ("", "it says so here\n", "it says so here"),
        ("", "", "no reason given"),
    ],
)
def test_a_program_that_fails_is_named_with_its_last_word(
    machine: Machine, error: str, output: str, reason: str
) -> None:
    (machine.tools / "mkfs.xfs.fails").write_text(error)
    (machine.tools / "mkfs.xfs.says").write_text(output)
    code, said, why = machine.make([disk(1)])
    assert (code, said) == (1, ["make_filesystem /dev/nvme1n1"])
    assert why == f"mkfs.xfs failed ({reason}); look at dmesg and at lsblk."
    assert machine.told[-1].startswith("mkfs.xfs") and not machine.path.exists()


def test_a_program_that_is_missing_is_named(machine: Machine) -> None:
    (machine.tools / "mdadm").unlink()
    if shutil.which("mdadm", path="/usr/bin:/bin"):
        pytest.skip("the machine has one of its own")
    why = machine.make([disk(1), disk(2)])[2]
    assert why == "mdadm cannot be run (No such file or directory); install it."


def test_what_never_gets_mounted_is_given_up(machine: Machine) -> None:
    code, said, why = machine.make([disk(1, **OURS)])
    # Three steps are all that anything takes, and some may have to be tried again.
    assert code == 1 and 3 < len(said) < 10
    assert why == f"{machine.path} was not mounted after {len(said)} steps; look at lsblk and at dmesg."


def test_a_plan_only_says_what_comes_next(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "devices.json").write_text(json.dumps({"blockdevices": [disk(1), disk(2)]}))
    plan = ("plan", str(machine.path), "xfs")
    assert machine.run(*plan, str(tmp_path / "devices.json")) == (0, ["create_array /dev/nvme1n1 /dev/nvme2n1"], "")
    assert not (machine.tools / "told").exists()
    assert machine.run(*plan, pictures=[[disk(1)]]) == (0, ["make_filesystem /dev/nvme1n1"], "")
    asked = (machine.tools / "told").read_text().splitlines()
    # What the planner reads of each device.
    assert asked == ["lsblk --json --output NAME,TYPE,MODEL,FSTYPE,LABEL,MOUNTPOINT,PTTYPE"]
    code, _said, why = machine.run(*plan, pictures=[[]])
    assert (code, "no NVMe instance store" in why) == (1, True)
