# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What of Neuron's and EFA's software and hardware a node has, for the module node_look."""

from __future__ import annotations

import hashlib
import os
import platform
import pwd
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_text
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.fi_info import domains_of
from ansible_collections.trainium.cluster.plugins.module_utils._node import state as node_state
from ansible_collections.trainium.cluster.plugins.module_utils._node.apt_sources import without
from ansible_collections.trainium.cluster.plugins.module_utils._node.tools import (
    ask,
    ask_neuron_ls,
    find_tool,
    name_of,
    packages,
    users_of,
)

SOFTWARE: dict[str, dict[str, Any]] = {
    "packages": {"type": "list", "elements": "str", "default": []},
    "files": {"type": "list", "elements": "path", "default": []},
    "apt_repositories": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "path"},
    "space": {"type": "list", "elements": "path", "default": []},
    "python": {"type": "str", "default": "python3"},
}
VERSION_LOCKS = "/etc/dnf/plugins/versionlock.list"
APT = "/etc/apt"
# ParallelCluster configures the interfaces itself (configure_nw_interface.sh of its cookbook, which also switches the
# DLAMI's helper off); the other file is that of the package amazon-ec2-net-utils.
ROUTERS = {"ParallelCluster": "/etc/parallelcluster/cfnconfig", "amazon-ec2-net-utils": "/usr/bin/setup-policy-routes"}


def _sha1(path: str) -> str:
    file = Path(path)
    # Not for security: it is compared with Ansible's own checksum of what the file should hold.
    return hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest() if file.is_file() else ""


def _space(path: str) -> int:
    """Free space for ordinary users in MiB."""
    folder = next(parent for parent in (Path(path), *Path(path).parents) if parent.exists())
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize // 2**20


def _environment(folder: str) -> dict[str, str]:
    """An environment by its files: nothing in it is run, which would cost as much as all the rest."""
    root = Path(folder)
    owner = _owner(folder) if folder else ""
    if not folder or not (root / "bin" / "python").exists():
        return {"python": "", "digest": "", "note": "", "owner": owner}
    installed = sorted(entry.name for entry in root.glob("lib/python3*/site-packages/*.dist-info"))
    return {
        "python": node_state.parse_python_version(read_text(f"{folder}/pyvenv.cfg")),
        "digest": hashlib.sha256("\n".join(installed).encode()).hexdigest(),
        "note": read_text(f"{folder}/.trainium").strip(),
        "owner": owner,
    }


def _owner(path: str) -> str:
    """The name of whom a folder belongs to, a number where it has none; empty where there is no folder."""
    try:
        return name_of(pwd.getpwuid, os.lstat(path).st_uid)
    except OSError:
        return ""


def _apt_sources(repositories: list[str]) -> dict[str, dict[str, str]]:
    found = {}
    for file in (Path(APT) / "sources.list", *sorted(Path(APT, "sources.list.d").glob("*"))):
        # Apt reads no file with another ending.
        if repositories and file.suffix in (".list", ".sources"):
            text = read_text(file)
            left = without(text, repositories, file.suffix == ".sources")
            if left != text:
                found[str(file)] = {"text": text, "without": left}
    return found


def _efa(module: AnsibleModule) -> dict[str, Any]:
    addresses = ask(module, "ip", "-4", "-oneline", "address", "show", "scope", "global") or ""
    return {
        "installer": node_state.parse_efa_packages(read_text("/opt/amazon/efa_installed_packages")),
        "fi_info": find_tool(module, "fi_info") or "",
        "interfaces": len(domains_of(ask(module, "fi_info", "-p", "efa", "-t", "FI_EP_RDM") or "")),
        "addresses": len({line.split()[1] for line in addresses.splitlines() if len(line.split()) > 1}),
        "policy_routing": next((name for name, file in ROUTERS.items() if os.path.exists(file)), ""),
        "users": users_of("/dev/infiniband/uverbs"),
    }


def _neuron(module: AnsibleModule) -> dict[str, Any]:
    devices = ask_neuron_ls(module)
    return {
        "built": (ask(module, "modinfo", "-F", "version", "neuron") or "").strip(),
        "loaded": os.path.exists("/dev/neuron0"),
        "running": read_text("/sys/module/neuron/version").strip(),
        "devices": len(devices),
        "cores": sum(devices),
    }


def hardware(module: AnsibleModule) -> dict[str, Any]:
    """What is the same whatever is asked for."""
    release = platform.release()
    ptrace_scope = read_text("/proc/sys/kernel/yama/ptrace_scope").strip()
    return {
        "kernel": {"release": release, "headers": os.path.isdir(f"/lib/modules/{release}/build")},
        "ptrace_scope": int(ptrace_scope) if ptrace_scope.isdigit() else -1,
        "efa": _efa(module),
        "neuron": _neuron(module),
    }


def software(module: AnsibleModule, options: dict[str, Any]) -> dict[str, Any]:
    """What is asked for by options as in SOFTWARE."""
    return {
        "packages": packages(module, options["packages"], read_text(VERSION_LOCKS).splitlines()),
        "files": {path: _sha1(path) for path in options["files"]},
        "apt_sources": _apt_sources(options["apt_repositories"]),
        "environment": _environment(options["environment"] or ""),
        "space": {path: _space(path) for path in options["space"]},
        "python": node_state.parse_python_version(ask(module, options["python"], "--version") or ""),
    }
