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
  checksum:
    description: The logs that have at most as many bytes are read for their checksum.
    type: int
    default: 0
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
"""

RETURN = r"""
trainings:
  description:
    - The trainings, the newest first, each with the name and path of its folder and the path of its log.
    - C(log_here) says whether this host has the log, which without shared storage is on the job's first node,
      C(batch_host). C(events) says whether its script may write TensorBoard events of its own, below C(tensorboard).
    - C(job_id) is Slurm's number, 0 where there is none, and C(state) its state of the job, V(COMPLETED) where there is
      a report. C(report) is C(report.json), or without one as much of it as is known, as is C(progress).
    - C(log_checksum) is SHA-256 of the log; empty where it is not here, has more bytes than O(checksum), or is no file.
    - C(line) says all this in one line.
  returned: success
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._training.run_jobs import checksum, trainings


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "name": {"type": "str", "default": ""},
            "folder": {"type": "str", "default": ""},
            "limit": {"type": "int", "default": 10},
            "checksum": {"type": "int", "default": 0},
            "known": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        found = trainings(params["directory"], params["name"], params["folder"], params["limit"], params["known"] or {})
    except TrainiumError as error:
        module.fail_json(msg=f"training_job_info: {error}", **error.details)
    for training in found:
        training["log_checksum"] = checksum(training["log"], params["checksum"]) if training["log_here"] else ""
    module.exit_json(changed=False, trainings=found)


if __name__ == "__main__":
    main()
