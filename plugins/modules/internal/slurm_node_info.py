#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_node_info
version_added: 0.1.0
short_description: Everything that is to be known of Slurm on a node, in one call
description:
  - Looks at packages, files, services and hardware of a node, so that a role asks once and then only does what is
    missing.
  - Of every file only the digest is returned, so that the munge key can be compared without being read.
author:
  - The trainium.cluster founders (@trainium)
extends_documentation_fragment:
  - trainium.cluster.attributes.info
options:
  packages:
    description: The Debian packages to look for.
    type: list
    elements: str
    default: []
  files:
    description: The files to take digests of. Of a directory, every file in it is looked at.
    type: list
    elements: path
    default: []
  services:
    description: The systemd services to look at, each with a list of the files that it reads when it starts.
    type: dict
    default: {}
  munge_key:
    description: The munge key.
    type: path
    default: /etc/munge/munge.key
  configuration:
    description: Slurm's configuration, whose nodes are returned.
    type: path
    default: /etc/slurm/slurm.conf
  hardware:
    description: Whether to ask C(slurmd -C) for the hardware.
    type: bool
    default: false
  neuron:
    description: Whether to ask C(neuron-ls) for the Neuron devices.
    type: bool
    default: false
  accounting:
    description: Whether to ask the accounting database for the clusters that it knows.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Look at Slurm on the node
  trainium.cluster.internal.slurm_node_info:
    packages: [munge, slurmd]
    files: [/etc/slurm/slurm.conf]
    services:
      slurmd: [/etc/slurm/slurm.conf]
    hardware: true
  register: node
"""

RETURN = r"""
missing_packages:
  description: Those of O(packages) that are not installed.
  returned: success
  type: list
  elements: str
  sample: []
files:
  description:
    - Owner, group, mode, SHA-256 digest and path of each file that is there.
    - For a directory the word C(directory) stands in place of the digest.
  returned: success
  type: list
  elements: str
  sample:
    - root:root 0644 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 /etc/slurm/slurm.conf
munge_key_digest:
  description: SHA-256 digest of the munge key; empty where there is none that the role C(trainium.cluster.slurm) made.
  returned: success
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
services:
  description:
    - Of each of O(services) whether it is enabled, whether it is active, and whether it is stale, that is, whether it
      was started before one of its files was changed.
  returned: success
  type: dict
  sample: {"slurmd": {"enabled": true, "active": true, "stale": false}}
hardware:
  description: The parameters of a C(NodeName) line by C(slurmd -C), without the name. Empty where it was not asked.
  returned: success
  type: dict
  sample: {"CPUs": "8", "RealMemory": "31751"}
nodes:
  description: The nodes that O(configuration) names.
  returned: success
  type: list
  elements: str
  sample: [ip-192-0-2-10, ip-192-0-2-11]
neuron_devices:
  description: How many devices C(neuron-ls) shows; 0 where it was not asked or is not installed.
  returned: success
  type: int
  sample: 16
neuron_device_files:
  description: How many files there are in the row C(/dev/neuron0), C(/dev/neuron1) and so on.
  returned: success
  type: int
  sample: 16
accounting_clusters:
  description: The clusters that the accounting database knows; null where it was not asked or does not answer.
  returned: success
  type: list
  elements: str
  sample: [trainium]
"""

import os
from hashlib import sha256
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.neuron_ls import devices_of
from ansible_collections.trainium.cluster.plugins.module_utils._node.state import parse_packages
from ansible_collections.trainium.cluster.plugins.module_utils._node.tools import (
    ask,
    file_line,
    owner_of,
    package_lines,
    services,
)
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.host import (
    hardware_of,
    is_text_key,
    nodes_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import HostlistError


def digests(paths: list[str]) -> list[str]:
    """A line for each file, with those in directories."""
    lines: list[str] = []
    for path in map(Path, paths):
        if path.is_dir():
            lines.append(f"{owner_of(path.stat())} directory {path}")
            lines += digests([str(inner) for inner in sorted(path.iterdir()) if inner.is_file()])
        elif path.is_file():
            lines.append(file_line(path))
    return lines


def key_digest(path: Path) -> str:
    """The digest of a key that the role made, else ''."""
    key = path.read_bytes() if path.is_file() else b""
    return sha256(key).hexdigest() if is_text_key(key) else ""


def device_files() -> int:
    """The length of the row /dev/neuron0, /dev/neuron1, ..."""
    count = 0
    while os.path.exists(f"/dev/neuron{count}"):
        count += 1
    return count


def missing(module: AnsibleModule) -> list[str]:
    wanted = module.params["packages"]
    if not wanted:
        return []
    # Slurm comes from Debian's packages here; without dpkg nothing could be said.
    module.get_bin_path("dpkg-query", required=True)
    installed = parse_packages(package_lines(module, wanted))
    return [name for name in wanted if name not in installed]


def clusters(module: AnsibleModule) -> list[str] | None:
    arguments = ("--readonly", "--noheader", "--parsable2", "show", "cluster", "format=Cluster")
    shown = ask(module, "sacctmgr", *arguments)
    return None if shown is None else shown.split()


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "files": {"type": "list", "elements": "path", "default": []},
            "services": {"type": "dict", "default": {}},
            "munge_key": {"type": "path", "default": "/etc/munge/munge.key", "no_log": False},
            "configuration": {"type": "path", "default": "/etc/slurm/slurm.conf"},
            "hardware": {"type": "bool", "default": False},
            "neuron": {"type": "bool", "default": False},
            "accounting": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    asked = module.params
    configuration = Path(asked["configuration"])
    try:
        named = nodes_of(configuration.read_text(encoding="utf-8", errors="replace")) if configuration.exists() else []
        files = digests(asked["files"])
        key = key_digest(Path(asked["munge_key"]))
    except HostlistError as error:
        module.fail_json(msg=f"slurm_node_info: {configuration} cannot be understood: {error}; correct the line.")
    except OSError as error:
        module.fail_json(
            msg=f"slurm_node_info: {error.filename} cannot be read ({error.strerror}); run the task as root."
        )
    hardware = ask(module, "slurmd", "-C") if asked["hardware"] else None
    neuron = ask(module, "neuron-ls", "-j") if asked["neuron"] else None
    found = services(module, asked["services"])
    if found is None:
        module.fail_json(msg="slurm_node_info: systemctl does not answer on this host; boot it with systemd.")
    module.exit_json(
        changed=False,
        missing_packages=missing(module),
        files=files,
        munge_key_digest=key,
        services=found,
        hardware=hardware_of(hardware or ""),
        nodes=named,
        neuron_devices=len(devices_of(neuron or "") or []),
        neuron_device_files=device_files() if asked["neuron"] else 0,
        accounting_clusters=clusters(module) if asked["accounting"] else None,
    )


if __name__ == "__main__":
    main()
