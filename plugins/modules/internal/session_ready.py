#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_ready
version_added: 0.1.0
short_description: Wait until Session Manager reaches the nodes of a cluster
description:
  - Asks Systems Manager for all running nodes of a cluster, 50 with a call, until each is C(Online) there.
  - The agent of a node registers some seconds after its boot, if its image has one, if its instance profile allows it
    and if it has a way to the endpoints C(ssm) and C(ssmmessages) of the region.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
  - trainium.cluster.aws
attributes:
  check_mode:
    details: Does not wait.
options:
  cluster_name:
    description: The cluster, by the value of the tag C(trainium:cluster).
    type: str
    required: true
  instance_ids:
    description: Those of its nodes that are waited for. By default all of them.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds to wait.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Wait until Session Manager reaches the nodes
  trainium.cluster.internal.session_ready:
    cluster_name: bert
    region: us-west-2
"""

RETURN = r"""
online:
  description: The nodes that are registered.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace, looks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2


def _wait(module: AnsibleAWSModule) -> list[str]:
    """The nodes, when all of them are registered. Raises TrainiumError."""
    client, filters = module.client("ssm"), {f"tag:{CLUSTER_TAG}": module.params["cluster_name"]}
    found = ec2.describe_instances(module.client("ec2"), {**filters, "instance-state-name": "running"})
    wanted = set(module.params["instance_ids"])
    nodes = sorted(item["InstanceId"] for item in found if not wanted or item["InstanceId"] in wanted)
    progress = Progress()
    missing, timeout = nodes, 0 if module.check_mode else module.params["timeout"]
    for _passed in looks(timeout, Pace(1, 1.5, 10)):
        online = ec2.managed_instances(client, missing)
        missing = [node for node in missing if node not in online]
        progress.report("registered with Session Manager", len(nodes) - len(missing), len(nodes), missing)
        if not missing or module.check_mode:
            return [node for node in nodes if node not in missing]
    raise TrainiumError(
        f"{', '.join(missing)} did not register with Systems Manager within {timeout} s; see that the image has the "
        "SSM agent, that the instance profile has the policy AmazonSSMManagedInstanceCore, and that the subnet has a "
        "NAT gateway or endpoints of ssm and ssmmessages"
    )


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "cluster_name": {"type": "str", "required": True},
            "instance_ids": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    with failing(module, "session_ready", module.params["cluster_name"]):
        online = _wait(module)
    module.exit_json(changed=False, online=online)


if __name__ == "__main__":
    main()
