#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vpc_strangers
version_added: 0.3.0
short_description: Refuse what lies in a cluster's VPC in a place of the cluster's and is not the cluster's
description:
  - Modules find a subnet by its CIDR, a security group by its name and an internet gateway by its VPC. They would take
    one that somebody else made there, with the cluster's tag, by which it would be deleted with the cluster.
  - Fails where one of them does not carry the tag C(trainium:cluster) of the cluster. Three calls, and none that
    writes.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.aws
attributes:
  diff_mode:
    support: none
options:
  vpc_id:
    description: The cluster's VPC.
    type: str
    required: true
  cluster_name:
    description: The cluster, the value of the tag C(trainium:cluster).
    type: str
    required: true
  cidrs:
    description: Those of the cluster's subnets.
    type: list
    elements: str
    required: true
  group_names:
    description: The names of the cluster's security groups.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Refuse to take what is somebody else's
  trainium.cluster.internal.vpc_strangers:
    vpc_id: vpc-0a1b2c3d4e5f60001
    cluster_name: bert
    cidrs: [10.77.48.0/20, 10.77.176.0/20]
    group_names: [bert-efa, bert-bastion]
    region: us-west-2
"""

RETURN = r"""#"""

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.networks import check_strangers


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "vpc_id": {"type": "str", "required": True},
            "cluster_name": {"type": "str", "required": True},
            "cidrs": {"type": "list", "elements": "str", "required": True},
            "group_names": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    params, client = module.params, module.client("ec2")
    vpc = params["vpc_id"]
    try:
        found = [
            (item["SubnetId"], item["CidrBlock"], item)
            for item in ec2.look(client, "subnets", {"vpc-id": vpc})
            if item["CidrBlock"] in params["cidrs"]
        ]
        found += [
            (item["GroupId"], item["GroupName"], item)
            for item in ec2.look(client, "security_groups", {"vpc-id": vpc, "group-name": params["group_names"]})
        ]
        found += [
            (item["InternetGatewayId"], "its internet gateway", item)
            for item in ec2.look(client, "internet_gateways", {"attachment.vpc-id": vpc})
        ]
        check_strangers(found, vpc, params["cluster_name"])
    except TrainiumError as error:
        module.fail_json(msg=f"{error}.", **error.details)
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
