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
  - A job that the controller has forgotten is looked up in accounting, or in the controller's list of completed jobs,
    where the cluster has them.
  - With O(wait=true) it is asked again until the job has ended, and the progress is shown meanwhile.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
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
job_id:
  description: The job.
  returned: success
  type: int
  sample: 12
state:
  description: Slurm's state of the job, V(UNKNOWN) where it is forgotten. Of an array, the one that stands for all.
  returned: success
  type: str
  sample: COMPLETED
tasks:
  description: How many tasks of an array are in each state; empty for other jobs.
  returned: success
  type: dict
  sample: {}
ended:
  description: Whether the job has ended, well or not. One whose dependency can never be satisfied has.
  returned: success
  type: bool
  sample: true
succeeded:
  description: Whether it succeeded.
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
node_exit_codes:
  description: After a failure, what failed where, by srun's lines in the log or by the steps in accounting.
  returned: success
  type: list
  elements: dict
  sample: [{"node": "ip-192-0-2-5", "task": 0, "exit_code": 3}]
nodes:
  description: The job's nodes as a hostlist.
  returned: success
  type: str
  sample: ip-192-0-2-[5-6]
batch_host:
  description: The node that the batch script runs on; empty before the job has started.
  returned: success
  type: str
  sample: ip-192-0-2-5
restarts:
  description: How many times the job was put back into the queue.
  returned: success
  type: int
  sample: 0
requeue_reason:
  description: Why, the last time, as far as it is known.
  returned: success
  type: str
  sample: ""
started_at:
  description: When the job started, the last time, in seconds since 1970; none before it has.
  returned: success
  type: int
  sample: 1795277100
ended_at:
  description: When it ended; none as long as it goes on.
  returned: success
  type: int
  sample: 1795277200
progress:
  description: The last step in the log with its loss and throughput, and the seconds left; empty where there is none.
  returned: success
  type: dict
  sample: {"step": 14, "steps": 100, "loss": 10.7, "throughput": 6449.36, "seconds_left": 86}
last_lines:
  description: The end of the log, without what torchrun adds after a failure.
  returned: success
  type: list
  elements: str
  sample: []
name:
  description: The job's name.
  returned: success
  type: str
  sample: bert
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.arguments import SLURM_JOB_INFO
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.look import look, shown


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
