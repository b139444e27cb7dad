#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_job
version_added: 0.1.0
short_description: Submit, follow and cancel a Slurm job
description:
  - Submits a batch script that lies on the host, unless an identical job waits, runs or has succeeded. Jobs are
    identical that have the same O(name), script, arguments and options; what a job waits for (O(dependency)) and where
    its script lies does not count.
  - A job is known again by its digest, which travels in its comment, in accounting where the cluster has it, and in a
    record on the host. A run that was killed right after C(sbatch) therefore does not submit a second job.
  - With O(wait=true) the job is followed until it has ended, with state, step, loss, throughput and time left on the
    screen. The job goes on where Ansible is killed, and the next run follows the same job. A job that Slurm puts back
    into the queue is followed as well.
  - The job's environment is that of a login and O(environment), without the variables of Ansible's session. It has
    E(TRAINIUM_END_FILE) as well, where a script may write its job's number and exit code at its end, such as C(12 0);
    this tells how it ended where Slurm has forgotten it and there is no accounting.
  - Where there is a job, all that M(trainium.cluster.slurm_job_info) tells of it is returned as well.
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  check_mode:
    details: Asks C(sbatch --test-only) whether Slurm would take the job.
  idempotent:
    details: Not with O(resubmit=always).
options:
  name:
    description: The job's name.
    type: str
    required: true
  script:
    description: The batch script on the host. Needed for O(state=present).
    type: path
  state:
    description:
      - V(present) submits the job.
      - V(absent) cancels the jobs of this name that this module has submitted for the same user, whatever their script
        and options. Where O(record) is given, only the one that is remembered there.
    type: str
    choices: [present, absent]
    default: present
  record:
    description:
      - A JSON file on the host, in which the job is remembered.
      - By default in C(~/.local/state/trainium/jobs), named after the job and its digest.
    type: path
  identity:
    description: More that tells this job from others, such as a digest of the files that its script uses.
    type: str
    default: ""
  args:
    description: Arguments of the script.
    type: list
    elements: str
    default: []
  partition:
    description: The partition, or several with commas between them.
    type: str
  nodes:
    description: How many nodes, such as V(2), or from how many to how many, such as V(1-2).
    type: str
  ntasks_per_node:
    description: How many tasks Slurm starts on each node.
    type: int
  exclusive:
    description: Whether the job shares its nodes with no other.
    type: bool
    default: false
  time_limit:
    description: How long the job may run, such as V(90) (minutes), V(2:00:00), V(1-12:00:00) or V(UNLIMITED).
    type: str
  account:
    description: The account that pays.
    type: str
  qos:
    description: The quality of service.
    type: str
  requeue:
    description: Whether Slurm puts the job back into the queue when a node fails. By default as the cluster is set up.
    type: bool
  dependency:
    description:
      - What the job waits for; all of it. A job whose dependency can never be satisfied is cancelled by Slurm.
    type: list
    elements: dict
    default: []
    suboptions:
      type:
        description: What has to happen to the jobs. V(afterok) is that they end well.
        type: str
        choices: [after, afterany, afterok, afternotok, aftercorr, singleton]
        default: afterok
      job_ids:
        description: The jobs; none for V(singleton).
        type: list
        elements: int
        default: []
  array:
    description: Makes the job an array, such as V(0-3) or V(1,5%1).
    type: str
  output:
    description: The file for what the job prints, with Slurm's patterns such as C(%j). By default Slurm's own choice.
    type: str
  open_mode:
    description: Whether O(output) is emptied when the job starts. A job that goes on after a requeue should append.
    type: str
    choices: [append, truncate]
  chdir:
    description: The folder in which the script starts. By default C(/tmp), which every node has.
    type: path
    default: /tmp
  environment:
    description: Variables of the job's environment, none of Slurm's own.
    type: dict
    default: {}
  resubmit:
    description:
      - Whether to submit where there is an identical job that has ended.
      - V(failed) submits again after one that did not end well.
    type: str
    choices: [failed, never, always]
    default: failed
  wait:
    description: Whether to wait until the job has ended. A job that ended otherwise than well is a failure then.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait at most. The job goes on after that.
    type: int
    default: 604800
  log:
    description:
      - The job's log, to read its progress from. By default O(output), unless its name has patterns of nodes or tasks.
    type: path
  steps:
    description: How many steps the job is to do, to be shown beside those that it has done.
    type: int
requirements:
  - Slurm's commands on the host
seealso:
  - module: trainium.cluster.slurm_job_info
"""

EXAMPLES = r"""
- name: Compile
  trainium.cluster.slurm_job:
    name: bert-compile
    script: /fsx/jobs/bert/compile.batch
    nodes: "1"
    exclusive: true
    output: /fsx/jobs/bert/compile.log
  register: compile

- name: Train, if compiling succeeded, and follow it
  trainium.cluster.slurm_job:
    name: bert
    script: /fsx/jobs/bert/train.batch
    nodes: 3-4
    exclusive: true
    time_limit: 2-00:00:00
    requeue: true
    open_mode: append
    output: /fsx/jobs/bert/train.log
    dependency:
      - type: afterok
        job_ids: ["{{ compile.job_id }}"]
    steps: 28125
    wait: true
  register: job

- name: Cancel it
  trainium.cluster.slurm_job:
    name: bert
    state: absent
    wait: true
"""

RETURN = r"""
job_id:
  description: The job's number. 0 in check mode for a job that would be submitted, and where nothing was cancelled.
  returned: success
  type: int
  sample: 12
submitted:
  description: Whether this run has submitted the job.
  returned: O(state=present)
  type: bool
  sample: true
cancelled:
  description: The jobs that were cancelled.
  returned: O(state=absent)
  type: list
  elements: int
  sample: [12]
digest:
  description: What an identical job is known by.
  returned: O(state=present)
  type: str
  sample: 0f1e2d3c4b5a6978
record:
  description: The file in which the job is remembered.
  returned: O(state=present)
  type: str
  sample: /home/ubuntu/.local/state/trainium/jobs/bert-0f1e2d3c4b5a6978.json
command:
  description: The command that submits the job.
  returned: O(state=present)
  type: list
  elements: str
  sample: [sbatch, --comment=trainium:0f1e2d3c4b5a6978, --job-name=bert, /fsx/jobs/bert/train.batch]
foreseen:
  description: What C(sbatch --test-only) said.
  returned: check mode, where the job would be submitted
  type: str
  sample: Job 13 to start at 2026-11-21T16:05:01 using 4 processors on nodes ip-192-0-2-[5-6] in partition compute
log:
  description: The log that is followed; empty for none.
  returned: O(state=present)
  type: str
  sample: /fsx/jobs/bert/train.log
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import run as runner
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import submit as plan
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.arguments import SLURM_JOB


def lines(jobs: list[dict[str, Any]]) -> str:
    """For diff mode, a line for each job."""
    return "".join(f"job {job['job_id']} {job['state']}\n" for job in jobs)


def submit(module: AnsibleModule) -> dict[str, Any]:
    options = module.params
    plan.sbatch_arguments(options)
    content = runner.read_script(options["script"], module.check_mode)
    if module.check_mode and (content is None or not runner.slurm.installed()):
        # Neither need be there yet.
        plan.command(options, "")
        result: dict[str, Any] = {"submitted": True, "before": None, "command": [], "digest": "", "record": ""}
    else:
        result = runner.present(options, content or b"", module.check_mode)
    before = result.pop("before")
    submitted = result["submitted"]
    job_id = result.setdefault("job_id", 0)
    result["log"] = plan.log_path(options, job_id) if job_id else ""
    told = lines([before] if before else [])
    after = told + " ".join(result["command"]) + "\n" if submitted else told
    return {**result, "changed": submitted, "diff": {"before": told, "after": after}}


def cancel(module: AnsibleModule) -> dict[str, Any]:
    result = runner.absent(module.params, module.check_mode)
    cancelled = result["cancelled"]
    after = "".join(f"job {number} CANCELLED\n" for number in cancelled)
    diff = {"before": lines(result.pop("before")), "after": after}
    return {**result, "job_id": max(cancelled, default=0), "changed": bool(cancelled), "diff": diff}


def main() -> None:
    module = AnsibleModule(
        argument_spec=SLURM_JOB, required_if=[("state", "present", ["script"])], supports_check_mode=True
    )
    # A file of another user is no business of ours, and Slurm wants to know where it is.
    os.umask(0o022)
    try:
        result = submit(module) if module.params["state"] == "present" else cancel(module)
    except ValueError as error:
        module.fail_json(msg=f"slurm_job: {error}")
    except TrainiumError as error:
        module.fail_json(msg=f"slurm_job: {error}", **error.details)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
