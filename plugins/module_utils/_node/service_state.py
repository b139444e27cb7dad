# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the services of a node are made of, for the module node_look."""

from __future__ import annotations

import glob
import itertools
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_text
from ansible_collections.trainium.cluster.plugins.module_utils._node import monitoring
from ansible_collections.trainium.cluster.plugins.module_utils._node.tools import (
    ask,
    ask_neuron_ls,
    file_line,
    owner_of,
    packages,
    services,
)
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.host import hardware_of, is_text_key, nodes_of
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import HostlistError

SERVICES: dict[str, dict[str, Any]] = {
    "packages": {"type": "list", "elements": "str", "default": []},
    "programs": {"type": "list", "elements": "path", "default": []},
    "files": {"type": "list", "elements": "path", "default": []},
    "services": {"type": "dict", "default": {}},
    "ports": {"type": "dict", "default": {}},
    "environments": {"type": "list", "elements": "path", "default": []},
    "slurm": {
        "type": "list",
        "elements": "str",
        "choices": ["configuration", "hardware", "neuron", "accounting"],
        "default": [],
    },
}
CONFIGURATION = Path("/etc/slurm/slurm.conf")
MUNGE_KEY = Path("/etc/munge/munge.key")


def _lines(paths: list[Path]) -> list[str]:
    """A line for each file, with those in directories."""
    lines: list[str] = []
    for path in paths:
        if path.is_dir():
            lines.append(f"{owner_of(path.stat())} directory {path}")
            lines += _lines([inner for inner in sorted(path.iterdir()) if inner.is_file()])
        elif path.is_file():
            lines.append(file_line(path))
        elif path.is_symlink():
            lines.append(f"link {os.readlink(path)} {path}")
    return lines


def _ports(module: AnsibleModule, wanted: dict[str, str]) -> dict[str, dict[str, Any]]:
    if not wanted:
        return {}
    shown = ask(module, "ss", "--listening", "--tcp", "--numeric", "--processes", "--no-header")
    if shown is None:
        module.fail_json(msg="ss cannot be run on this host: install the package iproute2 (or iproute).")
    listeners = monitoring.listeners_of(shown or "")
    # Of a process that has ended, or is not to be seen, there is no unit.
    units = {found.pid: monitoring.unit_of(read_text(f"/proc/{found.pid}/cgroup")) for found in listeners}
    return monitoring.ports_of(wanted, listeners, units)


def _environment(path: str) -> dict[str, str]:
    # The path itself may have characters that mean something to glob.
    folders = glob.glob(f"{glob.escape(path)}/lib/python3*/site-packages/*.dist-info")
    return monitoring.versions_of(os.path.basename(folder) for folder in folders)


def _slurm(module: AnsibleModule, asked: list[str]) -> dict[str, Any]:
    read = "configuration" in asked
    text = CONFIGURATION.read_text(encoding="utf-8", errors="replace") if read and CONFIGURATION.exists() else ""
    key = MUNGE_KEY.read_bytes() if read and MUNGE_KEY.is_file() else b""
    shown = ask(module, "slurmd", "-C") if "hardware" in asked else None
    arguments = ("--readonly", "--noheader", "--parsable2", "show", "cluster", "format=Cluster")
    clusters = ask(module, "sacctmgr", *arguments) if "accounting" in asked else None
    row = itertools.takewhile(lambda number: os.path.exists(f"/dev/neuron{number}"), itertools.count())
    return {
        "munge_key_digest": sha256(key).hexdigest() if is_text_key(key) else "",
        "nodes": nodes_of(text),
        "hardware": hardware_of(shown or ""),
        "neuron_devices": len(ask_neuron_ls(module)) if "neuron" in asked else 0,
        "neuron_device_files": len(list(row)) if "neuron" in asked else 0,
        "accounting_clusters": None if clusters is None else clusters.split(),
    }


def service_state(module: AnsibleModule, options: dict[str, Any]) -> dict[str, Any]:
    """What is asked for by options as in SERVICES; ends the module where that cannot be told."""
    try:
        files = _lines([Path(path) for path in options["files"]])
        slurm = _slurm(module, options["slurm"])
    except HostlistError as error:
        module.fail_json(msg=f"{CONFIGURATION} cannot be understood: {error}; correct the line.")
    except OSError as error:
        module.fail_json(msg=f"{error.filename} cannot be read ({error.strerror}): run the task as root.")
    found = services(module, options["services"])
    if found is None:
        module.fail_json(msg="systemctl does not answer on this host: boot it with systemd 248 or newer.")
    installed = packages(module, options["packages"])
    return {
        "missing_packages": [name for name in options["packages"] if name not in installed],
        "missing_programs": [path for path in options["programs"] if not os.access(path, os.X_OK)],
        "files": files,
        "services": found,
        "ports": _ports(module, options["ports"]),
        "environments": {path: _environment(path) for path in options["environments"]},
        **slurm,
    }
