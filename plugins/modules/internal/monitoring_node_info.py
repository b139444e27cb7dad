#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_node_info
version_added: 0.1.0
short_description: Exporters and dashboards of a node - packages, files, services and ports, in one call
description:
  - Looks at what the role C(trainium.cluster.monitoring) decides by, so that it asks a node once and then only
    does what is missing.
  - To see the programs behind ports it must run as root.
author:
  - The trainium.cluster founders (@trainium)
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  diff_mode:
    support: none
options:
  packages:
    description: System packages to look for, by dpkg or rpm.
    type: list
    elements: str
    default: []
  programs:
    description: Programs to look for.
    type: list
    elements: path
    default: []
  files:
    description: Files to take digests of.
    type: list
    elements: path
    default: []
  services:
    description: The systemd services to look at, each with a list of the files that it reads when it starts.
    type: dict
    default: {}
  ports:
    description: Where services should listen, C(address:port) by service.
    type: dict
    default: {}
  environments:
    description: Python virtual environments whose packages are wanted.
    type: list
    elements: path
    default: []
seealso:
  - module: trainium.cluster.internal.node_info
"""

EXAMPLES = r"""
- name: Look at the node exporter
  trainium.cluster.internal.monitoring_node_info:
    packages: [prometheus-node-exporter]
    files: [/etc/systemd/system/trainium-node-exporter.service]
    services:
      trainium-node-exporter: [/etc/systemd/system/trainium-node-exporter.service]
    ports:
      trainium-node-exporter: 192.0.2.10:9100
  register: node
"""

RETURN = r"""
missing_packages:
  description: Those of O(packages) that are not installed.
  returned: success
  type: list
  elements: str
  sample: []
missing_programs:
  description: Those of O(programs) that are not there or cannot be run.
  returned: success
  type: list
  elements: str
  sample: []
files:
  description:
    - Owner, group, mode, SHA-256 digest and path of each of O(files) that is there.
    - For a symbolic link the word C(link), its target and the path.
  returned: success
  type: list
  elements: str
  sample:
    - root:root 0644 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 /etc/prometheus.yml
    - link /dev/null /etc/systemd/system/prometheus.service
services:
  description:
    - Of each of O(services) whether it is enabled, whether it is active, and whether it is stale, that is, whether it
      was started before one of its files was changed.
  returned: success
  type: dict
  sample: {"trainium-node-exporter": {"enabled": true, "active": true, "stale": false}}
ports:
  description:
    - Of each of O(ports) by service whether the service listens there and nowhere else on that port, and which other
      programs are in its way.
  returned: success
  type: dict
  sample:
    trainium-node-exporter: {"address": "192.0.2.10", "port": 9100, "listens": true, "taken_by": []}
environments:
  description: Of each of O(environments) the packages with their versions; empty where there is none.
  returned: success
  type: dict
  sample: {"/opt/tensorboard": {"tensorboard": "2.21.0"}}
"""

import glob
import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node import monitoring
from ansible_collections.trainium.cluster.plugins.module_utils._node.state import parse_packages
from ansible_collections.trainium.cluster.plugins.module_utils._node.tools import (
    ask,
    file_line,
    package_lines,
    services,
)


def _line_of(path: str) -> list[str]:
    file = Path(path)
    if file.is_symlink():
        return [f"link {os.readlink(path)} {path}"]
    return [file_line(file)] if file.is_file() else []


def _missing(module: AnsibleModule) -> list[str]:
    names = module.params["packages"]
    if not names:
        return []
    installed = parse_packages(package_lines(module, names))
    return [name for name in names if name not in installed]


def _unit(pid: int) -> str:
    try:
        return monitoring.unit_of(Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"))
    except OSError:
        # The process has ended, or is not to be seen.
        return ""


def _ports(module: AnsibleModule) -> dict[str, dict[str, Any]]:
    wanted = module.params["ports"]
    if not wanted:
        return {}
    shown = ask(module, "ss", "--listening", "--tcp", "--numeric", "--processes", "--no-header")
    if shown is None:
        module.fail_json(msg="ss cannot be run on this host: install the package iproute2 (or iproute).")
    listeners = monitoring.listeners_of(shown or "")
    return monitoring.ports_of(wanted, listeners, {found.pid: _unit(found.pid) for found in listeners})


def _environment(path: str) -> dict[str, str]:
    # The path itself may have characters that mean something to glob.
    folders = glob.glob(f"{glob.escape(path)}/lib/python3*/site-packages/*.dist-info")
    return monitoring.versions_of(os.path.basename(folder) for folder in folders)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "programs": {"type": "list", "elements": "path", "default": []},
            "files": {"type": "list", "elements": "path", "default": []},
            "services": {"type": "dict", "default": {}},
            "ports": {"type": "dict", "default": {}},
            "environments": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        files = [line for path in module.params["files"] for line in _line_of(path)]
    except OSError as error:
        module.fail_json(msg=f"{error.filename} cannot be read ({error.strerror}): run the task as root.")
    found = services(module, module.params["services"])
    if found is None:
        module.fail_json(msg="systemctl does not answer on this host: boot it with systemd 248 or newer.")
    module.exit_json(
        changed=False,
        missing_packages=_missing(module),
        missing_programs=[path for path in module.params["programs"] if not os.access(path, os.X_OK)],
        files=files,
        services=found,
        ports=_ports(module),
        environments={path: _environment(path) for path in module.params["environments"]},
    )


if __name__ == "__main__":
    main()
