#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pcluster_logs
version_added: 0.1.0
short_description: Read and export the logs of a cluster of AWS ParallelCluster
description:
  - Gives the events of the cluster's stack, lists the log streams of its nodes, and reads or exports what they hold.
  - It speaks to CloudFormation and CloudWatch itself, so it needs no C(aws-parallelcluster), and it works for clusters
    of every version.
  - The logs of a cluster that is gone can be read as long as their log group was kept.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
options:
  name:
    description: The name of the cluster.
    type: str
    required: true
  stack_events:
    description: Whether to return and export the events of the stack.
    type: bool
    default: true
  nodes:
    description:
      - Only the logs of these nodes, by host name such as V(ip-192-0-2-10), by instance id, or V(HeadNode).
      - By default, those of all nodes.
    type: list
    elements: str
    default: []
  logs:
    description:
      - Only these logs, by names with wildcards such as V(clustermgtd), V(slurm*) or V(cloud-init-output).
      - By default, all logs.
    type: list
    elements: str
    default: []
  events:
    description: Whether to return what the logs hold. Of many nodes that is much; O(dest) is made for it.
    type: bool
    default: false
  limit:
    description: Only the newest so many events of each log.
    type: int
  start_time:
    description: Only events from this time on, in ISO 8601; without an offset it is UTC.
    type: str
  end_time:
    description: Only events before this time.
    type: str
  dest:
    description:
      - A folder for the logs, one file for each stream and C(stack-events.log). It is made if it does not exist.
      - Files are readable by their owner only, as logs may hold what is nobody else's business.
    type: path
seealso:
  - module: trainium.cluster.pcluster
"""

EXAMPLES = r"""
- name: What CloudFormation did, and which logs there are
  trainium.cluster.pcluster_logs:
    name: bert

- name: The last words of the head node
  trainium.cluster.pcluster_logs:
    name: bert
    nodes: [HeadNode]
    logs: [cloud-init-output, clustermgtd]
    events: true
    limit: 50

- name: Everything into a folder
  trainium.cluster.pcluster_logs:
    name: bert
    dest: /var/tmp/bert-logs
"""

RETURN = r"""
log_group:
  description: The log group that was read, the newest of the cluster's name; empty if there is none.
  returned: success
  type: str
  sample: /aws/parallelcluster/bert-202611210700
log_groups:
  description: All log groups of the cluster's name, newest first.
  returned: success
  type: list
  elements: str
  sample: [/aws/parallelcluster/bert-202611210700]
log_streams:
  description: The chosen log streams, by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The name.
      type: str
      sample: ip-192-0-2-10.i-0a1b2c3d4e5f60001.clustermgtd
    host:
      description: The host name.
      type: str
      sample: ip-192-0-2-10
    instance_id:
      description: The instance.
      type: str
      sample: i-0a1b2c3d4e5f60001
    log:
      description: The log.
      type: str
      sample: clustermgtd
    last_event_time:
      description: When the last event was written; empty if there is none.
      type: str
      sample: "2026-11-21T07:00:00.000Z"
stack_events:
  description: The events of the stack, newest first; empty for a cluster that is gone.
  returned: success
  type: list
  elements: dict
  sample:
    - time: "2026-11-21T07:00:00.000Z"
      resource: HeadNode
      type: AWS::EC2::Instance
      status: CREATE_COMPLETE
      reason: ""
log_events:
  description: What the chosen streams hold, by stream, oldest first.
  returned: success
  type: dict
  sample:
    ip-192-0-2-10.i-0a1b2c3d4e5f60001.clustermgtd:
      - time: "2026-11-21T07:00:00.000Z"
        message: ClusterManager Startup
files:
  description: The files in O(dest).
  returned: success
  type: list
  elements: str
  sample: [/var/tmp/bert-logs/stack-events.log]
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_logs import PclusterLogs

ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "stack_events": {"type": "bool", "default": True},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "logs": {"type": "list", "elements": "str", "default": []},
    "events": {"type": "bool", "default": False},
    "limit": {"type": "int"},
    "start_time": {"type": "str"},
    "end_time": {"type": "str"},
    "dest": {"type": "path"},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    name, limit = module.params["name"], module.params["limit"]
    try:
        if limit is not None and limit < 1:
            raise TrainiumError("limit must be at least 1")
        result = PclusterLogs(module.client, module.params, module.check_mode).run()
    except TrainiumError as error:
        module.fail_json(msg=f"pcluster_logs {name}: {error}.", **error.details)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
