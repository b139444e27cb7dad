#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: address_room
version_added: 0.3.0
short_description: Whether the quota of Elastic IPs has room for all of a cluster
description:
  - M(trainium.cluster.efa_instance) looks at the addresses of one set of nodes. Head node, nodes, bastion and NAT
    gateway take theirs one after another, and the last of them would find none when the others cost already.
  - Adds them up, without those that the cluster has, and fails where the quota is too small. Where the quota cannot be
    seen it warns.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.aws
options:
  cluster_name:
    description: The cluster, the value of the tag C(trainium:cluster).
    type: str
    required: true
  wanted:
    description: How many addresses the cluster is to have, by the tag C(trainium:role) that they carry.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Look whether four nodes, a head node and a NAT gateway get an address each
  trainium.cluster.internal.address_room:
    cluster_name: bert
    wanted: {compute: 4, head: 1, network: 1}
    region: us-west-2
"""

RETURN = r"""
missing:
  description: How many addresses there will be to allocate.
  returned: success
  type: int
"""

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_quotas import Account


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "cluster_name": {"type": "str", "required": True},
            "wanted": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    wanted = {role: int(number) for role, number in module.params["wanted"].items()}
    try:
        account = Account(module.client("ec2"), module.client("service-quotas"), warn)
        missing = account.check_all_addresses(module.params["cluster_name"], wanted)
    except TrainiumError as error:
        module.fail_json(msg=f"{error}.", **error.details)
    module.exit_json(changed=False, missing=missing)


if __name__ == "__main__":
    main()
