#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service_info
version_added: 0.1.0
short_description: What the services of a node are made of, in one call
description:
  - Looks at packages, files, services and ports of a node, and at what Slurm says on it, so that the roles
    P(trainium.cluster.slurm#role) and P(trainium.cluster.monitoring#role) ask once and then only do what is missing.
  - Of every file only the digest is returned, so that the munge key can be compared without being read.
  - To see the programs behind ports it must run as root.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
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
    description: Files to take digests of. Of a directory, every file in it is looked at.
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
  slurm:
    description:
      - What is asked of Slurm. V(configuration) is the nodes of C(/etc/slurm/slurm.conf) and the digest of the munge
        key, V(hardware) what C(slurmd -C) says, V(neuron) the Neuron devices, V(accounting) the clusters that the
        database knows.
    type: list
    elements: str
    choices: [configuration, hardware, neuron, accounting]
    default: []
seealso:
  - module: trainium.cluster.internal.node_info
"""

EXAMPLES = r"""
- name: Look at Slurm on the node
  trainium.cluster.internal.service_info:
    packages: [munge, slurmd]
    files: [/etc/slurm/slurm.conf]
    services:
      slurmd: [/etc/slurm/slurm.conf]
    slurm: [configuration, hardware]
  register: node
"""

RETURN = r"""
missing_packages:
  description: Those of O(packages) that are not installed.
  returned: success
  type: list
  elements: str
missing_programs:
  description: Those of O(programs) that are not there or cannot be run.
  returned: success
  type: list
  elements: str
files:
  description:
    - Owner, group, mode, SHA-256 digest and path of each file that is there.
    - For a directory the word C(directory) stands in place of the digest. A symbolic link that leads to neither is the
      word C(link), its target and the path.
  returned: success
  type: list
  elements: str
  sample:
    - root:root 0644 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 /etc/slurm/slurm.conf
    - link /dev/null /etc/systemd/system/prometheus.service
services:
  description:
    - Of each of O(services) whether it is enabled, whether it is active, and whether it is stale, that is, whether it
      was started before one of its files was changed.
  returned: success
  type: dict
  sample: {"slurmd": {"enabled": true, "active": true, "stale": false}}
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
munge_key_digest:
  description: SHA-256 digest of the munge key; empty where there is none that the role C(trainium.cluster.slurm) made.
  returned: success
  type: str
nodes:
  description: The nodes that Slurm's configuration names.
  returned: success
  type: list
  elements: str
  sample: [ip-192-0-2-10, ip-192-0-2-11]
hardware:
  description: The parameters of a C(NodeName) line by C(slurmd -C), without the name. Empty where it was not asked.
  returned: success
  type: dict
  sample: {"CPUs": "8", "RealMemory": "31751"}
neuron_devices:
  description: How many devices C(neuron-ls) shows; 0 where it was not asked or is not installed.
  returned: success
  type: int
neuron_device_files:
  description: How many files there are in the row C(/dev/neuron0), C(/dev/neuron1) and so on.
  returned: success
  type: int
accounting_clusters:
  description: The clusters that the accounting database knows; null where it was not asked or does not answer.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node.service_state import SERVICES, service_state


def main() -> None:
    module = AnsibleModule(argument_spec=SERVICES, supports_check_mode=True)
    module.exit_json(changed=False, **service_state(module, module.params))


if __name__ == "__main__":
    main()
