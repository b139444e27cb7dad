#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_profile
version_added: 0.1.0
short_description: Make the instance profile with which nodes register with Systems Manager
description:
  - Makes an IAM role with the policy AmazonSSMManagedInstanceCore and an instance profile of the same name, both below
    the path C(/trainium/REGION/CLUSTER/), by which teardown finds them.
  - A role or profile of that name elsewhere is not taken, and refused by IAM.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
  - trainium.cluster.aws
options:
  cluster_name:
    description: Name of the cluster.
    type: str
    required: true
  name:
    description: Name of the role and of the instance profile.
    type: str
    required: true
  tags:
    description: Tags for both, when they are made.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Make the instance profile of the nodes
  trainium.cluster.internal.node_profile:
    cluster_name: bert
    name: bert-us-west-2
    region: us-west-2
"""

RETURN = r"""
name:
  description: Name of the instance profile.
  returned: success
  type: str
"""

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing
from ansible_collections.trainium.cluster.plugins.module_utils._iam.run import NodeProfile


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "cluster_name": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "tags": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    name, tags = module.params["name"], {key: str(value) for key, value in module.params["tags"].items()}
    profile = NodeProfile(module.client("iam"), module.region, module.params["cluster_name"])
    with failing(module, "node_profile", name):
        changed = profile.make(name, tags, module.check_mode)
    module.exit_json(changed=changed, name=name)


if __name__ == "__main__":
    main()
