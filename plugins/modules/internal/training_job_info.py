#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: training_job_info
version_added: 0.1.0
short_description: The trainings of a host, with their progress
description:
  - Reads the folders that the role P(trainium.cluster.training_job#role) has made on the host, and asks Slurm for the
    trainings that have no report yet.
  - Also works where there is no Slurm, and says then what the logs say.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
options:
  directory:
    description: The role's C(training_job_directory).
    type: path
    required: true
  name:
    description: Only the trainings of this name; empty for all.
    type: str
    default: ""
  folder:
    description: Only the training with this folder, a name in C(jobs) of O(directory).
    type: str
    default: ""
  limit:
    description: How many trainings at most, the newest.
    type: int
    default: 10
  known:
    description: The number of Slurm's job by folder, for a host that has a training's log and does not know its number.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Look at the newest training
  trainium.cluster.internal.training_job_info:
    directory: /opt/trainium
    limit: 1
  register: found

- name: Show how far it is
  ansible.builtin.debug:
    msg: "{{ found.trainings | map(attribute='line') }}"
"""

RETURN = r"""
trainings:
  description: The trainings, the newest first.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The training's name.
      type: str
    folder:
      description: Name of its folder.
      type: str
    path:
      description: Path of its folder.
      type: str
    log:
      description: Path of its log.
      type: str
    log_here:
      description: Whether this host has the log. Without shared storage it is on the job's first node.
      type: bool
    events:
      description: Whether its script may write TensorBoard events of its own, below C(tensorboard) in its folder.
      type: bool
    job_id:
      description: The number that Slurm gave it; 0 where there is none.
      type: int
    running:
      description: Whether it has not ended.
      type: bool
    state:
      description: Slurm's state of the job; V(COMPLETED) where there is a report.
      type: str
    batch_host:
      description: The job's first node; empty before it has started.
      type: str
    progress:
      description: C(step), C(steps), C(loss), C(throughput) and C(seconds_left), as far as they are known.
      type: dict
    report:
      description: Its C(report.json), or without one as much of it as is known.
      type: dict
    line:
      description: All this in one line.
      type: str
  sample:
    - name: bert
      folder: bert-0123456789ab
      job_id: 12
      running: true
      state: RUNNING
      line: "bert: job 12 RUNNING on n[1-2]: step 14 of 100, loss 10.70, 6449.4 examples/s, about 3 min left"
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._training.run_jobs import trainings


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "name": {"type": "str", "default": ""},
            "folder": {"type": "str", "default": ""},
            "limit": {"type": "int", "default": 10},
            "known": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        found = trainings(params["directory"], params["name"], params["folder"], params["limit"], params["known"] or {})
    except TrainiumError as error:
        module.fail_json(msg=f"training_job_info: {error}", **error.details)
    module.exit_json(changed=False, trainings=found)


if __name__ == "__main__":
    main()
