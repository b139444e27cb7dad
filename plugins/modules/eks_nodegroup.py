#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_nodegroup
version_added: 0.1.0
short_description: Make, change and delete a managed node group of Amazon EKS
description:
  - Keeps one managed node group as it is wanted. For nodes with EFA it takes the launch template that
    M(trainium.cluster.efa_launch_template) makes.
  - A new group that fails is deleted again, so that nothing is left that costs. With O(single_zone) the next zone is
    tried where there was no capacity.
  - What EKS cannot change is refused. What it can change only by replacing every node is warned of, and done with
    O(replace_nodes).
  - A group of the name that carries another cluster's tag C(trainium:cluster), or none, is refused.
  - While the module waits, progress is shown when it runs with a local connection.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - O(node_role_arn) and O(subnets) may be empty, and the cluster and the template need not exist, as earlier tasks
        would have made them.
options:
  cluster:
    description: The name of the EKS cluster.
    type: str
    required: true
  name:
    description: The name of the node group.
    type: str
    required: true
  cluster_name:
    description: What it belongs to, the tag C(trainium:cluster). By default, O(cluster).
    type: str
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Without it there is no such tag.
      - What carries another owner's is refused; sessions of one IAM role are one owner.
    type: str
  state:
    description:
      - V(present) makes the group or changes it. An option that is not given stays as it is.
      - V(absent) deletes it with its nodes.
    type: str
    choices: [present, absent]
    default: present
  count:
    description: How many nodes there should be. A number below that of the group needs O(allow_shrink).
    type: int
    default: 1
  min_size:
    description: The smallest number that a scaler may choose. By default, O(count).
    type: int
  max_size:
    description: The greatest number that a scaler may choose. By default O(count), at least 1.
    type: int
  allow_shrink:
    description: Whether a lowered O(count) may terminate nodes. EKS chooses which, and evicts what runs there.
    type: bool
    default: false
  node_role_arn:
    description: The ARN of the nodes' role, needed for a new group.
    type: str
  subnets:
    description:
      - Ids of subnets, needed for a new group.
      - EKS cannot change those of a group. One that is in some of these stays there; one that is in another is refused.
    type: list
    elements: str
  single_zone:
    description:
      - Whether the group goes into one of the O(subnets) alone, as EFA and cluster placement groups need it. They are
        tried in their order, without those whose zone does not offer the type, or is not that of the template's
        capacity reservation.
    type: bool
    default: false
  launch_template:
    description: The launch template. EKS keeps its own copy of the version that it was given.
    type: dict
    suboptions:
      id:
        description: The id.
        type: str
      name:
        description: The name, in place of O(launch_template.id).
        type: str
      version:
        description: The number of the version. By default, the template's own.
        type: str
  instance_types:
    description: The instance types, where the launch template names none. EKS's default is C(t3.medium).
    type: list
    elements: str
  ami_type:
    description: The kind of EKS's images, such as V(AL2023_x86_64_NEURON). Not where the template names an image.
    type: str
  release_version:
    description: The release of the image, such as V(1.34.9-20260625). By default the newest for a new group.
    type: str
  version:
    description: The version of Kubernetes, in place of O(release_version). By default the cluster's for a new group.
    type: str
  replace_nodes:
    description:
      - Whether another O(release_version), O(version) or version of the O(launch_template) may be had by replacing
        every node. What runs there is evicted.
    type: bool
    default: false
  capacity_type:
    description: How the capacity is bought. V(ON_DEMAND) by default for a new group.
    type: str
    choices: [ON_DEMAND, SPOT, CAPACITY_BLOCK]
  labels:
    description: The labels of the nodes. Others that the group has are removed.
    type: dict
  taints:
    description: The taints of the nodes. Others that the group has are removed.
    type: list
    elements: dict
    suboptions:
      key:
        description: The key.
        type: str
        required: true
      value:
        description: The value.
        type: str
        default: ""
      effect:
        description: The effect.
        type: str
        choices: [NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE]
        required: true
  max_unavailable:
    description: How many nodes are replaced at a time.
    type: int
  node_repair:
    description: Whether EKS replaces nodes that it finds unhealthy.
    type: bool
  wait:
    description: Whether to wait until the group is active, or gone.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most. Where there is no capacity, EKS itself gives up after some 20 minutes.
    type: int
    default: 3600
  tags:
    description:
      - Further tags of the group. Its instances have those of the launch template.
      - An existing group gets tags that are missing or different; other tags are never removed.
    type: dict
    aliases: [resource_tags]
seealso:
  - module: trainium.cluster.efa_launch_template
  - module: trainium.cluster.eks_cluster
"""

EXAMPLES = r"""
- name: Two trn1.32xlarge in one zone, with an image whose driver fits Neuron SDK 2.29.1
  trainium.cluster.eks_nodegroup:
    cluster: bert
    name: trn1
    count: 2
    node_role_arn: arn:aws:iam::123456789012:role/bert-node
    subnets: [subnet-0a1b2c3d4e5f60001, subnet-0a1b2c3d4e5f60002]
    single_zone: true
    launch_template: {id: lt-0a1b2c3d4e5f60020, version: "1"}
    ami_type: AL2023_x86_64_NEURON
    release_version: 1.34.9-20260625

- name: Remove it
  trainium.cluster.eks_nodegroup:
    cluster: bert
    name: trn1
    state: absent
"""

RETURN = r"""
nodegroup:
  description: The node group. Empty with O(state=absent).
  returned: success
  type: dict
  contains:
    name:
      description: The name.
      type: str
      sample: trn1
    arn:
      description: The ARN; empty for one that check mode promises.
      type: str
      sample: arn:aws:eks:us-west-2:123456789012:nodegroup/bert/trn1/0a1b2c3d-4e5f-6000-0000-000000000011
    status:
      description: The state, such as V(ACTIVE).
      type: str
      sample: ACTIVE
    version:
      description: The version of Kubernetes.
      type: str
      sample: "1.34"
    release_version:
      description: The release of the image.
      type: str
      sample: 1.34.9-20260625
    node_role_arn:
      description: The role of the nodes.
      type: str
      sample: arn:aws:iam::123456789012:role/bert-node
    ami_type:
      description: The kind of the image.
      type: str
      sample: AL2023_x86_64_NEURON
    capacity_type:
      description: How the capacity is bought.
      type: str
      sample: ON_DEMAND
    instance_types:
      description: The instance types, where the launch template names none.
      type: list
      elements: str
      sample: []
    subnets:
      description: The subnets.
      type: list
      elements: str
      sample: [subnet-0a1b2c3d4e5f60001]
    launch_template:
      description: The C(id), C(name) and C(version) of the launch template.
      type: dict
      sample: {"id": "lt-0a1b2c3d4e5f60020", "name": "bert-trn1", "version": "1"}
    count:
      description: The wanted number of nodes.
      type: int
      sample: 2
    min_size:
      description: The smallest number.
      type: int
      sample: 2
    max_size:
      description: The greatest number.
      type: int
      sample: 2
    labels:
      description: The labels of the nodes.
      type: dict
      sample: {}
    taints:
      description: The taints of the nodes.
      type: list
      elements: dict
      sample: []
    max_unavailable:
      description: How many nodes are replaced at a time.
      type: int
      sample: 1
    update_strategy:
      description: V(MINIMAL) ends nodes before others take their place, V(DEFAULT) launches more first.
      type: str
      sample: MINIMAL
    node_repair:
      description: Whether EKS replaces unhealthy nodes.
      type: bool
      sample: false
    autoscaling_group:
      description: The name of the Auto Scaling group.
      type: str
      sample: eks-trn1-0a1b2c3d-4e5f-6000-0000-000000000011
    issues:
      description: What EKS finds wrong with it.
      type: list
      elements: str
      sample: []
    tags:
      description: The tags.
      type: dict
      sample: {"trainium:cluster": "bert"}
outdated:
  description: In which respect the nodes are not as wanted, which needs O(replace_nodes).
  returned: success
  type: list
  elements: str
  sample: []
attempts:
  description: Where a new group was tried, also when all failed.
  returned: always
  type: list
  elements: dict
  contains:
    subnets:
      description: The subnets.
      type: list
      elements: str
      sample: [subnet-0a1b2c3d4e5f60001]
    outcome:
      description: V(made), V(begun) without waiting, V(CREATE_FAILED), or V(CREATING) where the time was over.
      type: str
      sample: made
    message:
      description: What EKS said.
      type: str
      sample: ""
"""

from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import finish
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks.calls import check_library
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run_nodegroup import EksNodegroup

TAINT = {
    "key": {"type": "str", "required": True, "no_log": False},
    "value": {"type": "str", "default": ""},
    "effect": {"type": "str", "choices": ["NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"], "required": True},
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "cluster": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "cluster_name": {"type": "str"},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "count": {"type": "int", "default": 1},
    "min_size": {"type": "int"},
    "max_size": {"type": "int"},
    "allow_shrink": {"type": "bool", "default": False},
    "node_role_arn": {"type": "str"},
    "subnets": {"type": "list", "elements": "str"},
    "single_zone": {"type": "bool", "default": False},
    "launch_template": {
        "type": "dict",
        "options": {"id": {"type": "str"}, "name": {"type": "str"}, "version": {"type": "str"}},
    },
    "instance_types": {"type": "list", "elements": "str"},
    "ami_type": {"type": "str"},
    "release_version": {"type": "str"},
    "version": {"type": "str"},
    "replace_nodes": {"type": "bool", "default": False},
    "capacity_type": {"type": "str", "choices": ["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"]},
    "labels": {"type": "dict"},
    "taints": {"type": "list", "elements": "dict", "options": TAINT},
    "max_unavailable": {"type": "int"},
    "node_repair": {"type": "bool"},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 3600},
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    clients = (module.client("eks"), module.client("ec2"))
    try:
        check_library(clients[0])
        result = EksNodegroup(*clients, module.params, module.check_mode, warn).run()
    except TrainiumError as error:
        name = f"{module.params['cluster']}/{module.params['name']}"
        module.fail_json(msg=f"eks_nodegroup {name}: {error}.", **{"attempts": [], **error.details})
    finish(module, result)


if __name__ == "__main__":
    main()
