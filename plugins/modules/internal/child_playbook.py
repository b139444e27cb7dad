# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This is documentation only: the action plugin of the same name does the work on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: child_playbook
version_added: 0.3.0
short_description: Run a playbook as a program of its own, so that its failure can be caught
description:
  - Runs C(ansible-playbook) on the controller with the inventories, vaults and extra variables of this run, and
    O(variables) over them. What it says is shown as it comes, and is kept in O(log).
  - It is interrupted when this run ends, however that ends.
  - Reaches no host itself.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
attributes:
  check_mode:
    support: partial
    details: The playbook is skipped.
  idempotent:
    support: partial
    details: As the playbook is.
options:
  playbook:
    description: The playbook.
    type: path
    required: true
  variables:
    description: Extra variables, which come before those of this run.
    type: dict
    default: {}
  log:
    description: The file for what it says; one that is there is replaced.
    type: path
    required: true
  timeout:
    description: Seconds after which it is interrupted, as by Ctrl-C.
    type: int
    default: 3600
requirements:
  - timeout of the coreutils
"""

EXAMPLES = r"""
- name: Make the network
  trainium.cluster.internal.child_playbook:
    playbook: playbooks/network.yml
    variables: {trainium_cluster_name: prove}
    log: reports/prove/network.log
"""

RETURN = r"""
rc:
  description: The exit code of the playbook; 124 where it took too long.
  returned: always
  type: int
seconds:
  description: How long it took.
  returned: always
  type: float
"""
