#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_leave
version_added: 0.1.0
short_description: Choose and drain the nodes that leave a cluster, or take them back
description:
  - Looks from the head node which nodes have no job, not even a suspended one, takes those that Slurm cannot use first
    and then idle ones, the last ones first, and drains them. Where too few are without jobs it refuses, and drains
    none.
  - A node that got a job before it was drained is taken back into service with the others, and refused likewise.
  - Where Slurm is not installed there are no jobs, and the last nodes leave.
  - With O(state=staying) those of the nodes are resumed that were drained for leaving, and nobody else's. One that was
    out of service before for another reason is drained for that one again.
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  diff_mode:
    support: none
options:
  names:
    description: All nodes, in the order of their ranks; with O(state=staying) those that stay after all.
    type: list
    elements: str
    required: true
  stay:
    description: Those that never leave.
    type: list
    elements: str
    default: []
  count:
    description: How many leave; needed with O(state=leaving).
    type: int
  state:
    description: Whether nodes are to leave, or to stay though they were to leave.
    type: str
    choices: [leaving, staying]
    default: leaving
"""

EXAMPLES = r"""
- name: Find a node that may leave
  trainium.cluster.internal.node_leave:
    names: [ip-192-0-2-5, ip-192-0-2-6, ip-192-0-2-7]
    stay: [ip-192-0-2-5]
    count: 1
"""

RETURN = r"""
leaving:
  description: The nodes that leave.
  returned: when O(state=leaving)
  type: list
  elements: str
resumed:
  description: The nodes that get jobs again, or are out of service for what they were before.
  returned: when O(state=staying)
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.leave import choose, reason_for, undo, with_jobs


def drain(leaving: list[str]) -> bool:
    """Whether any was drained that was not. Raises TrainiumError where one of them got a job meanwhile."""
    before = calls.nodes()
    reasons = {name: reason_for(before[name]) for name in leaving if name in before and not before[name].drained}
    for name, reason in reasons.items():
        calls.update_node(name, "state=drain", f"reason={reason}")
    # From here on no job begins on any of them.
    nodes = calls.nodes()
    busy = with_jobs(leaving, nodes, calls.jobs_on(name for name in leaving if name in nodes))
    if busy:
        for name, reason in reasons.items():
            calls.update_node(name, *undo(reason))
        raise TrainiumError(f"a job has just begun on {', '.join(busy)}, which was to leave; run this again")
    return bool(reasons)


def take_back(names: list[str], check_mode: bool) -> list[str]:
    """Those that were drained for leaving get jobs again, or are what they were before. Raises TrainiumError."""
    found = calls.nodes()
    words = {name: undo(found[name].reason) for name in names if name in found and found[name].out}
    ours = [name for name in words if words[name]]
    for name in ours if not check_mode else ():
        calls.update_node(name, *words[name])
    return ours


def main() -> None:
    arguments = {
        "names": {"type": "list", "elements": "str", "required": True},
        "stay": {"type": "list", "elements": "str", "default": []},
        "count": {"type": "int"},
        "state": {"type": "str", "choices": ["leaving", "staying"], "default": "leaving"},
    }
    module = AnsibleModule(arguments, supports_check_mode=True, required_if=[("state", "leaving", ["count"])])
    params, slurm = module.params, calls.installed()
    changed = False
    try:
        if params["state"] == "staying":
            resumed = take_back(params["names"], module.check_mode) if slurm else []
            module.exit_json(changed=bool(resumed), resumed=resumed)
        known = calls.nodes() if slurm else {}
        if slurm and not set(params["names"]) & set(known):
            raise TrainiumError("Slurm knows none of the nodes by these names, so nothing tells which have no jobs")
        jobs = calls.jobs_on(name for name in params["names"] if name in known)
        leaving = choose(params["names"], params["stay"], params["count"], known, jobs)
        if slurm and not module.check_mode:
            changed = drain(leaving)
    except TrainiumError as error:
        module.fail_json(msg=f"{str(error).rstrip('.')}.")
    module.exit_json(changed=changed, leaving=leaving)


if __name__ == "__main__":
    main()
