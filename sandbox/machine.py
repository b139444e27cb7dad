"""What the sandbox needs of the machine: Debian 12 or Ubuntu 24.04, root or sudo, and a few packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from sandbox import store
from sandbox.errors import SandboxError

# Its hosts are of this machine's own release, and the roles refuse others for Slurm, EFA or the default SDK.
RELEASES = {("debian", "12"), ("ubuntu", "24.04")}

# Program -> Debian package that brings it. netavark lies outside PATH, so it is looked up by its file.
PROGRAMS = {
    "/usr/bin/python3": "python3",
    "podman": "podman",
    "runc": "runc",
    "/usr/lib/podman/netavark": "netavark",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "apt-ftparchive": "apt-utils",
    "gpg": "gpg",
    "gpg-agent": "gpg-agent",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
    "nsenter": "util-linux",
}


def os_release() -> dict[str, str]:
    """The fields of ``/etc/os-release``; empty where there is none."""
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key: value.strip('"') for key, value in pairs}


def check() -> None:
    """Refuse a machine that cannot hold a sandbox.

    Raises:
        SandboxError: not Linux, not Debian 12 or Ubuntu 24.04, or no way to become root.
    """
    release = os_release()
    if not sys.platform.startswith("linux") or (release.get("ID"), release.get("VERSION_ID")) not in RELEASES:
        raise SandboxError(
            "The sandbox needs Debian 12 or Ubuntu 24.04, since its hosts are of this machine's release and Slurm and "
            f"Neuron are not for others, and this machine is {release.get('PRETTY_NAME', sys.platform)}: "
            "run it on one of the two, in a virtual machine too, or use the playbooks against a real AWS account."
        )
    if os.geteuid() != 0 and not shutil.which("sudo"):
        raise SandboxError("The sandbox starts containers as root, and sudo is not installed: run it as root.")


def become_root() -> None:
    """Start this command again under sudo where it does not run as root."""
    if os.geteuid() != 0:
        # Else what Python compiles lies beside the sources, and no user can delete a .venv with root's files in it.
        os.environ["PYTHONPYCACHEPREFIX"] = str(store.root() / "bytecode")
        command = ["sudo", "--preserve-env", sys.executable, "-m", "sandbox", *sys.argv[1:]]
        os.execvp("sudo", command)  # noqa: S606  # a list, no shell: sudo asks for the password itself


def missing_packages() -> list[str]:
    """Debian packages of which a program is not there yet, sorted."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=search)})


def install_packages() -> None:
    """Install what is missing with apt.

    Raises:
        SandboxError: apt failed; its last line is in the sentence.
    """
    packages = missing_packages()
    if not packages:
        return
    print(f"sandbox: installing {', '.join(packages)}", flush=True)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-yq", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise SandboxError(f"'{' '.join(command)}' failed ({last}): install these packages and try again.")


def give_back(*paths: Path) -> None:
    """Hand files that root made to the user who called sudo, who must be able to read the ssh key."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if not uid or not gid:
        return
    for path in paths:
        for entry in (path, *path.rglob("*")) if path.is_dir() else (path,):
            os.chown(entry, int(uid), int(gid), follow_symlinks=False)
