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
  - Lines that do not name a node of the cluster are never touched.
author:
  - The trainium.cluster founders (@trainium)
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  entries:
    description:
      - The entries in the format of C(/etc/hosts), one node a line - the address, the full name, the short name.
      - Text and not a list, so that it is rendered once for the whole cluster and then only copied.
      - A name of more than 63 characters, a loopback address and a name or address that occurs twice are refused.
    type: str
    required: true
  marker:
    description: What the comments around the block say, after C(# BEGIN) and C(# END).
    type: str
    default: trainium.cluster
  path:
    description: The file to write.
    type: path
    default: /etc/hosts
  backup:
    description: Whether to keep a copy of the file, with the time in its name, before it is changed.
    type: bool
    default: true
  unsafe_writes:
    description: Whether to write in place where the file cannot be replaced, as with a bind mount in a container.
    type: bool
    default: false
seealso:
  - module: ansible.builtin.blockinfile
"""

EXAMPLES = r"""
- name: Give two nodes one name and one address everywhere
  trainium.cluster.etc_hosts:
    entries: |
      192.0.2.10 ip-192-0-2-10.us-west-2.compute.internal ip-192-0-2-10
      192.0.2.11 ip-192-0-2-11.us-west-2.compute.internal ip-192-0-2-11
"""

RETURN = r"""
repaired:
  description: The lines outside the block that named a node of the cluster and were corrected, as they were.
  returned: success
  type: list
  elements: str
  sample: ["127.0.1.1 ip-192-0-2-10.us-west-2.compute.internal ip-192-0-2-10"]
backup_file:
  description: Where the file as it was is kept.
  returned: changed and O(backup=true), outside check mode
  type: str
  sample: /etc/hosts.2113.2026-11-21@07:00:00~
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._planners.etc_hosts import (
    EtcHostsError,
    parse_entries,
    plan_etc_hosts,
)


def _read(path: Path) -> str:
    """The file as text in which every byte survives; empty when there is no file."""
    return path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""


def _write(module: AnsibleModule, path: Path, content: str) -> None:
    """Replace the file in one step, so that no reader ever sees half of it."""
    handle, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content.encode("utf-8", "surrogateescape"))
    if not path.exists():
        os.chmod(temporary, 0o644)
    module.atomic_move(temporary, str(path), unsafe_writes=module.params["unsafe_writes"])


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "entries": {"type": "str", "required": True},
            "marker": {"type": "str", "default": "trainium.cluster"},
            "path": {"type": "path", "default": "/etc/hosts"},
            "backup": {"type": "bool", "default": True},
            "unsafe_writes": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    path = Path(os.path.realpath(module.params["path"]))
    try:
        before = _read(path)
        plan = plan_etc_hosts(before, parse_entries(module.params["entries"]), module.params["marker"])
    except EtcHostsError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{path} cannot be read ({error.strerror}); run the task as root.")

    result: dict[str, Any] = {"changed": plan.content != before, "repaired": plan.repaired}
    if module._diff:
        header = str(path)
        result["diff"] = {"before": before, "after": plan.content, "before_header": header, "after_header": header}
    if result["changed"] and not module.check_mode:
        if module.params["backup"] and path.exists():
            result["backup_file"] = module.backup_local(str(path))
        _write(module, path, plan.content)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
