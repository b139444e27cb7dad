# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ask a node for what the acceptance checks judge. Nothing is judged and nothing is changed here."""

from __future__ import annotations

import glob
import os
import platform
import socket
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common import commands
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_text
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.neuron_ls import ARGUMENTS, devices_of
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import parse_properties
from ansible_collections.trainium.cluster.plugins.module_utils._node.state import (
    DPKG_FORMAT,
    RPM_FORMAT,
    parse_packages,
)
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.mount_state import parse_mountinfo

PACKAGES = (
    "aws-neuronx-dkms",
    "aws-neuronx-runtime-lib",
    "aws-neuronx-collectives",
    "aws-neuronx-tools",
    "libfabric-aws",
    "libfabric-aws-bin",
)


def packages(timeout: float) -> dict[str, str]:
    """Installed packages of Neuron and EFA with their versions, by dpkg where it is there, else by rpm."""
    reply = commands.run(["dpkg-query", "--show", f"--showformat={DPKG_FORMAT}", *PACKAGES], timeout)
    if not reply.found:
        reply = commands.run(["rpm", "--query", f"--queryformat={RPM_FORMAT}", *PACKAGES], timeout)
    return {name: package["version"] for name, package in parse_packages(reply.out).items()}


def driver_version(timeout: float) -> str:
    """The version of the driver that runs, else of the one that would be loaded; '' for none."""
    loaded = read_text("/sys/module/neuron/version").strip()
    if loaded:
        return loaded
    reply = commands.run(["modinfo", "-F", "version", "neuron"], timeout)
    return reply.out.strip() if reply.code == 0 else ""


def clock_synchronised(timeout: float) -> bool | None:
    """Whether a time service keeps the clock; None where nothing can tell."""
    reply = commands.run(["timedatectl", "show", "--property=NTPSynchronized"], timeout)
    value = parse_properties(reply.out).get("NTPSynchronized")
    if reply.code == 0 and value == "yes":
        return True
    chrony = commands.run(["chronyc", "tracking"], timeout)
    if chrony.code == 0:
        status = [line.partition(":")[2].strip() for line in chrony.out.splitlines() if line.startswith("Leap status")]
        return bool(status) and status[0] != "Not synchronised"
    return False if reply.code == 0 and value == "no" else None


def slurmd_limits(timeout: float) -> str:
    """The limits that jobs inherit: those of the running slurmd itself, since a unit may ask for more than it gets."""
    reply = commands.run(["systemctl", "show", "slurmd", "--property=MainPID"], timeout)
    number = parse_properties(reply.out).get("MainPID", "0")
    return read_text(f"/proc/{number}/limits") if number.isdigit() and int(number) else ""


def lookups(peers: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The first address of each name and the first name of each address, as a program on this node gets them."""
    asks = {"name": socket.gethostbyname, "address": lambda address: socket.gethostbyaddr(address)[0]}
    found: dict[str, str] = {}
    for peer in peers:
        for key, ask in asks.items():
            try:
                found[peer[key]] = ask(peer[key])
            except OSError:
                found[peer[key]] = ""
    return found


def free_space(paths: Iterable[str]) -> dict[str, int | None]:
    """Bytes that root's programs are not alone to use, by path; None for a path that is not there."""
    found: dict[str, int | None] = {}
    for path in paths:
        try:
            figures = os.statvfs(path)
            found[path] = figures.f_bavail * figures.f_frsize
        except OSError:
            found[path] = None
    return found


def mount_points() -> list[str]:
    """Where something is mounted, as the kernel tells it: no file system is asked, as a dead one never answers."""
    return list(parse_mountinfo(read_text("/proc/self/mountinfo")))


def _neuron_ls(timeout: float, folders: list[str]) -> dict[str, Any]:
    """The answer to the older way of asking, or to the newer where only that is understood."""
    older, newer = (["neuron-ls", *arguments] for arguments in ARGUMENTS)
    reply = commands.run(older, timeout, folders)
    if reply.found and reply.ended and devices_of(reply.out) is None:
        again = commands.run(newer, timeout, folders)
        reply = reply if devices_of(again.out) is None else again
    return reply._asdict()


def observe(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Everything at once; what is switched off is not asked for."""
    skip, timeout, folders = set(wanted["skip"]), float(wanted["timeout"]), wanted["folders"]
    venv = wanted["venv_path"]
    return {
        "neuron_ls": None if {"devices", "cores"} <= skip else _neuron_ls(timeout, folders),
        "fi_info": None
        if "efa" in skip
        else commands.run(["fi_info", "-p", "efa", "-t", "FI_EP_RDM"], timeout, folders)._asdict(),
        "packages": packages(timeout),
        "driver_version": "" if "driver" in skip else driver_version(timeout),
        "clock_synchronised": None if "clock" in skip else clock_synchronised(timeout),
        "disk": {} if "disk" in skip else free_space(wanted["disk"]),
        "mounts": [] if "mounts" in skip or not wanted.get("mounts") else mount_points(),
        "slurmd_limits": "" if {"nofile", "memlock"} <= skip else slurmd_limits(timeout),
        "lookups": {} if "names" in skip else lookups(wanted["names"]),
        "boot_id": read_text("/proc/sys/kernel/random/boot_id").strip(),
        "kernel": platform.release(),
        "environment": sorted(
            os.path.basename(path)
            for pattern in ("torch-*", "torch_neuronx-*", "neuronx_cc-*")
            for path in glob.glob(f"{venv}/lib/python*/site-packages/{pattern}.dist-info")
        ),
        "nccom": commands.find("nccom-test", folders) is not None,
        "torchrun": os.access(f"{venv}/bin/torchrun", os.X_OK),
        "time": time.time(),
    }
