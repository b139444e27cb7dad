#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: training_unit_info
version_added: 0.1.0
short_description: State and progress of a training that runs as a unit of systemd
description:
  - Asks systemd on the host for the unit of a training, and reads how it ended from its record and how far it is from
    its log, where the host has one.
  - With O(wait=true) it is asked again until the training has ended on this node, and the progress is shown meanwhile.
    Nodes that are followed at the same time with the same O(together) stop waiting when the training has failed on one.
  - The role P(trainium.cluster.training_job#role) starts such units where there is no Slurm.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
options:
  name:
    description: The unit, without C(.service).
    type: str
    required: true
  record:
    description: The JSON file that the unit writes at its end.
    type: path
    required: true
  log:
    description: The training's log, in the format of the Neuron BERT tutorial's script.
    type: path
  steps:
    description: How many steps the training is to do, to be shown beside those that it has done.
    type: int
  wait:
    description: Whether to wait until the training has ended.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait at most. The training goes on after that.
    type: int
    default: 604800
  together:
    description: A folder on the controller, in which the nodes of a training tell each other that it has failed.
    type: path
"""

EXAMPLES = r"""
- name: Follow the training until it has ended
  trainium.cluster.internal.training_unit_info:
    name: trainium-bert
    record: /opt/trainium/jobs/bert-0123456789ab/node.0.json
    log: /opt/trainium/jobs/bert-0123456789ab/train.log
    steps: 100
    wait: true
"""

RETURN = r"""
active:
  description: Whether the unit runs.
  returned: success
  type: bool
digest:
  description: Digest of the job that the unit runs, by its description; empty where it does not run.
  returned: success
  type: str
ended:
  description: Whether the training has run and ended, well or not.
  returned: success
  type: bool
succeeded:
  description: Whether it succeeded.
  returned: success
  type: bool
exit_code:
  description: Its exit code; V(-1) where it was ended before it could write it, or has not ended.
  returned: success
  type: int
phase:
  description: What it did last, V(compile) or V(train); empty before its end.
  returned: success
  type: str
restarts:
  description: How often it went on from a checkpoint by itself.
  returned: success
  type: int
started_at:
  description: When it started, in seconds since 1970; V(0) before its end.
  returned: success
  type: int
ended_at:
  description: When it ended, in seconds since 1970.
  returned: success
  type: int
given_up:
  description: Whether the waiting ended because the training failed on another node.
  returned: success
  type: bool
progress:
  description: The last step in the log with its loss and throughput; empty where there is none.
  returned: success
  type: dict
"""

import os
from contextlib import suppress

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record, tail
from ansible_collections.trainium.cluster.plugins.module_utils._training import unit as planner

TAIL = 16384  # bytes of the log that are read: a long training's log is large


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "record": {"type": "path", "required": True},
            "log": {"type": "path"},
            "steps": {"type": "int"},
            "wait": {"type": "bool", "default": False},
            "wait_timeout": {"type": "int", "default": 604800},
            "together": {"type": "path"},
        },
        supports_check_mode=True,
    )
    unit = f"{module.params['name']}.service"
    properties = "--property=ActiveState,Description"
    code, out, err = module.run_command(["systemctl", "show", properties, "--", unit])
    if code:
        reason = err.strip() or f"exit code {code}"
        module.fail_json(
            msg=f"training_unit_info: systemd does not answer for {unit} ({reason}); see the host's journal."
        )
    # Read after systemd was asked: a unit that has just ended has written it by then.
    record = read_record(module.params["record"])
    state = planner.state_of(out, record)
    said = ""
    # Only the first node has it.
    with suppress(OSError):
        said = tail(module.params["log"] or os.devnull, TAIL)
    module.exit_json(changed=False, given_up=False, progress=planner.progress(said), **state)


if __name__ == "__main__":
    main()
