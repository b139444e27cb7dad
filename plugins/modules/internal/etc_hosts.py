#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etc_hosts
version_added: 0.1.0
short_description: Keep the names of a cluster in /etc/hosts, once and right
description:
  - Puts one entry for every node of a cluster into a marked block of C(/etc/hosts).
  - Takes the same names out of every other line, so that a loopback entry such as C(127.0.1.1 fqdn short), a stale
    address or a C(.pcluster) alias cannot send a collective or a rendezvous to the wrong interface.
  - Lines that do not name a node of the cluster are never touched. A file in which somebody else gave every node its
    right entry, and which has none of the faults of RV(faults), stays as it is.
  - A full name of more than 63 characters, which NCCL and the Neuron runtime cannot resolve, gets a line of its own
    behind that of the shorter name. It can still be looked up, but the node never calls itself by it.
extends_documentation_fragment:
  - trainium.cluster.attributes
options:
  entries:
    description:
      - The entries in the format of C(/etc/hosts), one node a line - the address, the full name, the short name.
      - Text and not a list, so that it is rendered once for the whole cluster and then only copied.
      - The last name of a line is the node's host name; more than 63 characters are refused. So are what is no address,
        a loopback address, and a name or address that occurs twice.
      - Required if O(mode=entries).
    type: str
  mode:
    description:
      - V(entries) gives every node its entry and takes its names out of all other lines.
      - V(strip-alias) only takes away names under C(.pcluster), which ParallelCluster up to 3.5.1 gave to the wrong
        address of nodes with several network interfaces. A line that has no other name goes with it.
    type: str
    choices: [entries, strip-alias]
    default: entries
  node:
    description:
      - The host name of this node, by which its own entry is known in RV(faults).
      - By default the machine is asked.
    type: str
  path:
    description: The file to write.
    type: path
    default: /etc/hosts
  backup:
    description: Whether to keep a copy of the file, with the time in its name, before it is changed.
    type: bool
    default: true
  cloud_init_config:
    description:
      - A configuration file of cloud-init, whose text is returned in RV(cloud_init).
      - Where it is given, cloud-init is asked first. While it is at work the file is left alone, as cloud-init may
        still write it; repeat the task until C(cloud_init.finished) is true.
    type: path
seealso:
  - module: ansible.builtin.blockinfile
"""

EXAMPLES = r"""
- name: Give two nodes one name and one address everywhere
  trainium.cluster.internal.etc_hosts:
    entries: |
      192.0.2.10 ip-192-0-2-10.us-west-2.compute.internal ip-192-0-2-10
      192.0.2.11 ip-192-0-2-11.us-west-2.compute.internal ip-192-0-2-11

- name: Take away the aliases of an old ParallelCluster and nothing else
  trainium.cluster.internal.etc_hosts:
    mode: strip-alias
"""

RETURN = r"""
faults:
  description:
    - What was wrong with the file, in words, with how many lines or names show it and the first five of them. Empty for
      a sound one.
    - C(kind) is V(loopback), V(stale_address), V(stale_line), V(no_own_entry), V(no_entry), V(full_name_unknown),
      V(pcluster_alias), V(long_name) or V(other_name_first).
  returned: success
  type: list
  elements: dict
  sample:
    - kind: loopback
      message: "a node's name on a loopback address: 127.0.1.1 ip-192-0-2-10"
      count: 1
      examples: ["127.0.1.1 ip-192-0-2-10"]
before:
  description: The lines that go, at most 20 and then how many more there are. The diff has all of them.
  returned: success
  type: list
  elements: str
after:
  description: The lines that come, at most 20 and then how many more there are. The diff has all of them.
  returned: success
  type: list
  elements: str
repaired:
  description: The lines outside the block that named a node of the cluster and were corrected, as they were.
  returned: success
  type: list
  elements: str
cloud_init:
  description: Whether cloud-init is on the host, has finished, and what O(cloud_init_config) says.
  returned: O(cloud_init_config) is given
  type: dict
  sample: {"present": true, "finished": true, "config": "manage_etc_hosts: false\n"}
backup_file:
  description: Where the file as it was is kept.
  returned: changed and O(backup=true), outside check mode
  type: str
"""

import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import difference, staged
from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.look import HOSTS, look


def _write(module: AnsibleModule, path: Path, content: str) -> None:
    """Replace the file in one step, so that no reader ever sees half of it."""
    temporary = staged(module, content.encode("utf-8", "surrogateescape"))
    if not path.exists():
        os.chmod(temporary, 0o644)
    module.atomic_move(temporary, str(path))


def main() -> None:
    module = AnsibleModule(
        argument_spec={**HOSTS, "backup": {"type": "bool", "default": True}},
        required_if=[("mode", "entries", ["entries"])],
        supports_check_mode=True,
    )
    result, path, before, after = look(module, module.params)
    if module._diff:
        result["diff"] = difference(path, before, after)
    if result["changed"] and not module.check_mode:
        if module.params["backup"] and path.exists():
            result["backup_file"] = module.backup_local(str(path))
        _write(module, path, after)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
