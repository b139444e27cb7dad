#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: efa_launch_template
version_added: 0.1.0
short_description: Make a launch template with EFA on every network card
description:
  - Keeps one EC2 launch template with the network interfaces that multi-node training needs, planned as by
    M(trainium.cluster.efa_instance). Managed node groups of Amazon EKS, Auto Scaling groups and fleets launch from it.
  - It says nothing of subnets, instance profiles and spot, which whoever launches gives. EKS refuses templates that do.
  - A version of a template cannot be changed. Where something else is wanted a new version is made, and becomes the
    default. Versions before it stay.
  - Nodes that run are not touched. A node group takes a new version when it is told to.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.launch
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - O(security_groups) may be empty, as an earlier task would have made them.
options:
  name:
    description: The name of the template, and the tags C(Name) and C(trainium:set) of what is launched from it.
    type: str
    required: true
  cluster_name:
    description:
      - The cluster that it belongs to, the tag C(trainium:cluster). By default, O(name).
      - A template of that name that carries another cluster's tag, or none, is refused.
    type: str
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Without it there is no such tag.
      - What carries another owner's is refused; sessions of one IAM role are one owner.
    type: str
  role:
    description: What the nodes are for, the tag C(trainium:role).
    type: str
    default: compute
  state:
    description: V(absent) deletes the template with all its versions.
    type: str
    choices: [present, absent]
    default: present
  instance_type:
    description: The instance type, needed for O(state=present).
    type: str
  image_id:
    description:
      - The AMI. Without it whoever launches chooses, as EKS does by C(amiType) and C(releaseVersion).
      - With it EKS adds nothing to the user data, which must then join the cluster by itself.
    type: str
  security_groups:
    description:
      - Ids of the security groups of every interface, needed for O(state=present).
      - EKS does not add the cluster's security group to them.
    type: list
    elements: str
  market:
    description: V(capacity-block) needs O(capacity_reservation.id). Spot is bought by whoever launches.
    type: str
    choices: [on-demand, capacity-block]
    default: on-demand
  tags:
    description:
      - Further tags of the template, and of the instances, volumes and interfaces that are launched from it.
      - Keys that begin with C(trainium:) or C(aws:) are refused.
    type: dict
    aliases: [resource_tags]
notes:
  - O(user_data) that is no MIME multi-part archive is made one, since EKS can add to nothing else.
  - Without O(image_id) the root device is C(/dev/xvda), Amazon Linux 2023's.
seealso:
  - module: trainium.cluster.efa_instance
"""

EXAMPLES = r"""
- name: A template for trn1n.32xlarge with sixteen EFA interfaces
  trainium.cluster.efa_launch_template:
    name: bert-trn1n
    cluster_name: bert
    instance_type: trn1n.32xlarge
    security_groups: [sg-0a1b2c3d4e5f60003]
    placement_group: bert
    volumes: [{size: 500}]
  register: template

- name: Delete it
  trainium.cluster.efa_launch_template:
    name: bert-trn1n
    cluster_name: bert
    state: absent
"""

RETURN = r"""
launch_template:
  description: The template. Empty with O(state=absent).
  returned: success
  type: dict
  contains:
    launch_template_id:
      description: The id; missing for one that check mode promises.
      type: str
      sample: lt-0a1b2c3d4e5f60020
    name:
      description: The name.
      type: str
      sample: bert-trn1n
    version:
      description: The number of the default version.
      type: int
      sample: 1
    tags:
      description: The tags.
      type: dict
      sample: {"trainium:cluster": "bert"}
    data:
      description: The fields of that version, without its user data.
      type: dict
launch_template_id:
  description: The id of RV(launch_template).
  returned: success
  type: str
  sample: lt-0a1b2c3d4e5f60020
version:
  description: The number of its default version.
  returned: success
  type: int
  sample: 1
efa_interface_count:
  description: How many interfaces carry EFA.
  returned: success
  type: int
  sample: 16
"""

from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing, finish
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.arguments import TEMPLATE_ARGUMENTS
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_template import EfaLaunchTemplate

ARGUMENTS: dict[str, dict[str, Any]] = {
    **TEMPLATE_ARGUMENTS,
    "name": {"type": "str", "required": True},
    "cluster_name": {"type": "str"},
    "owner": {"type": "str"},
    "role": {"type": "str", "default": "compute"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "instance_type": {"type": "str"},
    "image_id": {"type": "str"},
    "security_groups": {"type": "list", "elements": "str"},
    "market": {"type": "str", "choices": ["on-demand", "capacity-block"], "default": "on-demand"},
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    with failing(module, "efa_launch_template", module.params["name"]):
        result = EfaLaunchTemplate(module.client("ec2"), module.params, module.check_mode, warn).run()
    finish(module, result)


if __name__ == "__main__":
    main()
