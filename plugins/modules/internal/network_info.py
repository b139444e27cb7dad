#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_info
version_added: 0.3.0
short_description: Look what there is of a cluster's network, and in what it differs from what is wanted
description:
  - Asks for all of it at the same time, so that modules that make or mend a part need to run only where that part is
    missing or differs.
  - Without O(network) it tells whose the cluster is, by the tags of its VPC and instances, which backend made them, and
    with O(key_name) whose the key pair of that name is.
  - With O(network) it compares all parts of the network with what role P(trainium.cluster.network#role) gives the
    modules of amazon.aws, and says what lies in the VPC in a place of the cluster's and is somebody else's. The modules
    would find a subnet by its CIDR, a security group by its name and an internet gateway by its VPC, and give it the
    cluster's tag, by which it would be deleted with the cluster.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.aws
options:
  cluster_name:
    description: The cluster, the value of the tag C(trainium:cluster).
    type: str
    required: true
  owner:
    description: Who owns the cluster. If it is empty, whoever calls.
    type: str
    default: ""
  caller:
    description: The ARN of whoever calls, where it is known already. If it and O(owner) are empty, AWS is asked.
    type: str
    default: ""
  key_name:
    description: The name of a key pair to look for.
    type: str
    default: ""
  public_key:
    description: The public key that it should hold.
    type: str
    default: ""
  network:
    description: What is wanted. If it is left out, nothing of the network is asked but its VPC.
    type: dict
    suboptions:
      cidr:
        description: The network of the VPC.
        type: str
        required: true
      instance_type:
        description: The type that the zones of the subnets offer.
        type: str
        required: true
      zones:
        description: In how many zones there are subnets at least.
        type: int
        default: 1
      known_zone_ids:
        description: Ids of zones that have the type, for where EC2 names none.
        type: list
        elements: str
        default: []
      left_out_zone_ids:
        description: Ids of zones that are never added to those with the type.
        type: list
        elements: str
        default: []
      nat_gateway:
        description: Whether there is to be a NAT gateway.
        type: bool
        default: false
      s3_endpoint:
        description: Whether there is to be a gateway endpoint of S3.
        type: bool
        default: false
      tags:
        description: Tags of everything, beside those by which a cluster's resources are known.
        type: dict
        default: {}
      kind_tags:
        description: Further tags of public and of private subnets.
        type: dict
        default: {}
      groups:
        description:
          - The security groups by the names that they have in RV(differs), each with C(name), C(description), C(rules)
            and perhaps C(rules_egress) as M(amazon.aws.ec2_security_group) takes them.
        type: dict
        default: {}
      group_names:
        description: The names of security groups that may not be a stranger's.
        type: list
        elements: str
        default: []
"""

EXAMPLES = r"""
- name: Look whose the cluster is
  trainium.cluster.internal.network_info:
    cluster_name: bert
    region: us-west-2

- name: Look what differs from a network with private nodes
  trainium.cluster.internal.network_info:
    cluster_name: bert
    region: us-west-2
    network:
      cidr: 10.77.0.0/16
      instance_type: trn1.32xlarge
      nat_gateway: true
      s3_endpoint: true
      groups:
        security_group: {name: bert-efa, description: EFA among the nodes of bert, rules: []}
      group_names: [bert-efa]
"""

RETURN = r"""
caller:
  description: The ARN of whoever calls, O(caller) or what AWS says; empty where only O(owner) is given.
  returned: success
  type: str
owner:
  description: O(owner), or whoever calls without the name of a session.
  returned: success
  type: str
owners:
  description: Who owns the cluster's VPCs and instances, by their tags.
  returned: success
  type: list
  elements: str
backends:
  description: How many of the cluster's instances each backend has made.
  returned: success
  type: dict
  sample: {ec2: 16}
vpc_ids:
  description: The cluster's VPCs.
  returned: success
  type: list
  elements: str
key:
  description: Whether the key pair exists, is this cluster's by its tag, and holds O(public_key).
  returned: with O(key_name)
  type: dict
  sample: {exists: true, ours: true, right: true}
zones:
  description: The zones that offer the type.
  returned: with O(network)
  type: list
  elements: str
further_zones:
  description: Zones that do not, and are added for O(network.zones).
  returned: with O(network)
  type: list
  elements: str
strangers:
  description: What in the VPC is somebody else's, a sentence; empty where nothing is.
  returned: with O(network)
  type: str
differs:
  description:
    - The parts that are missing or different. They are C(vpc), C(subnets), C(internet_gateway), C(nat_gateway),
      C(route_tables), C(s3_endpoint) and the names in O(network.groups).
  returned: with O(network)
  type: list
  elements: str
differences:
  description: What differs, by part.
  returned: with O(network)
  type: dict
  sample: {route_tables: [subnet-0a1b2c3d4e5f60001 does not go with rtb-0a1b2c3d4e5f60001]}
vpc_id:
  description: The VPC that is compared; this and the other ids are empty for what is not there.
  returned: with O(network)
  type: str
subnets:
  description: The wanted subnets with C(zone), C(kind), C(cidr) and C(id).
  returned: with O(network)
  type: list
  elements: dict
  sample: [{zone: us-west-2d, kind: public, cidr: 10.77.48.0/20, id: subnet-0a1b2c3d4e5f60001}]
internet_gateway_id:
  description: The internet gateway.
  returned: with O(network)
  type: str
nat_gateway_id:
  description: The NAT gateway.
  returned: with O(network)
  type: str
route_table_ids:
  description: The route tables of the public and of the private subnets.
  returned: with O(network)
  type: dict
  sample: {public: rtb-0a1b2c3d4e5f60001, private: rtb-0a1b2c3d4e5f60002}
group_ids:
  description: The security groups, by their names in O(network.groups).
  returned: with O(network)
  type: dict
  sample: {security_group: sg-0a1b2c3d4e5f60001}
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing
from ansible_collections.trainium.cluster.plugins.module_utils._network.run import Look

NAMES: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
NETWORK: dict[str, dict[str, Any]] = {
    "cidr": {"type": "str", "required": True},
    "instance_type": {"type": "str", "required": True},
    "zones": {"type": "int", "default": 1},
    "known_zone_ids": NAMES,
    "left_out_zone_ids": NAMES,
    "nat_gateway": {"type": "bool", "default": False},
    "s3_endpoint": {"type": "bool", "default": False},
    "tags": {"type": "dict", "default": {}},
    "kind_tags": {"type": "dict", "default": {}},
    "groups": {"type": "dict", "default": {}},
    "group_names": NAMES,
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "cluster_name": {"type": "str", "required": True},
    "owner": {"type": "str", "default": ""},
    "caller": {"type": "str", "default": ""},
    "key_name": {"type": "str", "default": ""},
    "public_key": {"type": "str", "default": "", "no_log": False},
    "network": {"type": "dict", "options": NETWORK},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    look = Look(module.client("ec2"), lambda: module.client("sts"), module.region, module.params)
    with failing(module, "network_info"):
        result = look.ask()
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
