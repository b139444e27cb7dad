#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_drain
version_added: 0.1.0
short_description: Keep nodes that failed their checks away from jobs
description:
  - Looks from the head node whether every node can be reached, drains in Slurm those that failed and resumes those that
    pass again.
  - The reason of such a drain begins with C(acceptance:). A node that somebody else drained is left as it is, unless
    M(trainium.cluster.internal.node_replace) did and its instance is another since.
  - Says which collective test is due on the nodes that passed.
  - Where Slurm is not installed it only reports.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
options:
  nodes:
    description:
      - What C(gate) of M(trainium.cluster.internal.node_check) returned for each node, in the order of their ranks.
    type: list
    elements: dict
    required: true
  lost:
    description: Names of nodes that could not be checked.
    type: list
    elements: str
    default: []
  instances:
    description: The ids of the nodes' instances by name, as far as they are known.
    type: dict
    default: {}
    version_added: 0.3.0
  compute:
    description: Names of the nodes that Slurm should use. The others take no part in jobs and in the collective test.
    type: list
    elements: str
    required: true
  drain:
    description: Whether nodes are drained and resumed in Slurm.
    type: bool
    default: true
  ssh_port:
    description: The TCP port of ssh on the nodes.
    type: int
    default: 22
  slurmd_port:
    description: The TCP port of slurmd on the nodes.
    type: int
    default: 6818
  skip:
    description: Checks that are not made.
    type: list
    elements: str
    choices: [ssh, slurm]
    default: []
  collective:
    description: The collective test wanted.
    type: str
    choices: [auto, nccom, gloo, none]
    default: auto
  collective_settings:
    description: Everything that makes the test another test, as text.
    type: str
    default: ""
  collective_minimum:
    description: The least bus bandwidth, in GB/s.
    type: float
    default: 0.0
  collective_repeat:
    description: Whether to test again what passed before.
    type: bool
    default: false
  record:
    description: The file on this host that remembers the last collective test that passed.
    type: path
    default: /var/lib/trainium/acceptance.json
  accepted:
    description: The file on this host with the instances that were accepted.
    type: path
    default: /var/lib/trainium/accepted.json
    version_added: 0.3.0
"""

EXAMPLES = r"""
- name: Keep bad nodes away from jobs
  trainium.cluster.internal.slurm_drain:
    nodes: "{{ groups['compute'] | map('extract', hostvars, ['node', 'gate']) }}"
    compute: "{{ groups['compute'] }}"
  delegate_to: "{{ groups['head'][0] }}"
  run_once: true
"""

RETURN = r"""
slurm:
  description: Whether Slurm is there.
  returned: success
  type: bool
nodes:
  description: The verdict on each node. C(result) is V(passed), V(failed), or V(held) where it is sound but drained.
  returned: success
  type: list
  elements: dict
good:
  description: The nodes that can run jobs, in their order.
  returned: success
  type: list
  elements: str
drained:
  description: The nodes that were drained, or would be, each with the reason.
  returned: success
  type: dict
resumed:
  description: The nodes that were resumed, or would be.
  returned: success
  type: list
  elements: str
collective:
  description: The collective test. C(due) says whether it is to be run, C(problem) why it cannot be.
  returned: success
  type: dict
"""

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common import commands
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record, write_record
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import every, looks
from ansible_collections.trainium.cluster.plugins.module_utils._node import collective
from ansible_collections.trainium.cluster.plugins.module_utils._node.health_report import LOST
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import drain as planner
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode

RESUMED_WITHIN = 20.0
SECONDS_TO_CONNECT = 5.0
# Ports that are tried at the same time.
AT_ONCE = 64


def apply(plan: planner.Plan) -> dict[str, SlurmNode]:
    """Drain and resume, and return what Slurm says once the resumed nodes are back."""
    for name, reason in plan.drain.items():
        calls.update_node(name, "state=drain", f"reason={reason}")
    for name in plan.resume:
        calls.update_node(name, "state=resume")
    for _passed in looks(RESUMED_WITHIN, every(0.5)):
        nodes = calls.nodes()
        if all(nodes[name].usable for name in plan.resume):
            break
    return nodes


def plan_collective(params: dict[str, Any], good: list[dict[str, Any]], busy: list[str]) -> dict[str, Any]:
    kind, problem = collective.choose(params["collective"], good)
    digest = collective.digest(kind, good, params["collective_settings"])
    record = read_record(params["record"]) or {}
    due = collective.is_due(record, digest, params["collective_minimum"], params["collective_repeat"])
    wanted = kind != collective.NONE
    if wanted and due and busy and not problem:
        wanted, problem = False, f"jobs run on {', '.join(busy)}"
    return {
        "kind": kind,
        "due": wanted and due and not problem,
        "wanted": wanted,
        "problem": problem,
        "nodes": [node["name"] for node in good],
        "addresses": [node["address"] for node in good],
        "cores": sum(node["cores"] for node in good),
        "digest": digest,
        "known": {} if due else record.get("result", {}),
    }


def reach(targets: list[tuple[str, int]], timeout: float) -> dict[tuple[str, int], str | None]:
    """None for each TCP port that took a connection, else why it did not."""

    def problem(target: tuple[str, int]) -> str | None:
        try:
            with socket.create_connection(target, timeout=timeout):
                return None
        except socket.timeout:
            return "no answer"
        except OSError as error:
            return (error.strerror or str(error)).lower()

    wanted = list(dict.fromkeys(targets))
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return dict(zip(wanted, pool.map(problem, wanted)))


def look(
    params: dict[str, Any], slurm: dict[str, SlurmNode]
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[str]]]:
    """The checks made from here and all reasons against a node, both by name, in the order of the nodes."""
    services = [] if "ssh" in params["skip"] else [("ssh", params["ssh_port"])]
    wanted = {
        node["name"]: services + ([("slurmd", params["slurmd_port"])] if node["name"] in slurm else [])
        for node in params["nodes"]
    }
    addresses = {node["name"]: node["address"] for node in params["nodes"]}
    targets = [(addresses[name], port) for name, pairs in wanted.items() for _service, port in pairs]
    errors = reach(targets, SECONDS_TO_CONNECT)
    checks: dict[str, list[dict[str, Any]]] = {name: [] for name in params["lost"]}
    reasons = {name: [LOST["reason"]] for name in params["lost"]}
    for node in params["nodes"]:
        name = node["name"]
        made = [planner.tcp_check(service, port, errors[addresses[name], port]) for service, port in wanted[name]]
        checks[name] = made
        reasons[name] = [*node["failures"], *planner.reasons_of(made)]
    return checks, reasons


def remember(params: dict[str, Any], sound: list[str]) -> None:
    """Which instances were set up and found sound once, so that later nobody takes a broken one for one on its way."""
    record = read_record(params["accepted"]) or {}
    known = set(record.get("instances") or ())
    more = {params["instances"].get(name) or "" for name in sound} - {""} - known
    if more:
        write_record(params["accepted"], {"instances": sorted(known | more)})


def run(params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """The whole way: ask, reach, plan, tell, judge."""
    have_slurm = "slurm" not in params["skip"] and commands.find("sinfo") is not None
    try:
        slurm = calls.nodes() if have_slurm else {}
    except TrainiumError:
        # On a fresh host the packages may be there before any configuration.
        if not check_mode:
            raise
        have_slurm, slurm = False, {}
    checks, reasons = look(params, slurm)
    expected = [name for name in reasons if have_slurm and name in params["compute"]]
    plan = planner.Plan()
    if params["drain"]:
        plan = planner.plan_gate({name: reasons[name] for name in expected}, slurm, params["instances"])
    if (plan.drain or plan.resume) and not check_mode:
        slurm = apply(plan)
    for name in expected:
        made = planner.slurm_check(name, slurm.get(name))
        checks[name].append(made)
        reasons[name] += planner.reasons_of([made])
    addresses = {node["name"]: node["address"] for node in params["nodes"]}
    would = plan.resume if check_mode else []
    verdicts = planner.verdicts(addresses, checks, reasons, slurm, params["compute"], would)
    if not check_mode and have_slurm:
        remember(params, [verdict["name"] for verdict in verdicts if verdict["result"] != planner.FAILED])
    passed = {verdict["name"] for verdict in verdicts if verdict["result"] == planner.PASSED}
    good = [node for node in params["nodes"] if node["name"] in passed and node["name"] in params["compute"]]
    busy = [node["name"] for node in good if node["name"] in slurm and slurm[node["name"]].busy]
    return {
        "changed": bool(plan.drain or plan.resume),
        "slurm": have_slurm,
        "nodes": verdicts,
        "good": [node["name"] for node in good],
        "drained": plan.drain,
        "resumed": plan.resume,
        "collective": plan_collective(params, good, busy),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "dict", "required": True},
            "lost": {"type": "list", "elements": "str", "default": []},
            "instances": {"type": "dict", "default": {}},
            "compute": {"type": "list", "elements": "str", "required": True},
            "drain": {"type": "bool", "default": True},
            "ssh_port": {"type": "int", "default": 22},
            "slurmd_port": {"type": "int", "default": 6818},
            "skip": {"type": "list", "elements": "str", "choices": ["ssh", "slurm"], "default": []},
            "collective": {"type": "str", "choices": list(collective.KINDS), "default": "auto"},
            "collective_settings": {"type": "str", "default": ""},
            "collective_minimum": {"type": "float", "default": 0.0},
            "collective_repeat": {"type": "bool", "default": False},
            "record": {"type": "path", "default": "/var/lib/trainium/acceptance.json"},
            "accepted": {"type": "path", "default": "/var/lib/trainium/accepted.json"},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run(module.params, module.check_mode))
    except TrainiumError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
