#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: efa_instance
version_added: 0.1.0
short_description: Launch a set of EC2 instances with EFA on every network card
description:
  - Keeps a set of equal instances at a wanted number, with the network interfaces that multi-node training needs. Their
    number and kinds come from what EC2 says about the instance type.
  - All new nodes are launched by one RunInstances call, in one Availability Zone, all of them or none. Where the zone
    has no capacity, the next of the O(subnets) is tried.
  - A run that was killed after the launch can be repeated without launching twice. The launch carries a ClientToken
    that follows from the request and from the set's generation, the tag C(trainium:generation).
  - New nodes of which EC2 says that they failed, or that do not get running within O(wait_timeout), are terminated;
    those that run stay, and the next run launches what is missing. Where EC2 finds only after the launch that it has no
    capacity, all nodes of the launch are terminated and the next of the O(subnets) is tried, if the module waits.
  - Nodes are found by the tags C(trainium:cluster) and C(trainium:set). A raised O(count) adds nodes in the
    zone of those that exist; a lowered one terminates those of O(leaving), else the newest, if O(allow_shrink) is set.
    Those of O(replace) are terminated and launched anew, one call each.
  - Nodes that exist are not changed but for their tags. Where their interfaces, placement group or security groups are
    not what is asked for, further nodes beside them are refused, and otherwise the difference is warned of, as are
    other volumes, key pairs and instance profiles.
  - While the module waits, progress is shown when it runs with a local connection.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.launch
  - trainium.cluster.launch.instance
  - trainium.cluster.launch.number
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - EC2 is asked by DryRun whether it would accept the launch, and Service Quotas whether the quotas of vCPUs
        and of Elastic IPs have room for it. O(image_id), O(subnets) and O(security_groups) may be empty, and
        O(key_name) and O(placement_group) may not exist yet, as an earlier task would have made them.
options:
  name:
    description:
      - The name of the set; the tags C(Name) and C(trainium:set) of its resources.
      - At most 100 letters, digits, dots, underscores and hyphens.
    type: str
    required: true
  cluster_name:
    description: The cluster that the set belongs to, the tag C(trainium:cluster). By default, O(name).
    type: str
  owner:
    description: Whose cluster it is, the tag C(trainium:owner). Without it there is no such tag.
    type: str
  role:
    description: What the nodes are for, the tag C(trainium:role). The inventory groups by it.
    type: str
    default: compute
  state:
    description:
      - V(present) launches, starts or terminates nodes until there are O(count) that run.
      - V(stopped) stops the nodes that exist and launches none.
      - V(absent) terminates all nodes of the set and releases the Elastic IPs that it allocated.
    type: str
    choices: [present, absent, stopped]
    default: present
  instance_type:
    description:
      - The instance type, such as V(trn1.32xlarge). Needed for O(state=present).
      - A set has one type; nodes of another must be removed first.
    type: str
  image_id:
    description:
      - The AMI, needed for O(state=present). For an SSM parameter use the lookup P(amazon.aws.ssm_parameter#lookup).
      - Nodes that run another image are left alone, with a warning.
    type: str
  subnets:
    description:
      - Ids of subnets of one VPC in the order in which they are tried, needed for O(state=present).
      - Each must lie in a zone that offers the type.
    type: list
    elements: str
  security_groups:
    description:
      - Ids of the security groups of every interface, needed for O(state=present).
      - EFA needs all traffic in and out allowed with the group itself as the peer.
    type: list
    elements: str
  wait:
    description: Whether to wait until the nodes are running, stopped or terminated.
    type: bool
    default: true
  stop_after:
    description:
      - Minutes after each boot at which a new node shuts itself down, so that it is stopped and not billed on though
        nobody runs a teardown. V(0) means never. The next run with O(state=present) starts it again.
      - User data makes a systemd timer for it, beside what O(user_data) says; nodes that exist are left as they are.
      - Spot instances end in place of being stopped.
    type: int
    default: 0
    version_added: 0.3.0
  instance_initiated_shutdown_behavior:
    description:
      - Whether new nodes whose operating system shuts down are stopped or terminated. By default, what EC2 does.
      - Not for spot instances, which end.
    type: str
    choices: [stop, terminate]
    version_added: 0.3.0
  wait_timeout:
    description:
      - Seconds to wait at most until nodes run. New ones that do not by then are terminated.
      - For nodes that stop or end it is three times as long, since those with Neuron devices may take long to end.
    type: int
    default: 600
  check_quotas:
    description: Whether check mode asks Service Quotas too. Without that, check mode asks EC2 alone by DryRun.
    type: bool
    default: true
    version_added: 0.3.0
  tags:
    description:
      - Further tags of instances, volumes, interfaces and Elastic IPs. Existing nodes get tags that are missing or
        different; other tags are never removed.
      - Keys that begin with C(trainium:) or C(aws:) are refused.
    type: dict
    aliases: [resource_tags]
seealso:
  - module: trainium.cluster.efa_instance_info
  - plugin: trainium.cluster.efa_interfaces
    plugin_type: filter
  - plugin: trainium.cluster.nodes
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: Two trn1.32xlarge with eight EFA interfaces each, in the first zone that has room
  trainium.cluster.efa_instance:
    name: bert
    count: 2
    instance_type: trn1.32xlarge
    image_id: "{{ lookup('amazon.aws.ssm_parameter', '/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id') }}"
    subnets: [subnet-0a1b2c3d4e5f60001, subnet-0a1b2c3d4e5f60002]
    security_groups: [sg-0a1b2c3d4e5f60003]
    key_name: bert
    placement_group: bert
    public_ip: primary
    volumes: [{size: 512}]

- name: Sixteen nodes of a Capacity Block, with one address each
  trainium.cluster.efa_instance:
    name: llama
    count: 16
    instance_type: trn2.48xlarge
    image_id: ami-0a1b2c3d4e5f60004
    subnets: [subnet-0a1b2c3d4e5f60001]
    security_groups: [sg-0a1b2c3d4e5f60003]
    interface_layout: efa-only
    market: capacity-block
    capacity_reservation: {id: cr-0a1b2c3d4e5f60005}

- name: Stop the nodes for the night
  trainium.cluster.efa_instance:
    name: bert
    state: stopped

- name: Remove them, with the addresses that were allocated for them
  trainium.cluster.efa_instance:
    name: bert
    state: absent
"""

RETURN = r"""
instances:
  description: The nodes of the set that exist now, oldest first, whenever they were last started.
  returned: success
  type: list
  elements: dict
  contains:
    instance_id:
      description: The id.
      type: str
      sample: i-0a1b2c3d4e5f60006
    instance_type:
      description: The type.
      type: str
      sample: trn1.32xlarge
    image_id:
      description: The AMI.
      type: str
      sample: ami-0a1b2c3d4e5f60004
    state:
      description: V(pending), V(running), V(stopping) or V(stopped).
      type: str
      sample: running
    state_reason:
      description: Why EC2 changed the state; empty if it did not.
      type: str
      sample: ""
    state_reason_code:
      description: The code of the reason; empty if there is none.
      type: str
      sample: ""
    private_ip_address:
      description: The address of the primary interface.
      type: str
      sample: 192.0.2.5
    private_dns_name:
      description: The name in the VPC.
      type: str
      sample: ip-192-0-2-5.us-west-2.compute.internal
    public_ip_address:
      description: The public address; empty if there is none.
      type: str
      sample: 198.51.100.7
    vpc_id:
      description: The VPC.
      type: str
      sample: vpc-0a1b2c3d4e5f60007
    subnet_id:
      description: The subnet.
      type: str
      sample: subnet-0a1b2c3d4e5f60001
    availability_zone:
      description: The zone.
      type: str
      sample: us-west-2a
    placement_group:
      description: The placement group; empty if there is none.
      type: str
      sample: bert
    key_name:
      description: The key pair; empty if there is none.
      type: str
      sample: bert
    instance_profile:
      description: The ARN of the instance profile; empty if there is none.
      type: str
      sample: arn:aws:iam::123456789012:instance-profile/bert
    security_groups:
      description: The ids of the security groups of the primary interface.
      type: list
      elements: str
      sample: [sg-0a1b2c3d4e5f60003]
    root_device_name:
      description: The device of the root volume.
      type: str
      sample: /dev/sda1
    launch_time:
      description: When the node was launched or last started.
      type: str
      sample: "2026-11-21T07:00:00.000+00:00"
    attach_time:
      description: When the primary interface was attached, which is at the launch and stays; empty before.
      type: str
      sample: "2026-11-20T16:00:00.000+00:00"
    ami_launch_index:
      description: The node's number within its launch.
      type: int
      sample: 0
    efa_interface_count:
      description: How many interfaces carry EFA.
      type: int
      sample: 8
    network_interfaces:
      description: The interfaces by card and device.
      type: list
      elements: dict
      contains:
        network_interface_id:
          description: The id.
          type: str
          sample: eni-0a1b2c3d4e5f60008
        network_card_index:
          description: The network card.
          type: int
          sample: 0
        device_index:
          description: The device on the card.
          type: int
          sample: 0
        interface_type:
          description: V(interface), V(efa) or V(efa-only).
          type: str
          sample: efa
        private_ip_address:
          description: The address; empty for V(efa-only).
          type: str
          sample: 192.0.2.5
        subnet_id:
          description: The subnet.
          type: str
          sample: subnet-0a1b2c3d4e5f60001
    volumes:
      description: The ids of the volumes.
      type: list
      elements: str
      sample: [vol-0a1b2c3d4e5f60009]
    capacity_reservation_id:
      description: The reservation that it uses; empty if there is none.
      type: str
      version_added: 0.3.0
    tags:
      description: The tags.
      type: dict
      sample: {"trainium:cluster": "bert", "trainium:role": "compute"}
instance_ids:
  description: The ids of RV(instances).
  returned: success
  type: list
  elements: str
  sample: [i-0a1b2c3d4e5f60006]
availability_zone:
  description: The zone that all nodes are in; empty if there are none.
  returned: success
  type: str
  sample: us-west-2a
attempts:
  description: Every RunInstances call with the subnet and EC2's answer, also when all failed.
  returned: always
  type: list
  elements: dict
  contains:
    subnet_id:
      description: The subnet.
      type: str
      sample: subnet-0a1b2c3d4e5f60001
    availability_zone:
      description: Its zone.
      type: str
      sample: us-west-2a
    generation:
      description: The value of the tag C(trainium:generation) that the launch asked for.
      type: int
      sample: 1
    outcome:
      description: V(launched), V(replayed) if EC2 gave back nodes that are gone, or EC2's error code.
      type: str
      sample: InsufficientInstanceCapacity
    message:
      description: What EC2 said.
      type: str
      sample: We currently do not have sufficient trn1.32xlarge capacity
launched:
  description: The ids of the nodes that this run launched.
  returned: success
  type: list
  elements: str
started:
  description: The ids of the nodes that this run started or would start.
  returned: success
  type: list
  elements: str
stopped:
  description: The ids of the nodes that this run stopped or would stop.
  returned: success
  type: list
  elements: str
terminated:
  description: The ids of the nodes that this run terminated or would terminate.
  returned: success
  type: list
  elements: str
replaced:
  description: Those of RV(terminated) in whose place nodes were or would be launched.
  returned: success
  version_added: 0.3.0
  type: list
  elements: str
asked:
  description: Whether EC2 was asked by DryRun; it is not where something that it needs would exist only then.
  returned: in check mode, when nodes would be launched
  version_added: 0.3.0
  type: bool
  sample: true
request:
  description: The RunInstances request, without its user data.
  returned: when nodes were or would be launched
  type: dict
"""

from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import finish
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError, unforeseen
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.arguments import LAUNCH_ARGUMENTS
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run import EfaInstance

ARGUMENTS: dict[str, dict[str, Any]] = {
    **LAUNCH_ARGUMENTS,
    "name": {"type": "str", "required": True},
    "cluster_name": {"type": "str"},
    "owner": {"type": "str"},
    "role": {"type": "str", "default": "compute"},
    "state": {"type": "str", "choices": ["present", "absent", "stopped"], "default": "present"},
    "count": {"type": "int", "default": 1},
    "allow_shrink": {"type": "bool", "default": False},
    "leaving": {"type": "list", "elements": "str"},
    "replace": {"type": "list", "elements": "str"},
    "instance_type": {"type": "str"},
    "image_id": {"type": "str"},
    "subnets": {"type": "list", "elements": "str"},
    "security_groups": {"type": "list", "elements": "str"},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 600},
    "stop_after": {"type": "int", "default": 0},
    "instance_initiated_shutdown_behavior": {"type": "str", "choices": ["stop", "terminate"]},
    "check_quotas": {"type": "bool", "default": True},
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        client = module.client("ec2")
        # A launch asks EC2 itself; a dry run says nothing of quotas.
        quotas = module.client("service-quotas") if module.check_mode and module.params["check_quotas"] else None
        result = EfaInstance(client, module.params, module.check_mode, warn, quotas).run()
    except TrainiumError as error:
        module.fail_json(msg=f"efa_instance {module.params['name']}: {error}.", **{"attempts": [], **error.details})
    except Exception as error:
        module.fail_json(msg=f"efa_instance {module.params['name']}: {unforeseen(error)}.", attempts=[])
    finish(module, result)


if __name__ == "__main__":
    main()
