#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_look
version_added: 0.3.0
short_description: Ask a node for what several roles decide by, and say which of them have something to do
description:
  - Asks in one call for everything that roles of this collection decide by, and changes nothing. Tools that are not
    installed are no error; what they would say is empty then.
  - With O(roles) it says which of them have something to do; a role that has nothing to do need not be run then. With
    O(role) it returns what one role asks for, and without either of them the answers to O(hosts), O(software) and
    O(services).
  - With O(roles) and O(role) the arguments come from the roles' variables, which must be known in the play.
    C(__<role>_look) is what is asked for, C(__<role>_due) is evaluated with the answer in the place where the role
    itself would have it.
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
  role:
    description: The role that asks, of V(efa), V(neuron), V(neuron_venv), V(slurm) and V(monitoring).
    type: str
  hosts:
    description: By name, the options of M(trainium.cluster.internal.etc_hosts), which is asked as in check mode.
    type: dict
    default: {}
  software:
    description:
      - By name, what is wanted of the packages of Neuron and EFA; its hardware a node tells in any case.
      - C(packages), by dpkg or rpm, with their versions. C(files) to compare with what they should hold. C(space),
        folders whose free space is wanted, of one that is not there that of the nearest folder above it.
        C(environment), the folder of a Python virtual environment. C(apt_repositories), by their URI, whose entries
        in apt's sources are wanted. C(python), an interpreter whose version is wanted, by default C(python3).
    type: dict
    default: {}
  services:
    description:
      - By name, what is wanted of the services of a node. To see the programs behind ports it must run as root.
      - C(packages) and C(programs) to look for. C(files) to take digests of, of a directory every file in it, so that
        the munge key can be compared without being read. C(services) of systemd, each with a list of the files that
        it reads when it starts. C(ports), where services should listen, C(address:port) by service. C(environments),
        Python virtual environments.
      - C(slurm) is what is asked of Slurm, C(configuration) for the nodes of C(/etc/slurm/slurm.conf) and the digest
        of the munge key, C(hardware) for what C(slurmd -C) says, C(neuron) for the Neuron devices, C(accounting) for
        the clusters that the database knows.
    type: dict
    default: {}
seealso:
  - module: ansible.builtin.package_facts
"""

EXAMPLES = r"""
- name: Know the variables of efa
  ansible.builtin.import_role:
    name: trainium.cluster.efa
    tasks_from: variables

- name: Ask the node whether it has something to do
  trainium.cluster.internal.node_look:
    roles: [efa]
  register: look

- name: Configure EFA
  ansible.builtin.include_role:
    name: trainium.cluster.efa
  when: "'efa' in look.due"

- name: Ask how many NeuronCores the node has
  trainium.cluster.internal.node_look:
    software: {node: {packages: [aws-neuronx-dkms]}}
  register: look

- name: Show the number
  ansible.builtin.debug:
    var: look.found.node.neuron.cores
"""

RETURN = r"""
due:
  description: Those of O(roles) that have something to do on the node, or something to refuse or to show.
  returned: O(roles) is given
  type: list
  elements: str
kept:
  description: What comparing nodes with each other needs, by the names of the roles' variables. Empty
    without V(slurm).
  returned: O(roles) is given
  type: dict
  sample: {"__slurm_devices": "16"}
found:
  description:
    - The answers by the names under which they were asked for. With O(role) the one answer lies beside C(changed).
    - Of O(software), C(kernel) with C(release) and whether modules can be built for it (C(headers)), and
      C(ptrace_scope), -1 where the kernel has no such setting. C(packages), those that are installed, with C(version)
      and C(held). C(files), the SHA-1 of each, and C(apt_sources), the files of apt's sources that name a repository,
      as they are (C(text)) and C(without) its entries. C(space) in MiB. C(python), the version of the interpreter,
      and C(environment) with C(python), a C(digest) of what is installed in it, the C(note) that a role wrote into it
      and its C(owner).
    - C(efa) has the version of the C(installer) that ran last, the path of C(fi_info) and how many C(interfaces) it
      lists, how many IPv4 C(addresses) there are beside the loopback one, what gives each of them routes of its own
      (C(policy_routing)), and the processes that have a device of EFA open (C(users)), of which root sees all.
    - C(neuron) has the version of the driver that was C(built) for the running kernel, whether it is C(loaded), the
      C(running) version where the kernel tells it, and the number of C(devices) and C(cores) that C(neuron-ls) lists.
    - Of O(services), C(missing_packages), C(missing_programs), and C(files), a line with owner, mode, SHA-256 digest
      and path of each that is there; a directory has the word C(directory) for its digest, and a link that leads
      nowhere else is C(link), its target and the path. C(services), whether each is C(enabled), C(active), and
      C(stale), started before one of its files was changed. C(ports), whether the service C(listens) there and
      nowhere else on that port, and by what it is C(taken_by). C(environments), their packages with versions.
    - For Slurm C(munge_key_digest), empty where the role made no key; C(nodes) that the configuration names;
      C(hardware), the parameters of a C(NodeName) line; C(neuron_devices) and C(neuron_device_files), those in the
      row C(/dev/neuron0) and so on; C(accounting_clusters), null where the database does not answer.
  returned: neither O(roles) nor O(role) is given
  type: dict
  sample:
    efa: {python: "3.12", neuron: {built: 2.29.0.0, loaded: true, running: 2.29.0.0, devices: 16, cores: 32}}
    slurm: {services: {slurmd: {enabled: true, active: true, stale: false}}}
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
            "role": {"type": "str"},
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
