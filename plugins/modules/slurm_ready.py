#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_ready
version_added: 0.1.0
short_description: Wait until the nodes of a Slurm cluster take jobs
description:
  - Asks Slurm for its nodes until each takes jobs, and shows meanwhile how many do and which is waited for.
  - A node of ParallelCluster that comes with a job and goes after it is not waited for, nor is one that somebody
    drained.
  - A node that is always there and that Slurm has as powered down or on its way does not count, since ParallelCluster
    replaces it while its compute fleet starts, and a job on it would be lost.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
attributes:
  check_mode:
    details: Looks once, and does not fail for a node that does not take jobs.
options:
  partition:
    description: The partition whose nodes are meant. The default is all.
    type: str
    default: ""
  require:
    description:
      - Which nodes must take jobs at the end of the time. With V(any) it is a failure only that none does.
    type: str
    choices: [all, any]
    default: all
  timeout:
    description: Seconds to wait at most; V(0) looks once.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Wait until the nodes of the partition take jobs
  trainium.cluster.slurm_ready:
    partition: trn1
    timeout: 600
"""

RETURN = r"""
ready:
  description: The nodes that take jobs.
  returned: success
  type: list
  elements: str
  sample: [ip-192-0-2-10]
awaited:
  description: The nodes that are to be there and do not take jobs, each with its state and the reason of it.
  returned: success
  type: list
  elements: str
  sample: ["ip-192-0-2-11 (down*, Not responding)"]
drained:
  description: The nodes that somebody drained, each with the state and the reason.
  returned: success
  type: list
  elements: str
  sample: []
text:
  description: The same in a sentence.
  returned: success
  type: str
  sample: 1 of 2 nodes take jobs, waiting for ip-192-0-2-11 (down*, Not responding)
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls as slurm
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.arguments import SLURM_READY
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import described, readiness


def main() -> None:
    module = AnsibleModule(argument_spec=SLURM_READY, supports_check_mode=True)
    try:
        nodes = slurm.nodes(module.params["partition"])
    except TrainiumError as error:
        module.fail_json(msg=f"slurm_ready: {error}", **error.details)
    module.exit_json(
        changed=False,
        ready=[name for name, node in nodes.items() if node.takes_jobs],
        awaited=[described(name, node) for name, node in nodes.items() if node.awaited],
        drained=[described(name, node) for name, node in nodes.items() if node.drained and not node.awaited],
        text=readiness(nodes),
    )


if __name__ == "__main__":
    main()
