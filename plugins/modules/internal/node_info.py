#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
version_added: 0.1.0
short_description: What of Neuron's and EFA's software and hardware a node has
description:
  - Asks a node in one call for everything that the roles of this collection decide by - its system, packages, files,
    EFA installer and interfaces, Neuron driver and devices, and Python interpreter.
  - Tools that are not installed are no error; what they would say is empty then.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
options:
  packages:
    description: System packages to look for, by dpkg or rpm.
    type: list
    elements: str
    default: []
  files:
    description: Files whose SHA-1 is wanted, to compare it with what they should hold.
    type: list
    elements: path
    default: []
  space:
    description: Folders whose free space is wanted; of one that is not there, that of the nearest folder above it.
    type: list
    elements: path
    default: []
  environment:
    description: The folder of a Python virtual environment that is looked at; empty for none.
    type: path
  apt_repositories:
    description: Repositories, by their URI, whose entries in apt's sources are wanted.
    type: list
    elements: str
    default: []
  python:
    description: An interpreter, by name or path, whose version is wanted.
    type: str
    default: python3
seealso:
  - module: ansible.builtin.package_facts
"""

EXAMPLES = r"""
- name: Ask what a node has
  trainium.cluster.internal.node_info:
    packages: [aws-neuronx-dkms]
    files: [/etc/apt/sources.list.d/neuron.sources]
  register: node

- name: Show its Neuron cores
  ansible.builtin.debug:
    msg: "{{ inventory_hostname }} has {{ node.neuron.cores }} NeuronCores in {{ node.neuron.devices }} devices"
"""

RETURN = r"""
kernel:
  description: The running kernel, and whether modules can be built for it.
  returned: success
  type: dict
  sample: {"release": "6.8.0-1021-aws", "headers": true}
ptrace_scope:
  description: The value of C(kernel.yama.ptrace_scope), or -1 where the kernel has no such setting.
  returned: success
  type: int
  sample: 1
packages:
  description: The installed ones of O(packages), each with its version and whether it is held.
  returned: success
  type: dict
  sample: {"aws-neuronx-dkms": {"version": "2.29.0.0", "held": true}}
files:
  description: The SHA-1 of each of O(files), empty where there is no such file.
  returned: success
  type: dict
  sample: {"/etc/apt/sources.list.d/neuron.sources": ""}
apt_sources:
  description: The files of apt's sources that name one of O(apt_repositories), as they are and without these entries.
  returned: success
  type: dict
  sample: {"/etc/apt/sources.list.d/neuron.list": {"text": "deb https://example noble main", "without": ""}}
environment:
  description:
    - Of O(environment) the version of its interpreter, a digest of the names and versions of what is installed in it,
      what a role wrote into the file C(.trainium) in it, and whose it is.
    - Empty values where there is none. C(python) is empty where its interpreter cannot be run any more.
  returned: success
  type: dict
  sample: {"python": "3.12", "digest": "9f86d081884c7d65", "note": "", "owner": "root"}
space:
  description: The free space of each of O(space), in MiB.
  returned: success
  type: dict
  sample: {"/opt": 412345}
python:
  description: Version of the interpreter, empty where there is none.
  returned: success
  type: str
  sample: "3.12"
efa:
  description:
    - The version of EFA's installer that ran last, the path of C(fi_info) and how many EFA interfaces it lists, each
      empty or 0 where there is none.
    - How many network interfaces beside the loopback one have an IPv4 address, the software that gives each of them
      routes of its own, and the processes that have a device of EFA open, of which root sees all.
  returned: success
  type: dict
  sample:
    installer: 1.51.0
    fi_info: /opt/amazon/efa/bin/fi_info
    interfaces: 8
    addresses: 1
    policy_routing: amazon-ec2-net-utils
    users: ["python (4711)"]
neuron:
  description:
    - The version of the Neuron driver that was built for the running kernel, whether it is loaded, seen by its device
      files, and the version of the loaded one where the kernel tells it.
    - How many devices C(neuron-ls) lists, and how many NeuronCores they have.
  returned: success
  type: dict
  sample: {"built": "2.29.0.0", "loaded": true, "running": "2.29.0.0", "devices": 16, "cores": 32}
"""

import hashlib
import os
import platform
import pwd
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.fi_info import domains_of
from ansible_collections.trainium.cluster.plugins.module_utils._node import state as node_state
from ansible_collections.trainium.cluster.plugins.module_utils._node.apt_sources import without
from ansible_collections.trainium.cluster.plugins.module_utils._node.tools import (
    ask,
    ask_neuron_ls,
    find_tool,
    package_lines,
    users_of,
)

VERSION_LOCKS = "/etc/dnf/plugins/versionlock.list"
APT = "/etc/apt"
# ParallelCluster configures the interfaces itself (configure_nw_interface.sh of its cookbook, which also switches the
# DLAMI's helper off); the other file is that of the package amazon-ec2-net-utils.
ROUTERS = {"ParallelCluster": "/etc/parallelcluster/cfnconfig", "amazon-ec2-net-utils": "/usr/bin/setup-policy-routes"}


def _text(path: str) -> str:
    """A file's text; empty where it is not there or may not be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
        "python": node_state.parse_python_version(_text(f"{folder}/pyvenv.cfg")),
        "digest": hashlib.sha256("\n".join(installed).encode()).hexdigest(),
        "note": _text(f"{folder}/.trainium").strip(),
        "owner": owner,
    }


def _owner(path: str) -> str:
    """The name of whom a folder belongs to, a number where it has none; empty where there is no folder."""
    try:
        number = os.lstat(path).st_uid
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
    except OSError:
        return ""


def _packages(module: AnsibleModule) -> dict[str, dict[str, Any]]:
    names = module.params["packages"]
    if not names:
        return {}
    return node_state.parse_packages(package_lines(module, names), _text(VERSION_LOCKS).splitlines())


def _kernel() -> dict[str, Any]:
    release = platform.release()
    return {"release": release, "headers": os.path.isdir(f"/lib/modules/{release}/build")}


def _apt_sources(repositories: list[str]) -> dict[str, dict[str, str]]:
    found = {}
    for file in (Path(APT) / "sources.list", *sorted(Path(APT, "sources.list.d").glob("*"))):
        # Apt reads no file with another ending.
        if repositories and file.suffix in (".list", ".sources"):
            text = _text(str(file))
            left = without(text, repositories, file.suffix == ".sources")
            if left != text:
                found[str(file)] = {"text": text, "without": left}
    return found


def _policy_routing() -> str:
    return next((name for name, file in ROUTERS.items() if os.path.exists(file)), "")


def _efa(module: AnsibleModule) -> dict[str, Any]:
    addresses = ask(module, "ip", "-4", "-oneline", "address", "show", "scope", "global") or ""
    return {
        "installer": node_state.parse_efa_packages(_text("/opt/amazon/efa_installed_packages")),
        "fi_info": find_tool(module, "fi_info") or "",
        "interfaces": len(domains_of(ask(module, "fi_info", "-p", "efa", "-t", "FI_EP_RDM") or "")),
        "addresses": len({line.split()[1] for line in addresses.splitlines() if len(line.split()) > 1}),
        "policy_routing": _policy_routing(),
        "users": users_of("/dev/infiniband/uverbs"),
    }


def _neuron(module: AnsibleModule) -> dict[str, Any]:
    devices = ask_neuron_ls(module)
    return {
        "built": (ask(module, "modinfo", "-F", "version", "neuron") or "").strip(),
        "loaded": os.path.exists("/dev/neuron0"),
        "running": _text("/sys/module/neuron/version").strip(),
        "devices": len(devices),
        "cores": sum(devices),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "files": {"type": "list", "elements": "path", "default": []},
            "apt_repositories": {"type": "list", "elements": "str", "default": []},
            "environment": {"type": "path"},
            "space": {"type": "list", "elements": "path", "default": []},
            "python": {"type": "str", "default": "python3"},
        },
        supports_check_mode=True,
    )
    ptrace_scope = _text("/proc/sys/kernel/yama/ptrace_scope").strip()
    module.exit_json(
        changed=False,
        kernel=_kernel(),
        ptrace_scope=int(ptrace_scope) if ptrace_scope.isdigit() else -1,
        packages=_packages(module),
        files={path: _sha1(path) for path in module.params["files"]},
        apt_sources=_apt_sources(module.params["apt_repositories"]),
        environment=_environment(module.params["environment"] or ""),
        space={path: _space(path) for path in module.params["space"]},
        python=node_state.parse_python_version(ask(module, module.params["python"], "--version") or ""),
        efa=_efa(module),
        neuron=_neuron(module),
    )


if __name__ == "__main__":
    main()
