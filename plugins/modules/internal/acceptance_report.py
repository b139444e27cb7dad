# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This is documentation only: the action plugin of the same name does the work on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: acceptance_report
version_added: 0.1.0
short_description: Report on the screen and in a file which nodes of a cluster can train
description:
  - Shows one line for each node and one for each failure, and keeps a report in JSON on the controller.
  - The file is written when a verdict changes, not when free space or a measured figure does.
  - Reaches no host.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
options:
  path:
    description: The file on the controller.
    type: path
    required: true
  nodes:
    description: What M(trainium.cluster.internal.node_check) returned for each node.
    type: list
    elements: dict
    required: true
  gate:
    description: What M(trainium.cluster.internal.slurm_drain) returned.
    type: dict
    required: true
  outcome:
    description: Exit code and output of the collective test - C(rc), C(stdout), C(stderr) - where it was run.
    type: dict
    default: {}
  collective_minimum:
    description: The least bus bandwidth, in GB/s.
    type: float
    default: 0.0
  ranks:
    description: The number of processes of the collective test, to be shown.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Report
  trainium.cluster.internal.acceptance_report:
    path: reports/acceptance.json
    nodes: "{{ groups['compute'] | map('extract', hostvars, 'node') }}"
    gate: "{{ gate }}"
  run_once: true
"""

RETURN = r"""
collective:
  description: The result of the collective test. C(skipped) says why there is none.
  returned: success
  type: dict
  sample: {"kind": "gloo", "passed": true, "bus_bandwidth": 1.2, "nodes": ["ip-192-0-2-5"], "ranks": 1}
lines:
  description: What was shown.
  returned: success
  type: list
  elements: str
"""
