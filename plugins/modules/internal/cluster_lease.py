#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_lease
version_added: 0.1.0
short_description: Let one run at a time work on a cluster
description:
  - Writes who works on a cluster into the SSM parameter C(/trainium/CLUSTER/lease), on the condition that there is
    none, and refuses where another run has it. The same run may take it as often as it likes.
  - A process that stays behind gives it back when the run of Ansible has ended, whether it succeeded, failed or was
    killed. Where the whole machine is gone, somebody has to set O(break_lease).
  - Runs on the controller only. Never reports a change, as nothing of it is left after the run.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
  - trainium.cluster.aws
attributes:
  check_mode:
    details: Takes nothing.
options:
  cluster_name:
    description: Name of the cluster.
    type: str
    required: true
  owner:
    description: Who runs this, to be shown to others.
    type: str
    required: true
  state:
    description: V(free) gives it back before the end of the run, if this run has it.
    type: str
    choices: [held, free]
    default: held
  break_lease:
    description: Whether to take it from another run.
    type: bool
    default: false
  had:
    description: Whether this run has had the lease, as an earlier task of it says.
    type: bool
    default: false
  delete:
    description:
      - Whether the parameter goes when the run has ended, as the cluster does. Else it says that nobody has the lease.
    type: bool
    default: false
  pid:
    description: The process of the run. The action plugin gives it.
    type: int
"""

EXAMPLES = r"""
- name: Work alone on the cluster until this run ends
  trainium.cluster.internal.cluster_lease:
    cluster_name: bert
    owner: arn:aws:iam::123456789012:user/ada
"""

RETURN = r"""
parameter:
  description: Name of the SSM parameter.
  returned: success
  type: str
  sample: /trainium/bert/lease
region:
  description: The region of the parameter.
  returned: success
  type: str
holds:
  description: Whether this run has the lease now. In check mode it takes none.
  returned: success
  type: bool
lost:
  description: Whether another run had taken it since this one had it, by O(had).
  returned: success
  type: bool
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, OWNER_TAG
from ansible_collections.trainium.cluster.plugins.module_utils._lease.plan import parameter_name
from ansible_collections.trainium.cluster.plugins.module_utils._lease.run import Lease, this_run

ARGUMENTS: dict[str, dict[str, Any]] = {
    "cluster_name": {"type": "str", "required": True},
    "owner": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["held", "free"], "default": "held"},
    "break_lease": {"type": "bool", "default": False},
    "had": {"type": "bool", "default": False},
    "delete": {"type": "bool", "default": False},
    "pid": {"type": "int"},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params, name = module.params, module.params["cluster_name"]
    if not params["pid"]:
        module.fail_json(msg="cluster_lease: pid is missing; the module runs as a task on the controller only.")
    me, holds, taken = this_run(params["owner"], params["pid"]), False, False
    try:
        if module.check_mode:
            pass
        elif params["state"] == "free":
            Lease(module.client("ssm"), name, me).free()
        else:
            tags = {CLUSTER_TAG: name, OWNER_TAG: params["owner"]}
            taken = Lease(module.client("ssm"), name, me).take(params["break_lease"], tags)
            holds = True
            if taken:
                # A client of its own, whose connections nobody else has.
                Lease(module.client("ssm"), name, me).free_at_the_end(params["delete"])
    except TrainiumError as error:
        denied = getattr(error, "code", "") == "AccessDeniedException"
        advice = ", or set trainium_lease to false" if denied else ""
        module.fail_json(msg=f"{error}{advice}.", **error.details)
    module.exit_json(
        changed=False,
        parameter=parameter_name(name),
        region=module.region,
        holds=holds,
        lost=taken and params["had"],
    )


if __name__ == "__main__":
    main()
