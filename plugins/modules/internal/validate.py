#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This is documentation only: the action plugin of the same name does the work on the controller.

from __future__ import annotations

DOCUMENTATION = r"""
module: validate
version_added: 0.1.0
short_description: Refuse wrong values of a role's variables before anything is done
description:
  - Compares the variables of the role that it is a task of with the role's argument specs, and with a table of rules.
  - Works on the controller and asks no host and no service. Everything that is wrong is told at once.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
options:
  rules:
    description:
      - The table. Each rule has C(variable), C(kind), and what the kind takes.
      - With C(empty) an empty value may be so, with C(each) the rule is for the elements of a list. C(when) is a
        condition, C(value) takes the place of the variable's value.
      - C(wanted) is what the sentence advises, C(sentence) a whole sentence with C({variable}), C({value}),
        C({wanted}) and C({host}).
    type: list
    elements: dict
    default: []
  roles:
    description:
      - Roles of this collection whose variables are checked in one task, each by the table in its
        C(tasks/validate.yml), in place of those of the role that the task is of.
      - The play must know the roles' variables.
    type: list
    elements: str
    default: []
  late:
    description: Variables whose defaults need nodes or their facts; they are left out where these are not there yet.
    type: list
    elements: str
    default: []
  reserved:
    description:
      - Whether every variable that begins with the role's name is one of its own, so that any other is refused.
      - Otherwise only one is refused that nearly has the name of one of the role's, as a misspelled one has.
    type: bool
    default: false
  beside:
    description: Names that begin so and are none of the role's options, such as facts.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Refuse values that cannot work
  trainium.cluster.internal.validate:
    rules:
      - {variable: slurm_memory_percent, kind: whole, minimum: 1, maximum: 100}
      - {variable: slurm_prolog, kind: scripts}
    late: [slurm_controller]
"""

RETURN = r"""
refused:
  description: A sentence for each value that is refused.
  returned: always
  type: list
  elements: str
  sample: ["slurm_memory_percent is '0'; use a whole number from 1 to 100."]
"""
