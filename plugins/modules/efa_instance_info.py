#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: efa_instance_info
version_added: 0.1.0
short_description: The nodes of a cluster and their network interfaces
description:
  - Finds the instances of a cluster by their tag C(trainium:cluster), on the server's side.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
options:
  cluster_name:
    description: The cluster, the tag C(trainium:cluster).
    type: str
    required: true
  name:
    description: Only nodes of this set, the tag C(trainium:set).
    type: str
  role:
    description: Only nodes of this role, the tag C(trainium:role).
    type: str
  states:
    description: Only nodes in these states.
    type: list
    elements: str
    choices: [pending, running, stopping, stopped, shutting-down, terminated]
    default: [pending, running, stopping, stopped]
  filters:
    description: Further filters of DescribeInstances, a dictionary of names and values.
    type: dict
    default: {}
seealso:
  - module: trainium.cluster.efa_instance
"""

EXAMPLES = r"""
- name: Ask for the running nodes
  trainium.cluster.efa_instance_info:
    cluster_name: bert
    states: [running]
  register: found

- name: Make sure that each has EFA on all eight cards
  ansible.builtin.assert:
    that: found.instances | map(attribute='efa_interface_count') | unique == [8]
"""

RETURN = r"""
instances:
  description:
    - The nodes, oldest first; each as M(trainium.cluster.efa_instance) returns it.
  returned: success
  type: list
  elements: dict
  sample:
    - instance_id: i-0a1b2c3d4e5f60006
      instance_type: trn1.32xlarge
      state: running
      private_ip_address: 192.0.2.5
      availability_zone: us-west-2a
      efa_interface_count: 8
instance_ids:
  description: The ids of RV(instances).
  returned: success
  type: list
  elements: str
  sample: [i-0a1b2c3d4e5f60006]
states:
  description: How many nodes are in each state.
  returned: success
  type: dict
  sample: {"running": 2}
"""

from collections import Counter

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, ROLE_TAG, SET_TAG
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import in_order, node_of

STATES = ["pending", "running", "stopping", "stopped", "shutting-down", "terminated"]


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "cluster_name": {"type": "str", "required": True},
            "name": {"type": "str"},
            "role": {"type": "str"},
            "states": {"type": "list", "elements": "str", "choices": STATES, "default": STATES[:4]},
            "filters": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    params = module.params
    filters = {f"tag:{CLUSTER_TAG}": params["cluster_name"], "instance-state-name": params["states"]}
    for tag, option in ((SET_TAG, "name"), (ROLE_TAG, "role")):
        if params[option]:
            filters[f"tag:{tag}"] = params[option]
    filters.update(params["filters"])
    with failing(module, "efa_instance_info"):
        nodes = in_order(node_of(item) for item in ec2.describe_instances(module.client("ec2"), filters))
    module.exit_json(
        changed=False,
        instances=nodes,
        instance_ids=[node["instance_id"] for node in nodes],
        states=dict(Counter(node["state"] for node in nodes)),
    )


if __name__ == "__main__":
    main()
