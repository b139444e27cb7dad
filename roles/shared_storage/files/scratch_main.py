

# What follows was appended by the role trainium.cluster.shared_storage: the planner above decides, this part acts.
import json
import os
import subprocess
import sys

COLUMNS = "NAME,TYPE,MODEL,FSTYPE,LABEL,MOUNTPOINT,PTTYPE"
COMMANDS = {"xfs": ["mkfs.xfs", "-q", "-L", LABEL], "ext4": ["mkfs.ext4", "-q", "-E", "nodiscard", "-L", LABEL]}


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise ScratchError(command[0] + " failed (" + reason + "); look at dmesg and at lsblk.")
    return done.stdout


def read_devices():
    return json.loads(run("lsblk", "--json", "--output", COLUMNS))


def check_blank(devices):
    """A second look at the devices themselves, as lsblk may know only what udev saw last."""
    for device in devices:
        if run("wipefs", "--no-act", device).strip():
            raise ScratchError(device + " is not blank and is left as it is; erase it with wipefs if nothing is needed.")


def act(step, path, filesystem):
    if step.action == "create_array":
        check_blank(step.devices)
        count = "--raid-devices=" + str(len(step.devices))
        name = ["--homehost=any", "--name=" + LABEL]
        run("mdadm", "--create", ARRAY, "--run", "--level=0", "--metadata=1.2", count, *(name + step.devices))
    elif step.action == "assemble":
        run("mdadm", "--assemble", ARRAY, "--run", *step.devices)
    elif step.action == "make_filesystem":
        check_blank(step.devices)
        run(*(COMMANDS[filesystem] + step.devices))
    elif step.action == "mount":
        os.makedirs(path, exist_ok=True)
        run("mount", "-t", filesystem, "-o", "noatime,nodev,nosuid", step.devices[0], path)
    run("udevadm", "settle", "--timeout=30")


def main():
    word, path, filesystem = sys.argv[1], sys.argv[2], sys.argv[3]
    mode = sys.argv[4] if len(sys.argv) > 4 else "1777"
    try:
        if word == "plan":
            devices = json.load(sys.stdin) if not sys.stdin.isatty() else read_devices()
            print(json.dumps(next_step(devices, path, filesystem)._asdict()))
            return
        # An array, a file system and a mount are three steps; more than twice as many lead nowhere.
        for _attempt in range(7):
            step = next_step(read_devices(), path, filesystem)
            if step.action == "nothing":
                os.chmod(path, int(mode, 8))
                return
            print(step.action + " " + " ".join(step.devices), flush=True)
            act(step, path, filesystem)
        raise ScratchError(path + " was not mounted after 7 steps; look at lsblk and at dmesg.")
    except ScratchError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
