#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_job_info
version_added: 0.1.0
short_description: State and progress of a Slurm job
description:
  - Asks Slurm on the host for a job, and reads how far it is from its log where the host has the log.
  - With O(wait=true) it is asked again until the job has ended, and the progress is shown meanwhile.
author:
  - The trainium.cluster founders (@trainium)
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
options:
  job_id:
    description: The job.
    type: int
    required: true
  log:
    description: The job's log, in the format of the Neuron BERT tutorial's script.
    type: path
  steps:
    description: How many steps the job is to do, to be shown beside those that it has done.
    type: int
  wait:
    description: Whether to wait until the job has ended.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait at most. The job goes on after that.
    type: int
    default: 604800
"""

EXAMPLES = r"""
- name: Follow the job until it has ended
  trainium.cluster.slurm_job_info:
    job_id: 12
    log: /opt/trainium/jobs/bert/train.log
    steps: 100
    wait: true
  register: job

- name: Show how it ended
  ansible.builtin.debug:
    msg: "{{ job.state }} on {{ job.batch_host }}"
"""

RETURN = r"""
state:
  description: Slurm's state of the job, such as V(PENDING), V(RUNNING), V(COMPLETED) or V(FAILED). V(UNKNOWN) where
    Slurm has forgotten it.
  returned: success
  type: str
  sample: COMPLETED
ended:
  description: Whether the job has ended, well or not.
  returned: success
  type: bool
  sample: true
reason:
  description: Why the job waits or failed, as Slurm says it.
  returned: success
  type: str
  sample: None
exit_code:
  description: Exit code and signal as Slurm shows them.
  returned: success
  type: str
  sample: "0:0"
batch_host:
  description: The node that the batch script runs on; empty before the job has started.
  returned: success
  type: str
  sample: ip-192-0-2-5
nodes:
  description: The job's nodes as a hostlist.
  returned: success
  type: str
  sample: ip-192-0-2-[5-6]
progress:
  description: The last step in the log with its loss and throughput; empty where there is none.
  returned: success
  type: dict
  sample: {"step": 14, "loss": 10.7, "throughput": 6449.36}
last_lines:
  description: The end of the log.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._runners.slurm_job import look, shown
from ansible_collections.trainium.cluster.plugins.module_utils._slurm_arguments import SLURM_JOB_INFO


def main() -> None:
    module = AnsibleModule(argument_spec=SLURM_JOB_INFO, supports_check_mode=True)
    job_id = module.params["job_id"]
    if job_id < 1:
        module.fail_json(msg=f"slurm_job_info: job_id is {job_id}; give the number that sbatch printed.")
    try:
        job = look(job_id, module.params["log"] or "", module.params["steps"])
    except TrainiumError as error:
        module.fail_json(msg=f"slurm_job_info: {error}", **error.details)
    module.exit_json(changed=False, **shown(job))


if __name__ == "__main__":
    main()
