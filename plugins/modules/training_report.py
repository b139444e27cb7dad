#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: training_report
version_added: 0.1.0
short_description: Report of a training from its log
description:
  - Reads every step from a training's log and writes C(metrics.json), C(metrics.csv), an event file for TensorBoard,
    and C(report.html), one page with the curves of loss, throughput and learning rate that needs nothing else.
  - A step that was done again after a restart counts once, the later one.
  - Reaches no network. The same log and report give the same bytes.
extends_documentation_fragment:
  - trainium.cluster.attributes
options:
  directory:
    description: The folder on the host for the files. It is made where there is none.
    type: path
    required: true
  logs:
    description:
      - The log on the host; several in the order of time. Steps are read from lines of Neuron's BERT script, NeuronX
        Distributed, NeMo, Optimum Neuron and the Hugging Face Trainer.
    type: list
    elements: path
    required: true
  report:
    description:
      - What is known beside the log, as C(report.json) of the role P(trainium.cluster.training_job#role) has it -
        C(name), C(job_id), C(launcher), C(state), C(nodes), C(processes), C(steps_wanted), C(restarts), C(started_at)
        and C(ended_at) in seconds since 1970, C(node_details) and C(versions).
      - What is missing is read from the log where that has it, and left out where not.
    type: dict
    default: {}
  price_per_hour:
    description:
      - US dollars an hour by instance type, for the estimate of the cost. Empty means that no cost is shown.
      - The collection knows no prices, since they differ by region, contract and time.
    type: dict
    default: {}
  running:
    description: Whether the training goes on, so that these are figures of the time between.
    type: bool
    default: false
seealso:
  - plugin: trainium.cluster.training_report
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Write the report of a training
  trainium.cluster.training_report:
    directory: reports
    logs: [reports/bert.log]
    report: "{{ lookup('ansible.builtin.file', 'reports/report.json') | from_json }}"
    price_per_hour:
      trn1.32xlarge: 21.5
  delegate_to: localhost
"""

RETURN = r"""
files:
  description: The files by kind.
  returned: success
  type: dict
  contains:
    html:
      description: The page.
      type: str
      sample: reports/report.html
    json:
      description: All figures, one line a step.
      type: str
      sample: reports/metrics.json
    csv:
      description: The steps.
      type: str
      sample: reports/metrics.csv
    events:
      description: The event file for TensorBoard.
      type: str
      sample: reports/tensorboard/bert/events.out.tfevents.1671583861.12.trainium
summary:
  description: The figures of the whole training, as in C(metrics.json). What is no number is null.
  returned: success
  type: dict
  sample:
    steps: 100
    initial_loss: 8.31
    final_loss: 6.47
    throughput: 155.2
    restarts: 0
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.run import write_report


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "logs": {"type": "list", "elements": "path", "required": True},
            "report": {"type": "dict", "default": {}},
            "price_per_hour": {"type": "dict", "default": {}},
            "running": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        result = write_report(module.params, module.check_mode)
    except TrainiumError as error:
        module.fail_json(msg=f"training_report: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
