#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: neuron_capacity_info
version_added: 0.1.0
short_description: Where instances of a type can be had, now or later, and at what price
description:
  - Asks EC2 for the Availability Zones that offer an instance type. Trainium is offered in a few zones of a few
    regions, and lists of them age.
  - With O(markets) it asks in which ways O(count) nodes can be had as well, and returns them in RV(options).
  - That a zone offers a type does not mean that it has capacity at the moment. Only reservations and Capacity Blocks
    promise it.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
options:
  instance_type:
    description:
      - The instance type, for example V(trn1.32xlarge).
      - One that EC2 does not know is an error, and with O(markets) or O(regions) a warning, since another region may.
    type: str
    required: true
  capacity_reservation_id:
    description: A capacity reservation of the module's region, of which RV(ends_at) is asked.
    type: str
    default: ""
  count:
    description:
      - A number of nodes of this type.
      - Without O(markets) there has to be room for their vCPUs in the account's quota of On-Demand ones, beside what
        runs. No room is an error. Where Service Quotas may not be asked, there is a warning.
      - With O(markets), so many nodes are looked for, and no room is told in RV(options).
      - With O(regions) it needs O(markets).
      - V(0) asks nothing, and is one node with O(markets).
    type: int
    default: 0
  markets:
    description:
      - In which ways nodes may be had.
      - V(on-demand) asks the price list and the quota, V(spot) the prices, the placement scores and the quota of spot
        instances, V(reservation) for the account's own reservations and Capacity Blocks with room in them, and
        V(capacity-block) for offerings of Capacity Blocks.
      - What the caller may not ask is a warning that names it.
    type: list
    elements: str
    choices: [on-demand, spot, reservation, capacity-block]
    default: []
    version_added: 0.2.0
  regions:
    description:
      - The regions to ask, a few of them at the same time. The default is the module's region.
      - One that the account has not enabled is a warning, unless no region answers.
      - An O(endpoint_url) is asked for every region.
    type: list
    elements: str
    default: []
    version_added: 0.2.0
  block_hours:
    description: For how long a Capacity Block should be, whole days up to 14 days and whole weeks up to 26 weeks.
    type: int
    default: 24
    version_added: 0.2.0
  starts_after:
    description:
      - A Capacity Block begins no earlier, such as V(2026-12-01T00:00:00Z). Without a time zone it is UTC.
      - If it is empty, it may begin at once. EC2 offers them up to eight weeks ahead.
    type: str
    default: ""
    version_added: 0.2.0
  ends_before:
    description: A Capacity Block ends no later. If it is empty, whenever it ends.
    type: str
    default: ""
    version_added: 0.2.0
seealso:
  - module: trainium.cluster.capacity_reservation
  - module: trainium.cluster.efa_instance
"""

EXAMPLES = r"""
- name: Ask where trn1.32xlarge can be had
  trainium.cluster.neuron_capacity_info:
    instance_type: trn1.32xlarge
  register: offered

- name: Show the zones
  ansible.builtin.debug:
    msg: "{{ offered.zones | join(', ') }}"

- name: Ask where four can be had now or next week, and at what price
  trainium.cluster.neuron_capacity_info:
    instance_type: trn1.32xlarge
    count: 4
    regions: [us-west-2, us-east-1, us-east-2]
    markets: [on-demand, spot, reservation, capacity-block]
    block_hours: 48
    ends_before: "2026-12-08T00:00:00Z"
  register: found

- name: Show what can be had soonest, and of that the cheapest
  ansible.builtin.debug:
    msg: "{{ found.options | selectattr('obstacle', 'eq', '') | first }}"
"""

RETURN = r"""
zones:
  description:
    - Names of the zones that offer the type, sorted. Empty where no region that was asked offers it.
  returned: success
  type: list
  elements: str
  sample: [us-west-2b, us-west-2d]
ends_at:
  description:
    - When EC2 begins to terminate the instances of O(capacity_reservation_id), in UTC, if that is a Capacity Block.
    - Empty for another reservation, and where none is asked.
  returned: success
  type: str
  sample: "2030-01-31T11:00:00Z"
options:
  description:
    - The ways to get O(count) nodes. First what can be had, the soonest first, and of what begins at the same time the
      cheapest first. What nobody tells the price of follows, and at the end what has an RV(options[].obstacle).
    - Spot instances can be interrupted at any time.
  returned: success
  type: list
  elements: dict
  version_added: 0.2.0
  contains:
    market:
      description: One of O(markets).
      type: str
      sample: capacity-block
    region:
      description: The region.
      type: str
      sample: us-west-2
    availability_zone:
      description: The zone. All nodes of a cluster should be in one.
      type: str
      sample: us-west-2d
    count:
      description: For how many nodes.
      type: int
      sample: 4
    starts_at:
      description: When it begins, in UTC. Empty for what can be tried now.
      type: str
      sample: "2026-12-01T11:30:00Z"
    ends_at:
      description:
        - When it ends, in UTC. Empty for what has no end. EC2 begins to terminate instances of a Capacity Block half an
          hour earlier, and of one of the account's own that time is given.
      type: str
      sample: "2026-12-03T11:30:00Z"
    price_per_hour:
      description:
        - US dollars an hour for all of the nodes, with Linux. V(0) in a reservation, which is paid for used or not.
        - It is V(null) where it is not known.
      type: float
      sample: 38.7
    price_total:
      description: US dollars in advance for the whole of a Capacity Block. It is V(null) for others.
      type: float
      sample: 1857.6
    placement_score:
      description:
        - How likely it is that EC2 has the spot capacity, 1 to 10. It is V(null) for others, and where it is not known.
        - AWS gives low ones to every request for less than three types; they compare zones with each other, no more.
      type: int
      sample: 3
    id:
      description: The id of the reservation or of the offering. Empty for others.
      type: str
      sample: cb-0a1b2c3d4e5f60006
    obstacle:
      description: Why it cannot be had as it is, such as a quota that is too small. Empty if there is nothing.
      type: str
      sample: ""
regions:
  description: What each region says that answered.
  returned: success
  type: list
  elements: dict
  version_added: 0.2.0
  contains:
    region:
      description: The region.
      type: str
      sample: us-west-2
    zones:
      description: Its zones that offer the type.
      type: list
      elements: str
      sample: [us-west-2b, us-west-2d]
    price_per_hour:
      description: US dollars an hour for one node on demand. It is V(null) where it is not known or not asked.
      type: float
      sample: 21.5
    quotas:
      description: The quotas of vCPUs for the type that were asked.
      type: list
      elements: dict
      contains:
        market:
          description: V(on-demand) or V(spot).
          type: str
          sample: on-demand
        name:
          description: The name of the quota.
          type: str
          sample: Running On-Demand Trn instances
        vcpus:
          description: How many vCPUs may run at once.
          type: int
          sample: 512
        used:
          description: How many of them are in use.
          type: int
          sample: 256
"""

from datetime import datetime, timezone
from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import offers, prices
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.calls_market import BRIEFLY
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.plan import instances_end
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.run_market import Market, Region
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_quotas import Account

ARGUMENTS: dict[str, dict[str, Any]] = {
    "instance_type": {"type": "str", "required": True},
    "capacity_reservation_id": {"type": "str", "default": ""},
    "count": {"type": "int", "default": 0},
    "markets": {
        "type": "list",
        "elements": "str",
        "choices": ["on-demand", "spot", "reservation", "capacity-block"],
        "default": [],
    },
    "regions": {"type": "list", "elements": "str", "default": []},
    "block_hours": {"type": "int", "default": 24},
    "starts_after": {"type": "str", "default": ""},
    "ends_before": {"type": "str", "default": ""},
}


def zones_here(module: AnsibleAWSModule) -> list[str]:
    """The zones of the module's region; raises where it has no room for the nodes."""
    kind, client = module.params["instance_type"], module.client("ec2")
    if ec2.describe_instance_type(client, kind) is None:
        raise TrainiumError(f"EC2 does not know the instance type {kind} in this region; check instance_type")
    zones = ec2.zones_offering(client, kind)
    if module.params["count"] > 0:
        account = Account(client, module.client("service-quotas"), warn)
        account.check_nodes({"instance_type": kind, "market": "on-demand"}, module.params["count"])
    return zones


def end_of(module: AnsibleAWSModule) -> str:
    """When EC2 begins to terminate the instances of the reservation that is named."""
    reservation = module.params["capacity_reservation_id"]
    found = ec2.describe_capacity_reservation(module.client("ec2"), reservation) if reservation else {}
    if found is None:
        raise TrainiumError(f"There is no capacity reservation {reservation}; check capacity_reservation_id")
    return instances_end(found)


def search(module: AnsibleAWSModule, names: list[str], wanted: offers.Wanted) -> list[offers.Found]:
    """What the regions say; the options of it are in the result."""
    market, regions, pricing = Market(wanted), [], {}
    for name in names:
        client = module.client("ec2", region=name, config=BRIEFLY)
        where = prices.asked_in(name) if "on-demand" in wanted.markets else ""
        if where and where not in pricing:
            pricing[where] = module.client("pricing", region=where, config=BRIEFLY)

        def take_note(text: str, region: str = name) -> None:
            market.notes.append(f"{region}: {text}")

        account = Account(client, module.client("service-quotas", region=name, config=BRIEFLY), take_note)
        regions.append(Region(name, client, account.usage, pricing.get(where)))
    found = market.find(regions)
    for note in market.notes:
        warn(note)
    if not any(one.zones for one in found):
        warn(f"None of {', '.join(one.region for one in found)} offers {wanted.kind}; check instance_type.")
    return found


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    wanted = offers.wanted_of(params, max(1, params["count"]), params["markets"])
    regions = list(dict.fromkeys(params["regions"])) or [module.region or ""]
    with failing(module, "neuron_capacity_info"):
        if not all(regions):
            raise TrainiumError("no region is given; set region or regions, or AWS_REGION")
        if params["regions"] and params["count"] > 0 and not params["markets"]:
            raise TrainiumError(
                f"count is {params['count']} with regions and without markets, so that nothing would say whether there "
                "is room; set markets, such as on-demand, or leave out count or regions"
            )
        if not params["markets"] and not params["regions"]:
            zones = zones_here(module)
            found = [offers.only_zones(regions[0], zones)]
        else:
            offers.check_arguments(wanted, params["regions"], datetime.now(timezone.utc))
            found = search(module, regions, wanted)
            zones = sorted(zone for one in found for zone in one.zones)
        ends_at = end_of(module)
    module.exit_json(
        changed=False,
        zones=zones,
        ends_at=ends_at,
        options=offers.options(found, wanted, datetime.now(timezone.utc)),
        regions=[offers.summary(one) for one in found],
    )


if __name__ == "__main__":
    main()
