# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This is documentation only: the action plugin of the same name does the work on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: node_ready
version_added: 0.1.0
short_description: Gather facts from a node as soon as it answers
description:
  - Does what M(ansible.builtin.wait_for_connection) and M(ansible.builtin.setup) do one after the other, with one way
    to the node. A node that was just launched needs a while until it answers; one that runs costs nothing more.
  - While it waits it says so every ten seconds.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
options:
  gather_subset:
    description: The facts to gather, as for M(ansible.builtin.setup).
    type: list
    elements: str
    default: [all]
  timeout:
    description: Seconds after which a node that does not answer is unreachable.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Wait for the nodes
  trainium.cluster.internal.node_ready:
    gather_subset: ["!all", "!min", distribution]
    timeout: 300
"""

RETURN = r"""
ansible_facts:
  description: What M(ansible.builtin.setup) returns.
  returned: success
  type: dict
waited:
  description: Seconds until the node had answered.
  returned: success
  type: float
"""
