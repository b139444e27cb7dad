"""Makes one file system of the NVMe instance store. Started by trainium-scratch.service at every boot.

The planner beside this file says what to do, one step at a time; this program does it. Installed by the role
trainium.cluster.shared_storage. For older systems it keeps to Python 3.7.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from scratch_planner import ARRAY, LABEL, ScratchError, Step, next_step

COLUMNS = "NAME,TYPE,MODEL,FSTYPE,LABEL,MOUNTPOINT,PTTYPE"
MAKE = {"xfs": ["mkfs.xfs", "-q", "-L", LABEL], "ext4": ["mkfs.ext4", "-q", "-E", "nodiscard", "-L", LABEL]}
# An array, a file system and a mount are three steps; more than twice as many lead nowhere.
MAX_STEPS = 7


def run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ScratchError(f"{command[0]} cannot be run ({error.strerror}); install it.") from None
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise ScratchError(f"{command[0]} failed ({reason}); look at dmesg and at lsblk.")
    return done.stdout


def read_devices() -> dict:
    return json.loads(run("lsblk", "--json", "--output", COLUMNS))


def check_blank(devices: list[str]) -> None:
    """A second look at the devices themselves, as lsblk may know only what udev saw last."""
    for device in devices:
        if run("wipefs", "--no-act", device).strip():
            raise ScratchError(f"{device} is not blank and is left as it is; erase it with wipefs if it is not needed.")


def act(step: Step, path: str, filesystem: str) -> None:
    if step.action == "create_array":
        check_blank(step.devices)
        name = ["--homehost=any", f"--name={LABEL}", "--metadata=1.2"]
        size = ["--level=0", f"--raid-devices={len(step.devices)}"]
        run("mdadm", "--create", ARRAY, "--run", *name, *size, *step.devices)
    elif step.action == "assemble":
        run("mdadm", "--assemble", ARRAY, "--run", *step.devices)
    elif step.action == "make_filesystem":
        check_blank(step.devices)
        run(*MAKE[filesystem], *step.devices)
    elif step.action == "mount":
        os.makedirs(path, exist_ok=True)
        run("mount", "-t", filesystem, "-o", "noatime,nodev,nosuid", step.devices[0], path)
    # The next look at the devices must see what udev makes of this one.
    run("udevadm", "settle", "--timeout=30")


def make(path: str, filesystem: str, mode: str) -> None:
    for _step in range(MAX_STEPS):
        step = next_step(read_devices(), path, filesystem)
        if step.action == "nothing":
            os.chmod(path, int(mode, 8))
            return
        print(step.action, *step.devices, flush=True)
        act(step, path, filesystem)
    raise ScratchError(f"{path} was not mounted after {MAX_STEPS} steps; look at lsblk and at dmesg.")


def main() -> None:
    """``make PATH FILESYSTEM MODE``, or ``plan PATH FILESYSTEM [FILE]``, which only says what the next step is."""
    word, path, filesystem, *rest = sys.argv[1:]
    try:
        if word == "make":
            make(path, filesystem, rest[0])
            return
        if rest:
            with open(rest[0], encoding="utf-8") as stream:
                devices = json.load(stream)
        else:
            devices = read_devices()
        step = next_step(devices, path, filesystem)
        print(step.action, *step.devices)
    except ScratchError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
