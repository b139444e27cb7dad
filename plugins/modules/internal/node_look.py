#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_look
version_added: 0.3.0
short_description: Ask a node for what several roles decide by, and say which of them have something to do
description:
  - Asks in one call what each of O(roles) would ask by M(trainium.cluster.internal.etc_hosts) in check mode,
    M(trainium.cluster.internal.node_info) and M(trainium.cluster.internal.service_info), and changes nothing.
  - A role that has nothing to do need not be run then.
  - With O(roles) the arguments come from the roles' variables, which must be known in the play. C(__<role>_look) is
    what is asked for, C(__<role>_due) is evaluated with the answer in the place where the role itself would have it.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
options:
  roles:
    description:
      - Roles of this collection, in the order in which they would be run; of V(cluster_hosts), V(shared_storage),
        V(efa), V(neuron), V(neuron_venv) and V(slurm).
      - The play must have imported their variables, as the example does.
    type: list
    elements: str
    default: []
  hosts:
    description: By name, the options of M(trainium.cluster.internal.etc_hosts). O(roles) sets it.
    type: dict
    default: {}
  software:
    description: By name, the options of M(trainium.cluster.internal.node_info). O(roles) sets it.
    type: dict
    default: {}
  services:
    description: By name, the options of M(trainium.cluster.internal.service_info). O(roles) sets it.
    type: dict
    default: {}
seealso:
  - module: trainium.cluster.internal.node_info
  - module: trainium.cluster.internal.service_info
"""

EXAMPLES = r"""
- name: Know the variables of trainium, to which those of other roles refer
  ansible.builtin.import_role:
    name: trainium.cluster.trainium
    tasks_from: variables

- name: Know the variables of efa
  ansible.builtin.import_role:
    name: trainium.cluster.efa
    tasks_from: variables

- name: Know the variables of neuron
  ansible.builtin.import_role:
    name: trainium.cluster.neuron
    tasks_from: variables

- name: Ask the node which of the two have something to do
  trainium.cluster.internal.node_look:
    roles: [efa, neuron]
  register: look

- name: Configure EFA
  ansible.builtin.include_role:
    name: trainium.cluster.efa
  when: "'efa' in look.due"
"""

RETURN = r"""
due:
  description: Those of O(roles) that have something to do on the node, or something to refuse or to show.
  returned: O(roles) is given
  type: list
  elements: str
  sample: [efa]
kept:
  description: What comparing nodes with each other needs, by the names of the roles' variables. Empty
    without V(slurm).
  returned: O(roles) is given
  type: dict
  sample: {"__slurm_devices": "16"}
found:
  description: The answers of the modules by the names under which they were asked for.
  returned: O(roles) is not given
  type: dict
  sample: {"efa": {"python": "3.12"}}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.look import HOSTS, look
from ansible_collections.trainium.cluster.plugins.module_utils._node.service_state import SERVICES, service_state
from ansible_collections.trainium.cluster.plugins.module_utils._node.software import SOFTWARE, hardware, software


def _checked(module: AnsibleModule, option: str, spec: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Name -> the options in their types, with defaults."""
    checked = {}
    for name, options in module.params[option].items():
        result = ArgumentSpecValidator(spec).validate(options)
        if result.error_messages:
            module.fail_json(msg=f"{option} has for {name} what cannot be asked for: {result.error_messages[0]}.")
        checked[name] = result.validated_parameters
    return checked


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "roles": {"type": "list", "elements": "str", "default": []},
            "hosts": {"type": "dict", "default": {}},
            "software": {"type": "dict", "default": {}},
            "services": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    found = {name: look(module, options).result for name, options in _checked(module, "hosts", HOSTS).items()}
    wanted = _checked(module, "software", SOFTWARE)
    common = hardware(module) if wanted else {}
    found.update({name: {**common, **software(module, options)} for name, options in wanted.items()})
    services = _checked(module, "services", SERVICES)
    found.update({name: service_state(module, options) for name, options in services.items()})
    module.exit_json(changed=False, found=found)


if __name__ == "__main__":
    main()
