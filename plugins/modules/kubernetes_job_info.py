#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_job_info
version_added: 0.1.0
short_description: State, progress and logs of a training on Kubernetes
description:
  - Asks the API server for the Jobs of a training, or its job of Volcano, their pods and events, and reads the log of
    rank 0, whose pod is known by its name.
  - With O(wait=true) it is asked again until the training has ended, and the progress is shown meanwhile.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.kubernetes
options:
  name:
    description: What all objects of the training are called. Without it, RV(trainings) tells of all of the namespace.
    type: str
  logs:
    description:
      - A folder on the controller for the logs of all ranks, C(rank-0.log) and so on. Those of a training that goes on
        are not brought, but that of rank 0.
    type: path
seealso:
  - module: trainium.cluster.kubernetes_job
"""

EXAMPLES = r"""
- name: Bring the logs of a training
  trainium.cluster.kubernetes_job_info:
    name: bert-0123456789ab
    logs: reports/logs/bert
  delegate_to: localhost
  register: training

- name: Show what it waits for
  ansible.builtin.debug:
    msg: "{{ training.state }}: {{ training.reason }}"
"""

RETURN = r"""
job_id:
  description: The O(name).
  returned: success
  type: str
  sample: bert-0123456789ab
state:
  description: V(PENDING), V(RUNNING), V(COMPLETED), V(FAILED), V(CANCELLED), or V(ABSENT) where there is none.
  returned: success
  type: str
  sample: RUNNING
ended:
  description: Whether it has ended, or can never start.
  returned: success
  type: bool
  sample: false
succeeded:
  description: Whether it succeeded.
  returned: success
  type: bool
  sample: false
cannot_start:
  description: Whether it waits for what never comes, such as an image that does not exist, and no pod of it ever ran.
  returned: success
  type: bool
  sample: false
stuck:
  description:
    - Whether a pod of it waits for what never comes, while others run or ran. O(wait=true) does not wait for that.
  returned: success
  type: bool
  sample: false
reason:
  description: What it waits for, in the words of Kubernetes, or why it failed; empty for nothing.
  returned: success
  type: str
  sample: "bert-0123456789ab-1: 0/2 nodes are available: 2 Insufficient aws.amazon.com/neuron"
remedy:
  description: What to do about it, where it is a known fault.
  returned: success
  type: str
  sample: Wait until another job ends.
launcher:
  description: V(torchx) for a job of Volcano, V(kubernetes) for plain Jobs; empty where there is none.
  returned: success
  type: str
  sample: torchx
node_count:
  description: How many nodes it is to have.
  returned: success
  type: int
  sample: 2
process_count:
  description: How many processes it is to have on all of them; V(0) for plain Jobs, of which the log says it.
  returned: success
  type: int
  sample: 64
nodes:
  description: Its nodes, with commas between them; empty while it waits.
  returned: success
  type: str
  sample: ip-192-0-2-5.us-west-2.compute.internal
pods:
  description: The newest pod of each rank.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
    rank:
      description: Its rank.
      type: int
    node:
      description: Its node; empty before it has one.
      type: str
    phase:
      description: Its phase.
      type: str
restarts:
  description: How often the training has started again, as far as the read log says.
  returned: success
  type: int
  sample: 0
requeue_reason:
  description: Why it has started again the last time.
  returned: success
  type: str
  sample: a node's part runs in another pod now
node_exit_codes:
  description: Nodes, ranks (C(task)) and exit codes of parts that failed.
  returned: success
  type: list
  elements: dict
  sample: []
progress:
  description: C(step), C(steps), C(loss), C(throughput) and C(seconds_left), as far as they are known.
  returned: success
  type: dict
  sample: {"step": 14, "steps": 100, "loss": 10.7, "throughput": 6449.36, "seconds_left": 180}
last_lines:
  description: The end of the log of rank 0.
  returned: success
  type: list
  elements: str
  sample: []
note:
  description: What the pod of a dataset last said of its progress; empty for others.
  returned: success
  type: str
  sample: fetching 12.3 GiB of 48.0 GiB (25%), 512.0 MiB/s, 1 min 11 s left
started_at:
  description: When the first of its pods started, in seconds since 1970.
  returned: success
  type: int
  sample: 1795277100
ended_at:
  description: When it ended.
  returned: success
  type: int
  sample: 1795277200
trainings:
  description: All trainings, the newest first, each with the values above and C(line), all of it in one line.
  returned: without O(name)
  type: list
  elements: dict
  sample: []
warned:
  description: What the namespace's events warn of, C(time) and C(message) each.
  returned: without O(name)
  type: list
  elements: dict
  sample: []
cluster_nodes:
  description: The Trainium nodes of the cluster, from one call; empty where the user may not list nodes.
  returned: without O(name)
  type: list
  elements: dict
  contains:
    name:
      description: Its name in Kubernetes.
      type: str
    instance_type:
      description: Its type.
      type: str
    ready:
      description: Whether it answers.
      type: bool
    unschedulable:
      description: Whether it is closed to new pods.
      type: bool
    neuron_devices:
      description: How many Neuron devices its plugin offers.
      type: int
    efa_interfaces:
      description: How many EFA interfaces its plugin offers.
      type: int
    complete:
      description: Whether these are all that its type has.
      type: bool
told:
  description:
    - What there is to say of the nodes, of Volcano's queues, and of pods in C(kube-system) and C(volcano-system),
      C(line) and C(remedy) each; a queue that is open and pods that run are not told of, nor is what the user may not
      see.
  returned: without O(name)
  type: list
  elements: dict
  sample: [{"line": "Nodes of Kubernetes do not answer: ip-192-0-2-5.ec2.internal", "remedy": "Wait"}]
saved:
  description: The logs that were written.
  returned: success
  type: list
  elements: str
  sample: [reports/logs/bert/rank-0.log]
"""

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import run as runner
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.arguments import KUBERNETES_JOB_INFO
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.calls import Api


def main() -> None:
    needed = [("wait", True, ["name"])]
    module = AnsibleModule(argument_spec=KUBERNETES_JOB_INFO, required_if=needed, supports_check_mode=True)
    options = module.params
    try:
        api = Api(options["kubeconfig"], options["context"], options["namespace"])
        if not options["name"]:
            module.exit_json(changed=False, **runner.look_at_all(api))
        seen = runner.look(api, options["name"], options["steps"], success=options["success"])
        saved = runner.save_logs(api, options["name"], options["logs"], seen["ended"]) if options["logs"] else []
    except ImportError:
        module.fail_json(msg=missing_required_lib("kubernetes"))
    except TrainiumError as error:
        module.fail_json(msg=f"kubernetes_job_info: {error}", **error.details)
    module.exit_json(changed=False, saved=saved, **seen)


if __name__ == "__main__":
    main()
