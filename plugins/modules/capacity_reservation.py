#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: capacity_reservation
version_added: 0.1.0
short_description: Reserve EC2 capacity for a cluster, alone or in a resource group
description:
  - Makes, modifies and cancels an On-Demand Capacity Reservation, and puts it into a resource group that launches and
    AWS ParallelCluster can target.
  - A reservation costs as much as the instances it is for, from the moment in which it is made until it is cancelled or
    ends, whether instances run in it or not. Set O(end_date) where it may be forgotten.
  - The reservation is found by the tags C(trainium:cluster) and C(trainium:reservation) among those that hold capacity.
    A run that was killed can be repeated without reserving twice, as the request carries a ClientToken that follows
    from the request and from the tag C(trainium:generation).
  - Instances that run in a reservation go on running when it is cancelled, and are then billed by themselves.
  - With O(block_hours) it buys a Capacity Block in its place, which is paid in advance. B(A block can never be
    cancelled or changed,) and nothing is bought without O(accept_price_up_to). O(state=absent) leaves it, and says so.
  - EC2's purchase takes no client token. A block that was bought for O(name) of O(cluster_name) in the time from
    O(starts_after) to O(ends_before) is found by its tags and not bought again, also when it has ended. Two runs at the
    same moment wait for each other on one machine; on two machines, or in two regions, both could buy.
  - AWS does not say for how long it shows a block that has ended. Let O(ends_before) be a fixed date and no later than
    needed, or take the task away when the block is bought.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - EC2 is asked by DryRun whether it would accept a new reservation, which does not tell whether there is capacity.
      - Of a Capacity Block, RV(offering) shows what would be bought, and its price.
options:
  name:
    description:
      - The name of the reservation within its cluster, the tags C(Name) and C(trainium:reservation).
      - At most 100 letters, digits, dots, underscores and hyphens.
      - With O(state=absent) it may be left out. Then all reservations of O(cluster_name) are cancelled and all its
        resource groups of reservations are deleted.
    type: str
  cluster_name:
    description: The cluster that the reservation belongs to, the tag C(trainium:cluster). By default, O(name).
    type: str
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Without it there is no such tag.
      - What carries another owner's is refused; sessions of one IAM role are one owner.
    type: str
    version_added: 0.2.0
  state:
    description:
      - V(present) makes the reservation or changes what EC2 lets change, which are O(count), O(end_date),
        O(match_criteria) while it is unused, and tags. Other differences are refused.
      - V(absent) takes the reservation out of its groups, cancels it, and deletes the groups that this module made and
        that are empty then.
    type: str
    choices: [present, absent]
    default: present
  instance_type:
    description: The instance type, such as V(trn1.32xlarge). Needed for O(state=present).
    type: str
  count:
    description: For how many instances. It cannot get lower than the number that runs in the reservation.
    type: int
    default: 1
  availability_zone:
    description: The name of the zone. Needed for O(state=present), if O(availability_zone_id) is not given.
    type: str
  availability_zone_id:
    description: The id of the zone, which means the same zone in every account, such as V(usw2-az4).
    type: str
  platform:
    description: The platform of the instances. V(Linux/UNIX) is for Amazon Linux and Ubuntu.
    type: str
    choices: [Linux/UNIX, Red Hat Enterprise Linux, SUSE Linux, Ubuntu Pro, Windows]
    default: Linux/UNIX
  tenancy:
    description: Whether the instances run on hardware of their own.
    type: str
    choices: [default, dedicated]
    default: default
  ebs_optimized:
    description:
      - Whether the reservation is for instances with EBS optimization at an extra price. Trainium types have it as is.
    type: bool
    default: false
  match_criteria:
    description:
      - V(targeted) serves instances only that name the reservation or its resource group.
      - V(open) serves every instance of the type in the zone, also those of others in the account.
    type: str
    choices: [open, targeted]
    default: targeted
  end_date:
    description:
      - When the reservation ends by itself, such as V(2026-12-31T23:59:59Z). Without a time zone it is UTC. EC2 ends it
        within an hour after that.
      - If it is not given or empty, the reservation has no end, also where it had one.
    type: str
  resource_group:
    description:
      - The name of the resource group that the reservation is in, made where it is missing. The group must be one for
        capacity reservations.
      - Other groups of the cluster that this module made are left, and deleted if they become empty.
      - If it is empty, the reservation leaves them all. If it is not given, its groups stay as they are.
    type: str
  block_hours:
    description:
      - For how long a Capacity Block is bought, whole days up to 14 days and whole weeks up to 26 weeks. All end at
        11:30 UTC, so that what EC2 offers may be some hours shorter or longer.
      - If it is not given, the reservation is an On-Demand one.
      - O(availability_zone) may be left out then, O(count) is at most 64. O(availability_zone_id), O(end_date),
        O(match_criteria), O(resource_group), O(tenancy) and O(ebs_optimized) are not for blocks.
    type: int
    version_added: 0.2.0
  starts_after:
    description:
      - The block begins no earlier, such as V(2026-12-01T00:00:00Z). Without a time zone it is UTC. If it is empty, it
        may begin at once.
    type: str
    default: ""
    version_added: 0.2.0
  ends_before:
    description:
      - The block ends no later. Needed with O(block_hours), so that a run that is repeated after that buys nothing.
    type: str
    default: ""
    version_added: 0.2.0
  accept_price_up_to:
    description:
      - What the block may cost at most, in US dollars for all of it. Of the offerings that do not cost more, the one
        with the lowest price for an hour is bought, and of these the soonest.
      - Without it nothing is bought, and the price is in the error.
    type: float
    version_added: 0.2.0
  purchase_pause:
    description:
      - For how many seconds the module looks, before it buys, whether a run that was killed a moment ago has bought the
        block already. What was bought may not be visible at once.
    type: int
    default: 60
    version_added: 0.2.0
  wait:
    description:
      - Whether to wait until the reservation is active. A Capacity Block, which begins later, is not waited for.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most.
    type: int
    default: 300
  tags:
    description:
      - Further tags. An existing reservation gets tags that are missing or different; other tags are never removed.
      - Keys that begin with C(trainium:) or C(aws:) are refused.
    type: dict
    aliases: [resource_tags]
seealso:
  - module: trainium.cluster.efa_instance
  - module: trainium.cluster.neuron_capacity_info
"""

EXAMPLES = r"""
- name: Sixteen trn1.32xlarge until the end of the week, in a group that a queue can target
  trainium.cluster.capacity_reservation:
    name: llama
    instance_type: trn1.32xlarge
    count: 16
    availability_zone: us-west-2d
    end_date: "2026-12-31T23:59:59Z"
    resource_group: llama
  register: reserved

- name: Nodes that run in it
  trainium.cluster.efa_instance:
    name: llama
    count: 16
    instance_type: trn1.32xlarge
    image_id: ami-0a1b2c3d4e5f60004
    subnets: [subnet-0a1b2c3d4e5f60001]
    security_groups: [sg-0a1b2c3d4e5f60003]
    capacity_reservation: {id: "{{ reserved.capacity_reservation_id }}"}

- name: Four trn1.32xlarge for two days of next week, for at most 2,000 dollars
  trainium.cluster.capacity_reservation:
    name: llama-block
    cluster_name: llama
    instance_type: trn1.32xlarge
    count: 4
    block_hours: 48
    starts_after: "2026-12-07T00:00:00Z"
    ends_before: "2026-12-14T00:00:00Z"
    accept_price_up_to: 2000

- name: Stop paying for it
  trainium.cluster.capacity_reservation:
    name: llama
    state: absent

- name: Cancel whatever a cluster has reserved
  trainium.cluster.capacity_reservation:
    cluster_name: llama
    state: absent
"""

RETURN = r"""
capacity_reservation:
  description: The reservation. Empty with O(state=absent).
  returned: success
  type: dict
  contains:
    capacity_reservation_id:
      description: The id; empty for one that check mode promises.
      type: str
      sample: cr-0a1b2c3d4e5f60005
    arn:
      description: The ARN.
      type: str
      sample: arn:aws:ec2:us-west-2:123456789012:capacity-reservation/cr-0a1b2c3d4e5f60005
    state:
      description: The state, such as V(active).
      type: str
      sample: active
    instance_type:
      description: The instance type.
      type: str
      sample: trn1.32xlarge
    availability_zone:
      description: The name of the zone.
      type: str
      sample: us-west-2d
    availability_zone_id:
      description: The id of the zone.
      type: str
      sample: usw2-az4
    count:
      description: For how many instances.
      type: int
      sample: 16
    available_count:
      description: How many more instances can run in it.
      type: int
      sample: 16
    platform:
      description: The platform.
      type: str
      sample: Linux/UNIX
    tenancy:
      description: The tenancy.
      type: str
      sample: default
    ebs_optimized:
      description: Whether it is for instances with EBS optimization at an extra price.
      type: bool
      sample: false
    match_criteria:
      description: V(open) or V(targeted).
      type: str
      sample: targeted
    end_date:
      description: When it ends, in UTC; empty if it has no end.
      type: str
      sample: "2026-12-31T23:59:59Z"
    capacity_block:
      description: Whether it is a Capacity Block.
      type: bool
      sample: false
    starts_at:
      description: When a Capacity Block begins, in UTC; empty for another reservation.
      type: str
      sample: ""
    resource_groups:
      description: The names of the resource groups that it is in.
      type: list
      elements: str
      sample: [llama]
    tags:
      description: The tags.
      type: dict
      sample: {"trainium:cluster": "llama", "trainium:reservation": "llama"}
capacity_reservation_id:
  description: The id of RV(capacity_reservation).
  returned: success
  type: str
  sample: cr-0a1b2c3d4e5f60005
arn:
  description: The ARN of RV(capacity_reservation).
  returned: success
  type: str
  sample: arn:aws:ec2:us-west-2:123456789012:capacity-reservation/cr-0a1b2c3d4e5f60005
available_count:
  description: How many more instances can run in RV(capacity_reservation).
  returned: success
  type: int
  sample: 16
resource_group_arn:
  description: The ARN of O(resource_group); empty if none is given.
  returned: success
  type: str
  sample: arn:aws:resource-groups:us-west-2:123456789012:group/llama
cancelled:
  description: The ids of the reservations that were or would be cancelled.
  returned: success
  type: list
  elements: str
deleted_groups:
  description: The names of the resource groups that were or would be deleted with O(state=absent).
  returned: success
  type: list
  elements: str
kept_groups:
  description: The names of the resource groups of the cluster that hold reservations of others.
  returned: success
  type: list
  elements: str
offering:
  description:
    - The offering that was or would be bought, as one of the options that M(trainium.cluster.neuron_capacity_info)
      returns.
    - Empty where nothing is bought.
  returned: success
  type: dict
  version_added: 0.2.0
  sample: {id: cb-0a1b2c3d4e5f60006, price_total: 1857.6, starts_at: "2026-12-08T11:30:00Z"}
"""

from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.run import CapacityReservation
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.run_block import CapacityBlock
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing, finish

ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "cluster_name": {"type": "str"},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "instance_type": {"type": "str"},
    "count": {"type": "int", "default": 1},
    "availability_zone": {"type": "str"},
    "availability_zone_id": {"type": "str"},
    "platform": {
        "type": "str",
        "choices": ["Linux/UNIX", "Red Hat Enterprise Linux", "SUSE Linux", "Ubuntu Pro", "Windows"],
        "default": "Linux/UNIX",
    },
    "tenancy": {"type": "str", "choices": ["default", "dedicated"], "default": "default"},
    "ebs_optimized": {"type": "bool", "default": False},
    "match_criteria": {"type": "str", "choices": ["open", "targeted"], "default": "targeted"},
    "end_date": {"type": "str"},
    "resource_group": {"type": "str"},
    "block_hours": {"type": "int"},
    "starts_after": {"type": "str", "default": ""},
    "ends_before": {"type": "str", "default": ""},
    "accept_price_up_to": {"type": "float"},
    "purchase_pause": {"type": "int", "default": 60},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 300},
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    with failing(module, "capacity_reservation", module.params["name"] or module.params["cluster_name"]):
        client = module.client("ec2")
        # Missing capacity comes as a server error, and asking again at once would not help.
        # Given so, since the user's aws_config wins over ``config``, and would repeat what is paid for.
        maker = module.client("ec2", aws_config={**(module.params["aws_config"] or {}), "retries": {"max_attempts": 0}})
        params, said = module.params, (module.check_mode, warn)
        runner: CapacityBlock | CapacityReservation
        if params["block_hours"] is not None and params["state"] == "present":
            runner = CapacityBlock(client, maker, params, *said)
        else:
            runner = CapacityReservation(client, maker, module.client("resource-groups"), params, *said)
        result = runner.run()
    finish(module, result)


if __name__ == "__main__":
    main()
