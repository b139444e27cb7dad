#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_check
version_added: 0.1.0
short_description: Check whether a node can train
description:
  - Compares what a node shows of its hardware and its system with what it should show, in one call.
  - A check that fails is a result and no failure of the module. What happens to the node is up to
    M(trainium.cluster.internal.slurm_drain).
extends_documentation_fragment:
  - trainium.cluster.attributes.info
options:
  name:
    description: The node's name, as Slurm knows it.
    type: str
    required: true
  address:
    description: The address of the node's primary interface.
    type: str
    required: true
  instance_id:
    description: The instance, which tells a node that was replaced from the one before.
    type: str
    default: ""
  instance_type:
    description: The instance type, which decides on the numbers of devices, cores and EFA interfaces.
    type: str
    default: ""
  devices:
    description: The number of Neuron devices wanted. By default that of the instance type.
    type: int
  efa_interfaces:
    description: The number of EFA interfaces wanted. By default that of the instance type.
    type: int
  names:
    description: The nodes whose names and addresses are looked up in both directions.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The short name.
        type: str
        required: true
      full_name:
        description: The full name, which the look-up of the address may answer as well.
        type: str
      address:
        description: The address of the primary interface.
        type: str
        required: true
  disk:
    description: The free space wanted, in GiB, by path.
    type: dict
    default: {}
  mounts:
    description: Folders that something must be mounted on.
    type: list
    elements: path
    default: []
  nofile:
    description: The least soft limit of open files that a job gets from slurmd.
    type: str
    default: "65536"
  memlock:
    description: The least soft limit of locked memory that a job gets from slurmd, in bytes or V(unlimited).
    type: str
    default: unlimited
  clock_synchronised:
    description: Whether the clock must be synchronised by a time service.
    type: bool
    default: true
  clock_offset:
    description: The most seconds that the clock may differ from the controller's.
    type: float
    default: 2.0
  venv_path:
    description: The virtual environment with torchrun.
    type: path
    default: /opt/aws_neuron_venv_pytorch
  folders:
    description: Where programs are looked for before C(PATH).
    type: list
    elements: path
    default: [/opt/aws/neuron/bin, /opt/amazon/efa/bin]
  timeout:
    description: Seconds that each program may take; tools hang on broken hardware.
    type: int
    default: 30
  skip:
    description: Checks that are not made.
    type: list
    elements: str
    choices: [devices, cores, efa, driver, clock, disk, mounts, nofile, memlock, names]
    default: []
"""

EXAMPLES = r"""
- name: Check a node
  trainium.cluster.internal.node_check:
    name: "{{ inventory_hostname }}"
    address: "{{ private_address }}"
    instance_type: trn1.32xlarge
    disk:
      /: 10
    skip: [clock]
  register: node
"""

RETURN = r"""
checks:
  description: The checks in their order. C(reason) and C(message) say what is wrong where C(result) is V(failed).
  returned: success
  type: list
  elements: dict
  sample:
    - name: devices
      result: failed
      found: 15
      wanted: 16
      reason: 15 of 16 Neuron devices
      message: neuron-ls shows 15 of 16 Neuron devices; reload the driver, or stop and start the instance.
name:
  description: The node's name.
  returned: success
  type: str
instance_id:
  description: As given.
  returned: success
  type: str
instance_type:
  description: As given.
  returned: success
  type: str
gate:
  description: What M(trainium.cluster.internal.slurm_drain) wants to know of the node.
  returned: success
  type: dict
  sample: {"name": "ip-192-0-2-5", "address": "192.0.2.5", "failures": ["15 of 16 Neuron devices"]}
clock:
  description: The node's clock, in seconds, and whether it is synchronised.
  returned: success
  type: dict
  sample: {"time": 1795170000.5, "synchronised": true}
"""

import hashlib
import json
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import CHECKS, gate_record, judge
from ansible_collections.trainium.cluster.plugins.module_utils._node.observe import observe


def main() -> None:
    peer = {
        "name": {"type": "str", "required": True},
        "full_name": {"type": "str"},
        "address": {"type": "str", "required": True},
    }
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "instance_id": {"type": "str", "default": ""},
            "instance_type": {"type": "str", "default": ""},
            "devices": {"type": "int"},
            "efa_interfaces": {"type": "int"},
            "names": {"type": "list", "elements": "dict", "default": [], "options": peer},
            "disk": {"type": "dict", "default": {}},
            "mounts": {"type": "list", "elements": "path", "default": []},
            "nofile": {"type": "str", "default": "65536"},
            "memlock": {"type": "str", "default": "unlimited"},
            "clock_synchronised": {"type": "bool", "default": True},
            "clock_offset": {"type": "float", "default": 2.0},
            "venv_path": {"type": "path", "default": "/opt/aws_neuron_venv_pytorch"},
            "folders": {"type": "list", "elements": "path", "default": ["/opt/aws/neuron/bin", "/opt/amazon/efa/bin"]},
            "timeout": {"type": "int", "default": 30},
            "skip": {"type": "list", "elements": "str", "choices": list(CHECKS), "default": []},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    try:
        for option in ("nofile", "memlock"):
            if wanted[option] != "unlimited":
                int(wanted[option])
        wanted["disk"] = {path: float(gib) for path, gib in wanted["disk"].items()}
    except ValueError:
        module.fail_json(msg="node_check: nofile, memlock and the values of disk are numbers; give no units.")
    seen = observe(wanted)
    checks = [check._asdict() for check in judge(seen, wanted, wanted["skip"])]
    identity = [wanted["instance_id"], seen["boot_id"], seen["kernel"], seen["packages"], seen["environment"]]
    about: dict[str, Any] = {
        "address": wanted["address"],
        "identity": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        "nccom": seen["nccom"],
        "torchrun": seen["torchrun"],
    }
    module.exit_json(
        changed=False,
        name=wanted["name"],
        instance_id=wanted["instance_id"],
        instance_type=wanted["instance_type"],
        checks=checks,
        gate=gate_record(wanted["name"], checks, about),
        clock={"time": seen["time"], "synchronised": seen["clock_synchronised"]},
    )


if __name__ == "__main__":
    main()
