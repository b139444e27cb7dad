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

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node.software import SOFTWARE, hardware, software


def main() -> None:
    module = AnsibleModule(argument_spec=SOFTWARE, supports_check_mode=True)
    module.exit_json(changed=False, **hardware(module), **software(module, module.params))


if __name__ == "__main__":
    main()
