# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options of how EC2 instances are launched; their argument specification is in module_utils/_ec2/arguments.py."""

from __future__ import annotations


class ModuleDocFragment:
    """C(trainium.cluster.launch), and what a template does not have: C(trainium.cluster.launch.instance) and
    C(trainium.cluster.launch.number)."""

    DOCUMENTATION = r"""
options:
  key_name:
    description: The key pair for the first login.
    type: str
  interface_layout:
    description:
      - V(efa) puts an interface with an address and EFA on every network card.
      - V(efa-only) has one interface with an address, and EFA without an address on every card. It saves addresses.
      - V(parallelcluster) is what AWS ParallelCluster 3.15 and newer do. It differs from V(efa-only) on primary cards
        that take one interface only.
      - V(none) is a single plain interface.
      - By default V(efa) for types with EFA and V(none) for others. A layout with EFA is refused for a type without.
    type: str
    choices: [efa, efa-only, parallelcluster, none]
  placement_group:
    description:
      - The name of an existing placement group.
      - The default is that in which the capacity reservation that is named by its id was made, if it was made in one.
    type: str
  user_data:
    description: User data, as plain text.
    type: str
  capacity_reservation:
    description:
      - Capacity that was reserved. An empty dictionary means none in particular.
      - AWS advises against a placement group together with a reservation that AWS provides.
    type: dict
    suboptions:
      id:
        description: The id of an On-Demand Capacity Reservation or a Capacity Block. Its zone decides on the subnet.
        type: str
      resource_group_arn:
        description: The ARN of a resource group of reservations.
        type: str
      preference:
        description: Whether open reservations may be used where none is named.
        type: str
        choices: [open, none, capacity-reservations-only]
  volumes:
    description:
      - EBS volumes of each node.
      - Volumes that the image brings and that are not named here are encrypted gp3 volumes of the image's size.
    type: list
    elements: dict
    suboptions:
      device_name:
        description: The device, such as V(/dev/sdf). By default the image's root device.
        type: str
      size:
        description: GiB. By default, the size of the snapshot.
        type: int
      type:
        description: The volume type.
        type: str
        choices: [gp2, gp3, io1, io2, st1, sc1, standard]
        default: gp3
      iops:
        description: Operations per second, for V(gp3), V(io1) and V(io2).
        type: int
      throughput:
        description: MiB/s, for V(gp3).
        type: int
      encrypted:
        description: Whether the volume is encrypted.
        type: bool
        default: true
      kms_key_id:
        description: The KMS key to encrypt with. By default, the account's for EBS.
        type: str
      snapshot_id:
        description: The snapshot to start from.
        type: str
      delete_on_termination:
        description: Whether the volume goes with the node.
        type: bool
        default: true
  metadata_options:
    description: How the instance metadata service answers.
    type: dict
    suboptions:
      http_tokens:
        description: V(required) allows IMDSv2 only.
        type: str
        choices: [required, optional]
        default: required
      http_put_response_hop_limit:
        description: How many network hops an answer may take. Containers need 2.
        type: int
        default: 2
"""

    INSTANCE = r"""
options:
  instance_profile:
    description: The name or ARN of the instance profile.
    type: str
  public_ip:
    description:
      - V(primary) associates an Elastic IP with card 0, device 0 of each node. An unassociated one with the cluster's
        tag is used where there is one, and one is allocated otherwise, before anything is launched.
      - V(none) releases the addresses that the set allocated.
      - EC2 assigns no public address to an instance that is launched with several interfaces.
      - An address can only be associated with a running node, so V(primary) waits even with O(wait=false).
    type: str
    choices: [none, primary]
    default: none
  market:
    description:
      - How the capacity is bought. V(capacity-block) needs O(capacity_reservation.id).
      - Spot nodes are terminated when interrupted, and cannot be stopped.
    type: str
    choices: [on-demand, spot, capacity-block]
    default: on-demand
"""

    NUMBER = r"""
options:
  count:
    description: How many nodes there should be. A number below that of the existing nodes needs O(allow_shrink).
    type: int
    default: 1
  allow_shrink:
    description:
      - Whether a lowered O(count) may terminate nodes. What runs on them is not looked at.
      - Without it such a count is refused, as it may come from a run that lacks its variables.
    type: bool
    default: false
  leaving:
    description:
      - Ids of the nodes that a lowered O(count) terminates; no others are then, and a count that would is refused.
      - By default the newest nodes are terminated.
    type: list
    elements: str
  replace:
    description:
      - Ids of nodes to terminate and to launch anew, with the same rank and, where nobody else has taken it, the same
        private address and thus the same name. Ids of nodes that are gone are passed over, and those of
        living instances that are not of the set refused.
      - They end before the launch, as address, reserved capacity and quota are free only then. EC2 is asked by DryRun
        before whether it would accept the launch, which does not tell whether it has the capacity. Where it has none,
        the next run launches what is missing, in the same place as long as EC2 shows the tags of the node that ended.
    type: list
    elements: str
    version_added: 0.3.0
"""
