#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_cost
version_added: 0.2.0
short_description: What a cluster costs an hour, by AWS's price list
description:
  - Puts into one sentence what the nodes, the head node and the NAT gateways of a cluster cost an hour on demand.
  - It never fails where the price list cannot be asked; the sentence says so, with the prices that are known.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.aws
options:
  instance_type:
    description: The type of the nodes.
    type: str
    required: true
  count:
    description: How many nodes there are.
    type: int
    required: true
  market:
    description: In which way they are had. A Capacity Block is paid in advance.
    type: str
    choices: [on-demand, spot, capacity-block]
    default: on-demand
  head_instance_type:
    description: The type of the head node beside them. If it is empty, there is none.
    type: str
    default: ""
  least:
    description: How many of the nodes always run, where the others come with a job and go after it. By default all do.
    type: int
  reserved:
    description: Whether the nodes are in an On-Demand Capacity Reservation, which costs as much without them.
    type: bool
    default: false
  system_instance_type:
    description: The type of nodes for the system's pods. If it is empty, there are none.
    type: str
    default: ""
  system_count:
    description: How many of these there are.
    type: int
    default: 0
  nat_gateways:
    description: How many NAT gateways there are.
    type: int
    default: 0
  unknown:
    description: What else is billed by the hour, whose price is not asked.
    type: list
    elements: str
    default: []
  prices:
    description: US dollars an hour by instance type, which take the place of those of the price list.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Ask what two nodes and a head node cost
  trainium.cluster.internal.cluster_cost:
    instance_type: trn1.32xlarge
    count: 2
    head_instance_type: m5.2xlarge
    region: us-west-2
  register: cost

- name: Say it
  ansible.builtin.debug:
    msg: "{{ cost.sentence }}"
"""

RETURN = r"""
sentence:
  description: What it costs.
  returned: always
  type: str
  sample: "2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand. Not in it: storage, addresses and traffic."
dollars_per_hour:
  description:
    - US dollars an hour for the nodes, the head node, the system's nodes and the NAT gateways, on demand.
    - It is V(null) where the price of one of them is not known.
  returned: always
  type: float
  sample: 43.0
  version_added: 0.3.0
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import prices
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.calls_market import BRIEFLY
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.run_market import cost

ARGUMENTS: dict[str, dict[str, Any]] = {
    "instance_type": {"type": "str", "required": True},
    "count": {"type": "int", "required": True},
    "market": {"type": "str", "choices": ["on-demand", "spot", "capacity-block"], "default": "on-demand"},
    "head_instance_type": {"type": "str", "default": ""},
    "least": {"type": "int"},
    "reserved": {"type": "bool", "default": False},
    "system_instance_type": {"type": "str", "default": ""},
    "system_count": {"type": "int", "default": 0},
    "nat_gateways": {"type": "int", "default": 0},
    "unknown": {"type": "list", "elements": "str", "default": []},
    "prices": {"type": "dict", "default": {}},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params, region = module.params, module.region or ""
    where = prices.asked_in(region) if region else ""
    pricing = module.client("pricing", region=where, config=BRIEFLY) if where else None
    kind, count, market = params["instance_type"], params["count"], params["market"]
    # What is paid in advance needs no price.
    nodes = [(kind, "" if market == "capacity-block" else kind, count)]
    if params["head_instance_type"]:
        nodes.append((f"the head node {params['head_instance_type']}", params["head_instance_type"], 1))
    if params["system_count"] > 0 and params["system_instance_type"]:
        system = params["system_instance_type"]
        nodes.append((f"{params['system_count']} system nodes {system}", system, params["system_count"]))
    given = {kind: prices.dollars(price) for kind, price in params["prices"].items()}
    own = {kind: price for kind, price in given.items() if price is not None}
    lines, trouble = cost(pricing, region, nodes, params["nat_gateways"], own)
    first, *others = lines
    least = count if params["least"] is None else params["least"]
    how = prices.Nodes(market, least, params["reserved"] and market == "on-demand")
    if trouble and market != "capacity-block" and all(line.price is None for line in (first, *others)):
        sentence = f"What the cluster costs an hour is not known: {trouble}."
    else:
        others += [prices.Line(what, 1, None) for what in params["unknown"]]
        sentence = prices.sentence(first, others, region, how, trouble)
    known = [line.price for line in lines if line.price is not None]
    whole = float(sum(known)) if len(known) == len(lines) else None
    module.exit_json(changed=False, sentence=sentence, dollars_per_hour=whole)


if __name__ == "__main__":
    main()
