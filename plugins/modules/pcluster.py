#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pcluster
version_added: 0.1.0
short_description: Create, update and delete a cluster with AWS ParallelCluster
description:
  - Gives a cluster the configuration that is wanted, with the library of AWS ParallelCluster. A cluster that has it
    already is left alone.
  - Every creation and update is rehearsed first by the library's own dry run, which refuses a bad configuration before
    anything is made.
  - A run that was killed can be repeated. A creation, update or deletion that is under way is waited for.
  - While the module waits, the resources that are done are shown when it runs with a local connection.
  - A failure names the resources that failed and why, ParallelCluster's failure code and the log group.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.pcluster
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - The library's dry run is asked. What it remarks is in RV(validation_messages), what would change in
        RV(change_set).
      - With O(fleet_policy=stop_and_start) an update that needs a stopped fleet counts as accepted; whether the library
        finds something else then is only known when the fleet has stopped.
  diff_mode:
    details: For an update, the library's change set.
options:
  name:
    description:
      - The name of the cluster and of its CloudFormation stack.
      - It begins with a letter and has at most 60 letters, digits and hyphens.
    type: str
    required: true
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Sessions of one IAM role are one owner.
      - A cluster that is another owner's, or carries no tag C(trainium:cluster) with its name, is refused.
      - A cluster that is made gets both tags. Before ParallelCluster 3.15 one that was made without an owner gets none.
      - Without it, a cluster that carries an owner's tag is refused, and any other is taken.
    type: str
  state:
    description:
      - V(present) creates the cluster, or updates it where its configuration is another.
      - V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  configuration:
    description:
      - The configuration of the cluster, as ParallelCluster documents it. M(trainium.cluster.pcluster_config)
        makes one from a few variables.
      - O(state=present) needs this or O(configuration_file).
    type: dict
  configuration_file:
    description: The path of a YAML file with the configuration.
    type: path
  suppress_validators:
    description: Validators whose findings are ignored, V(type:NAME) each, or V(ALL).
    type: list
    elements: str
    default: []
  validation_failure_level:
    description: From which level a validator's finding is a refusal.
    type: str
    choices: [INFO, WARNING, ERROR]
    default: ERROR
  rollback_on_failure:
    description:
      - Whether CloudFormation takes a failed creation back. V(false) leaves the head node for a look at it.
      - A failed update is always taken back.
    type: bool
    default: true
  fleet_policy:
    description:
      - What to do about an update that needs the compute fleet stopped.
      - V(fail) refuses it.
      - V(stop_and_start) stops the fleet, which ends the jobs on it, updates the cluster and starts the fleet again if
        it was running. It is started again also when the update fails. This waits even with O(wait=false).
    type: str
    choices: [fail, stop_and_start]
    default: fail
  keep_logs:
    description:
      - Whether O(state=absent) keeps the logs in CloudWatch, also where the configuration says that they go with the
        cluster.
      - V(false) deletes the log groups of every cluster that had this name, and of the functions that came with it,
        when the cluster is gone. With O(wait=false) that is left to the next run.
    type: bool
    default: true
  wait:
    description: Whether to wait until the cluster is created, updated or deleted.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most for each operation. What is under way goes on, and the next run waits on.
    type: int
    default: 3600
seealso:
  - module: trainium.cluster.pcluster_info
  - module: trainium.cluster.pcluster_config
  - module: trainium.cluster.pcluster_compute_fleet
  - module: trainium.cluster.pcluster_logs
"""

EXAMPLES = r"""
- name: A cluster as the file says
  trainium.cluster.pcluster:
    name: bert
    configuration_file: /etc/trainium/bert.yml
    pcluster_python: /opt/parallelcluster/bin/python

- name: What would change
  trainium.cluster.pcluster:
    name: bert
    configuration: "{{ bert_configuration }}"
  check_mode: true
  diff: true

- name: An update that may stop the compute fleet for a while
  trainium.cluster.pcluster:
    name: bert
    configuration: "{{ bert_configuration }}"
    fleet_policy: stop_and_start

- name: Delete the cluster and its logs
  trainium.cluster.pcluster:
    name: bert
    state: absent
    keep_logs: false
"""

RETURN = r"""
operation:
  description: What was or would be done, V(create), V(update), V(delete) or V(none).
  returned: success
  type: str
  sample: update
cluster:
  description:
    - The cluster as M(trainium.cluster.pcluster_info) describes it, without its instances and configuration. Of a
      cluster that is gone, or would be created, there is none.
  returned: success
  type: dict
  sample: {cluster_name: bert, cluster_status: CREATE_COMPLETE, compute_fleet_status: RUNNING}
change_set:
  description: What an update changed or would change.
  returned: success, and when an update is refused because the fleet runs
  type: list
  elements: dict
  contains:
    parameter:
      description: The key.
      type: str
      sample: Scheduling.SlurmQueues[train].ComputeResources[trn1].MaxCount
    current_value:
      description: Its value before, V(-) for none.
      type: str
      sample: "2"
    requested_value:
      description: The wanted value, V(-) for none.
      type: str
      sample: "4"
validation_messages:
  description: What the library remarked without refusing.
  returned: success
  type: list
  elements: dict
  contains:
    level:
      description: V(INFO) or V(WARNING).
      type: str
      sample: WARNING
    type:
      description: The validator.
      type: str
      sample: KeyPairValidator
    message:
      description: The remark.
      type: str
      sample: If you do not specify a key pair, you can't connect to the instance.
fleet_stopped:
  description: Whether the compute fleet was or would be stopped for the update.
  returned: success
  type: bool
deleted_log_groups:
  description: The log groups that were or would be deleted.
  returned: success
  type: list
  elements: str
failed_resources:
  description: The resources that failed by themselves, first to last.
  returned: when CloudFormation failed
  type: list
  elements: dict
  sample:
    - resource: HeadNodeWaitCondition20260101
      type: AWS::CloudFormation::WaitCondition
      reason: Failed to execute OnNodeConfigured script
failure_code:
  description: ParallelCluster's code of a failed creation; empty if it has none.
  returned: when CloudFormation failed
  type: str
  sample: OnNodeConfiguredExecutionFailure
stack_status:
  description: The status of the stack.
  returned: when CloudFormation failed, or did not end in time
  type: str
  sample: ROLLBACK_IN_PROGRESS
log_groups:
  description: The log groups of the cluster, newest first.
  returned: when CloudFormation failed
  type: list
  elements: str
  sample: [/aws/parallelcluster/bert-202611210700]
"""

from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import finish
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.yaml_file import read_configuration
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import LIBRARY_ARGUMENTS, library_of
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run import Pcluster
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_stack import Stack

ARGUMENTS: dict[str, dict[str, Any]] = {
    **LIBRARY_ARGUMENTS,
    "name": {"type": "str", "required": True},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "configuration": {"type": "dict"},
    "configuration_file": {"type": "path"},
    "suppress_validators": {"type": "list", "elements": "str", "default": []},
    "validation_failure_level": {"type": "str", "choices": ["INFO", "WARNING", "ERROR"], "default": "ERROR"},
    "rollback_on_failure": {"type": "bool", "default": True},
    "fleet_policy": {"type": "str", "choices": ["fail", "stop_and_start"], "default": "fail"},
    "keep_logs": {"type": "bool", "default": True},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 3600},
}


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec=ARGUMENTS,
        mutually_exclusive=[("configuration", "configuration_file")],
        required_if=[("state", "present", ("configuration", "configuration_file"), True)],
        supports_check_mode=True,
    )
    params = module.params
    try:
        library = library_of(module)
        configuration = None if params["state"] == "absent" else read_configuration(params)
        cloudwatch = module.client("logs")
        stack = Stack(module.client("cloudformation"), cloudwatch, params["name"])
        result = Pcluster(library, stack, cloudwatch, params, configuration, module.check_mode, warn).run()
    except TrainiumError as error:
        module.fail_json(msg=f"pcluster {params['name']}: {error}.", **error.details)
    finish(module, result)


if __name__ == "__main__":
    main()
