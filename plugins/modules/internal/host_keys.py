#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_keys
version_added: 0.1.0
short_description: Know the nodes of a cluster by the host keys that they told at their first boot
description:
  - Reads the ssh host keys of nodes that were just launched from their console, over the API of AWS, so that nobody on
    the way can stand in for a node at the first contact, and adds them to a file of known hosts by instance id.
  - Only keys of the first boot count. A node that is known, or was launched more than an hour ago, is left alone,
    whatever its console says by now.
  - Nodes whose console does not show keys in time are named in a warning. ssh accepts what they show first.
  - A node whose user data runs for long shows them only after it. It is not waited for; a later run within the hour
    learns them.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
  - trainium.cluster.aws
options:
  cluster_name:
    description: The cluster, by the value of the tag C(trainium:cluster).
    type: str
    required: true
  path:
    description: The file of known hosts, on the host where the module runs.
    type: path
    default: ~/.ssh/trainium_known_hosts
  timeout:
    description: Seconds to wait for keys that are not on the console yet.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Know the new nodes by their keys
  trainium.cluster.internal.host_keys:
    cluster_name: bert
    region: us-west-2
"""

RETURN = r"""
known:
  description: The instances that are in the file now and were not before.
  returned: success
  type: list
  elements: str
unknown:
  description: The new instances whose console did not show keys in time.
  returned: success
  type: list
  elements: str
"""

import os
from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace, looks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import host_keys
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import node_of


def _find(module: AnsibleAWSModule, path: Path) -> tuple[dict[str, list[str]], list[str], str]:
    """Keys by instance, the instances without, and why they have none. Raises TrainiumError, OSError."""
    client = module.client("ec2")
    filters = {f"tag:{CLUSTER_TAG}": module.params["cluster_name"], "instance-state-name": "running"}
    nodes, now = [node_of(item) for item in ec2.describe_instances(client, filters)], datetime.now(timezone.utc)
    before = host_keys.pinned(path.read_text(encoding="utf-8")) if path.exists() else {}
    left = [node["instance_id"] for node in nodes if host_keys.is_first_boot(node, now)]
    left, found = [identity for identity in left if identity not in before], {}
    busy = host_keys.Busy()
    for passed in looks(0 if module.check_mode else module.params["timeout"], Pace(1, 1.5, 10)):
        working: list[str] = []
        try:
            for identity in left:
                output = ec2.console_output(client, identity)
                keys = host_keys.first_boot_keys(output)
                if keys:
                    found[identity] = keys
                elif busy.saw(identity, output, passed):
                    working.append(identity)
        except TrainiumError as error:
            # The cluster can do without; whoever runs it is told.
            return found, [identity for identity in left if identity not in found], f" ({error})"
        left = [identity for identity in left if identity not in found]
        if left == working:
            break
    if left and left == working:
        return found, left, " as their user data still runs (run this again within an hour of the launch)"
    return found, left, f" in {module.params['timeout']} s"


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "cluster_name": {"type": "str", "required": True},
            "path": {"type": "path", "default": "~/.ssh/trainium_known_hosts"},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    path = Path(module.params["path"])
    try:
        found, left, reason = _find(module, path)
        if found and not module.check_mode:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # At once, since runs for other clusters add to the same file.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
                file.write(host_keys.lines(found))
    except TrainiumError as error:
        module.fail_json(msg=f"host_keys: {error}.", **error.details)
    except OSError as error:
        module.fail_json(msg=f"{path} can not be written: {error.strerror}; check who owns it.")
    if left and not module.check_mode:
        warn(
            f"The console of {', '.join(left)} showed no ssh host keys of a first boot{reason}, so that "
            "ssh accepts whatever it meets there first; compare the keys where you do not trust the network."
        )
    module.exit_json(changed=bool(found), known=sorted(found), unknown=left)


if __name__ == "__main__":
    main()
