#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: neuron_capacity_info
version_added: 0.1.0
short_description: The zones of a region that offer an instance type
description:
  - Asks EC2 for the Availability Zones that offer an instance type. Trainium is offered in a few zones of a few
    regions, and lists of them age.
  - That a zone offers a type does not mean that it has capacity at the moment.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
options:
  instance_type:
    description: The instance type, for example V(trn1.32xlarge). One that EC2 does not know is an error.
    type: str
    required: true
  capacity_reservation_id:
    description: A capacity reservation, of which RV(ends_at) is asked.
    type: str
    default: ""
  count:
    description:
      - A number of nodes of this type for whose vCPUs there has to be room in the account's quota of On-Demand ones,
        beside what runs. No room is an error. Where Service Quotas may not be asked, there is a warning.
      - V(0) asks nothing.
    type: int
    default: 0
seealso:
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
"""

RETURN = r"""
zones:
  description: Names of the zones that offer the type, sorted. Empty where the region does not offer it.
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
"""

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.plan import instances_end
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_quotas import Account


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "instance_type": {"type": "str", "required": True},
            "capacity_reservation_id": {"type": "str", "default": ""},
            "count": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    reservation = module.params["capacity_reservation_id"]
    kind = module.params["instance_type"]
    client = module.client("ec2")
    try:
        if ec2.describe_instance_type(client, kind) is None:
            raise TrainiumError(f"EC2 does not know the instance type {kind} in this region; check instance_type")
        zones = ec2.zones_offering(client, kind)
        if module.params["count"] > 0:
            wanted = {"instance_type": kind, "market": "on-demand"}
            account = Account(client, module.client("service-quotas"), module.warn)
            account.check_nodes(wanted, module.params["count"])
        found = ec2.describe_capacity_reservation(client, reservation) if reservation else {}
        if found is None:
            raise TrainiumError(f"There is no capacity reservation {reservation}; check capacity_reservation_id")
        ends_at = instances_end(found)
    except TrainiumError as error:
        module.fail_json(msg=f"neuron_capacity_info: {error}.", **error.details)
    module.exit_json(changed=False, zones=zones, ends_at=ends_at)


if __name__ == "__main__":
    main()
