#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_replace
version_added: 0.3.0
short_description: Drain the nodes of a cluster whose instances are replaced, or take them back
description:
  - Looks from the head node which nodes Slurm or the acceptance has drained, or Slurm has down, or takes those that are
    named, and drains them for a reason that names their instances. Where one of them may not go it refuses, and drains
    none; so it does where more than half of the nodes would go and none was named.
  - A node whose job may end with it is set down first, by which Slurm ends the job or puts it back into the queue.
  - A node that has another instance by now does not go again. M(trainium.cluster.internal.slurm_drain) resumes it.
  - With O(state=staying) nodes that still have their instance get jobs again, or the reason that they were drained for.
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  diff_mode:
    support: none
options:
  instances:
    description: The ids of the compute nodes' instances by name, in the order of their ranks.
    type: dict
    required: true
  stay:
    description: Nodes that never go.
    type: list
    elements: str
    default: []
  wanted:
    description: The nodes that go; by default all that are out of service and were not drained by somebody.
    type: list
    elements: str
    default: []
  busy:
    description: Whether nodes of O(wanted) go with the jobs that run there.
    type: bool
    default: false
  state:
    description: Whether nodes are to go, or to stay though they were to go.
    type: str
    choices: [leaving, staying]
    default: leaving
  record:
    description: The file on this host that remembers which nodes were to be replaced.
    type: path
    default: /var/lib/trainium/replaced.json
  accepted:
    description:
      - The file on this host with the instances that M(trainium.cluster.internal.slurm_drain) has accepted. One that is
        not among them and does not answer is on its way, and does not go unless it is named.
    type: path
    default: /var/lib/trainium/accepted.json
"""

EXAMPLES = r"""
- name: Drain what is to be replaced
  trainium.cluster.internal.node_replace:
    instances: {ip-192-0-2-5: i-0a1b2c3d4e5f60006, ip-192-0-2-6: i-0a1b2c3d4e5f60007}
    stay: [ip-192-0-2-5]
"""

RETURN = r"""
names:
  description: The nodes that go, or stay after all.
  returned: success
  type: list
  elements: str
instance_ids:
  description: The ids of their instances.
  returned: success
  type: list
  elements: str
told:
  description: What is replaced, in a sentence.
  returned: when O(state=leaving)
  type: str
  sample: "To be replaced by another instance: ip-192-0-2-6 (drained, acceptance: no driver), i-0a1b2c3d4e5f60007."
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record, write_record
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import replace as planner
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.drain import back_to, mark_of, reason_for
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.leave import has_jobs, with_jobs
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode

Nodes = dict[str, SlurmNode]


def take_back(instances: dict[str, str], nodes: Nodes, check_mode: bool) -> list[str]:
    """Those that still have their instance: into service, or drained for what they were drained for before."""
    marks = {name: mark_of(nodes.get(name)) for name in instances}
    found = {name: mark.before for name, mark in marks.items() if mark and mark.instance_id == instances[name]}
    for name, before in found.items() if not check_mode else ():
        calls.update_node(name, *back_to(before))
    return list(found)


def drain(due: list[str], params: dict[str, Any], nodes: Nodes) -> bool:
    """Whether any was told that it goes. Raises TrainiumError where one got a job that may not end with it."""
    known = [name for name in due if name in nodes]
    reasons = {name: reason_for(params["instances"][name], nodes[name]) for name in known}
    ours = [name for name in known if not (nodes[name].out and nodes[name].reason == reasons[name])]
    for name in ours:
        calls.update_node(name, "state=drain", f"reason={reasons[name]}")
    # From here on no job begins on any of them.
    after, jobs = calls.nodes(), calls.jobs_on(known)
    late = with_jobs(known, after, jobs)
    if late and not (params["wanted"] and params["busy"]):
        take_back({name: params["instances"][name] for name in ours}, after, False)
        raise TrainiumError(f"a job has just begun on {', '.join(late)}, which was to be replaced; run this again")
    ending = [name for name in known if jobs[name] or has_jobs(after.get(name))]
    for name in ending:
        calls.update_node(name, "state=down", f"reason={reasons[name]}")
        # Whatever Slurm makes of a node that is down and answers, it is to get no job.
        calls.update_node(name, "state=drain", f"reason={reasons[name]}")
    return bool(ours or ending)


def leave(params: dict[str, Any], nodes: Nodes, slurm: bool, check_mode: bool) -> dict[str, Any]:
    """Choose and drain. Raises TrainiumError."""
    instances, wanted = params["instances"], params["wanted"]
    if not (wanted and params["busy"]):
        if not slurm:
            raise TrainiumError(
                "Slurm is not installed here, so nothing tells which nodes are drained and what runs there; name the "
                "nodes in trainium_replace and set trainium_replace_busy"
            )
        if not set(instances) & set(nodes):
            raise TrainiumError("Slurm knows none of the nodes by these names, so nothing tells which are drained")
    record = read_record(params["record"]) or {}
    accepted = (read_record(params["accepted"]) or {}).get("instances") or ()
    due = planner.choose(instances, params["stay"], wanted, nodes, accepted, record)
    if slurm and not (wanted and params["busy"]):
        planner.refuse_busy(due, nodes, calls.jobs_on(name for name in due if name in nodes))
    changed = False
    ids = [instances[name] for name in due]
    if due and not check_mode:
        # The next run may not find them by their names.
        write_record(params["record"], {**record, **dict(zip(due, ids))})
        changed = drain(due, params, nodes) if slurm else False
    return {"changed": changed, "names": due, "instance_ids": ids, "told": planner.told(due, instances, nodes)}


def main() -> None:
    arguments = {
        "instances": {"type": "dict", "required": True},
        "stay": {"type": "list", "elements": "str", "default": []},
        "wanted": {"type": "list", "elements": "str", "default": []},
        "busy": {"type": "bool", "default": False},
        "state": {"type": "str", "choices": ["leaving", "staying"], "default": "leaving"},
        "record": {"type": "path", "default": "/var/lib/trainium/replaced.json"},
        "accepted": {"type": "path", "default": "/var/lib/trainium/accepted.json"},
    }
    module = AnsibleModule(arguments, supports_check_mode=True)
    params, instances = module.params, module.params["instances"]
    try:
        slurm = calls.installed()
        nodes = calls.nodes() if slurm else {}
        if params["state"] == "leaving":
            module.exit_json(**leave(params, nodes, slurm, module.check_mode))
        names = take_back(instances, nodes, module.check_mode)
    except TrainiumError as error:
        module.fail_json(msg=f"{str(error).rstrip('.')}.")
    module.exit_json(changed=bool(names), names=names, instance_ids=[instances[name] for name in names])


if __name__ == "__main__":
    main()
