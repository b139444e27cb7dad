#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pcluster_compute_fleet
version_added: 0.1.0
short_description: Start or stop the compute fleet of a cluster of AWS ParallelCluster
description:
  - A stopped fleet has no compute nodes and runs no jobs. Some updates need it, and so does a change of the scripts by
    which nodes configure themselves.
  - Stopping ends the jobs that run.
  - While the module waits, the status of the fleet is shown when it runs with a local connection.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.pcluster
  - trainium.cluster.aws
options:
  name:
    description: The name of the cluster.
    type: str
    required: true
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Sessions of one IAM role are one owner.
      - A cluster that is another owner's, or carries no tag C(trainium:cluster) with its name, is refused.
      - Without it, a cluster that carries an owner's tag is refused, and any other is taken.
    type: str
  state:
    description:
      - Whether the fleet shall run.
      - A fleet that ParallelCluster protects because its nodes failed to boot is started by V(running).
    type: str
    choices: [running, stopped]
    default: running
  wait:
    description: Whether to wait until the fleet is running or stopped.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most.
    type: int
    default: 1200
seealso:
  - module: trainium.cluster.pcluster
"""

EXAMPLES = r"""
- name: Stop the compute nodes
  trainium.cluster.pcluster_compute_fleet:
    name: bert
    state: stopped
    pcluster_python: /opt/parallelcluster/bin/python

- name: Start them again
  trainium.cluster.pcluster_compute_fleet:
    name: bert
    state: running
    pcluster_python: /opt/parallelcluster/bin/python
"""

RETURN = r"""
status:
  description: The status of the fleet; in check mode, the one that it would get.
  returned: success
  type: str
  sample: RUNNING
last_status_updated_time:
  description: When the status last changed; empty if that is not known.
  returned: success
  type: str
  sample: "2026-11-21T07:00:00.000Z"
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import finish
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.calls_stack import describe_stack
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import LIBRARY_ARGUMENTS, library_of
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.plan import check_owner
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.plan_fleet import WANTED, fleet_request
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_fleet import Fleet

ARGUMENTS: dict[str, dict[str, Any]] = {
    **LIBRARY_ARGUMENTS,
    "name": {"type": "str", "required": True},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["running", "stopped"], "default": "running"},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 1200},
}


def run(fleet: Fleet, params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """Bring the fleet to the wanted state; returns the module's result."""
    seen = fleet.look()
    before = seen["status"]
    changed = bool(fleet_request(params["state"], before))
    if check_mode:
        seen = {**seen, "status": WANTED[params["state"]] if changed else before}
    elif changed or before != WANTED[params["state"]]:
        fleet.request(params["state"], before)
        seen = fleet.wait(params["state"], params["wait_timeout"]) if params["wait"] else fleet.look()
    return {
        "changed": changed,
        "status": seen["status"],
        "last_status_updated_time": str(seen.get("lastStatusUpdatedTime") or ""),
        "diff": {"before": {"status": before}, "after": {"status": seen["status"] if changed else before}},
    }


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    name = module.params["name"]
    try:
        check_owner(describe_stack(module.client("cloudformation"), name), name, module.params["owner"])
        result = run(Fleet(library_of(module), name), module.params, module.check_mode)
    except TrainiumError as error:
        module.fail_json(msg=f"pcluster_compute_fleet {name}: {error}.", **error.details)
    finish(module, result)


if __name__ == "__main__":
    main()
