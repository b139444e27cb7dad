# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The variables that describe the nodes of a cluster of ParallelCluster."""

from __future__ import annotations


class ModuleDocFragment:
    """C(trainium.cluster.pcluster_nodes)."""

    DOCUMENTATION = r"""
options:
  head_node:
    description: The head node.
    type: dict
    suboptions:
      instance_type:
        description: The instance type; V(m5.2xlarge) unless the preset says otherwise.
        type: str
      subnet_id:
        description: The subnet, a public one for logging in from outside.
        type: str
      elastic_ip:
        description: V(true) for a new Elastic IP, or the allocation id of one.
        type: str
      shared_storage_type:
        description: Where the directories lie that the head node shares.
        type: str
        choices: [Ebs, Efs]
      dcv:
        description: Whether there is a remote desktop, open to O(allowed_ips).
        type: bool
      root_volume_size:
        description: GiB of the encrypted root volume; 200 unless the preset says otherwise.
        type: int
      s3_access:
        description: Further buckets for this node.
        type: list
        elements: dict
        suboptions:
          bucket:
            description: The name of the bucket.
            type: str
            required: true
          key:
            description: The keys, such as V(data/*); by default all.
            type: str
          write:
            description: Whether they may be written too.
            type: bool
      custom_ami:
        description: The AMI of these nodes, instead of O(custom_ami).
        type: str
      security_groups:
        description: Ids of security groups that are used instead of the cluster's own.
        type: list
        elements: str
      additional_security_groups:
        description: Ids of security groups beside the cluster's own.
        type: list
        elements: str
      custom_actions:
        description: Scripts of these nodes, by event, instead of those in O(custom_actions).
        type: dict
      iam_policies:
        description: ARNs of further policies for these nodes.
        type: list
        elements: str
      instance_profile:
        description: The ARN of an instance profile, which replaces every other right that is given.
        type: str
      instance_role:
        description: The ARN of a role, which replaces every other right that is given.
        type: str
  login_nodes:
    description: Pools of login nodes.
    type: list
    elements: dict
    suboptions:
      name:
        description: The name.
        type: str
        default: login
      instance_type:
        description: The instance type, by default V(m5.xlarge).
        type: str
      count:
        description: How many nodes there are, by default 1.
        type: int
      gracetime_period:
        description: Minutes that users get before a node goes.
        type: int
      subnet_id:
        description: The subnet, by default the head node's.
        type: str
      allowed_ips:
        description: The addresses that may log in, by default O(allowed_ips).
        type: str
      custom_ami:
        description: The AMI of these nodes, instead of O(custom_ami).
        type: str
      security_groups:
        description: Ids of security groups that are used instead of the cluster's own.
        type: list
        elements: str
      additional_security_groups:
        description: Ids of security groups beside the cluster's own.
        type: list
        elements: str
      custom_actions:
        description: Scripts of these nodes, by event, instead of those in O(custom_actions).
        type: dict
      iam_policies:
        description: ARNs of further policies for these nodes.
        type: list
        elements: str
      instance_profile:
        description: The ARN of an instance profile, which replaces every other right that is given.
        type: str
      instance_role:
        description: The ARN of a role, which replaces every other right that is given.
        type: str
  queues:
    description:
      - The queues. Upon those of a preset they are laid by name.
    type: list
    elements: dict
    suboptions:
      name:
        description: The name.
        type: str
        required: true
      compute_resources:
        description: The kinds of nodes in the queue.
        type: list
        elements: dict
        suboptions:
          name:
            description: The name.
            type: str
            required: true
          instance_type:
            description: The instance type.
            type: str
          instance_types:
            description: Several types from which ParallelCluster chooses.
            type: list
            elements: str
          min_count:
            description: Static nodes, by default none.
            type: int
          max_count:
            description: Nodes altogether, by default 10.
            type: int
          efa:
            description: Whether EFA is on; by default where the type has it and the queue has one subnet.
            type: bool
          gdr_support:
            description: Whether GPUDirect is on.
            type: bool
          capacity_reservation:
            description: A capacity reservation of one id or of a resource group.
            type: dict
            suboptions:
              id:
                description: The id, such as V(cr-0a1b2c3d4e5f60001).
                type: str
              resource_group_arn:
                description: The ARN of a resource group of reservations.
                type: str
              owner:
                description:
                  - Who made it. Reservations of V(aws) have a placement group of their own.
                  - By default V(aws) for p4, p5 and p6, and V(self) for other types.
                type: str
                choices: [self, aws]
          disable_hyperthreading:
            description: Whether each core shows one thread only.
            type: bool
          spot_price:
            description: The highest price for spot instances.
            type: float
          schedulable_memory:
            description: MiB that jobs can ask for.
            type: int
      capacity_type:
        description: How the nodes are paid for.
        type: str
        choices: [ONDEMAND, SPOT, CAPACITY_BLOCK]
      allocation_strategy:
        description: How ParallelCluster chooses from O(queues[].compute_resources[].instance_types).
        type: str
      capacity_reservation:
        description: A reservation for all compute resources of the queue.
        type: dict
        suboptions:
          id:
            description: The id, such as V(cr-0a1b2c3d4e5f60001).
            type: str
          resource_group_arn:
            description: The ARN of a resource group of reservations.
            type: str
          owner:
            description:
              - Who made it. Reservations of V(aws) have a placement group of their own.
              - By default V(aws) for p4, p5 and p6, and V(self) for other types.
            type: str
            choices: [self, aws]
      job_exclusive_allocation:
        description: Whether a job has its nodes to itself; by default so where they have Neuron devices.
        type: bool
      subnet_ids:
        description: The subnets, by default O(compute_subnet_ids).
        type: list
        elements: str
      placement_group:
        description: As O(placement_group), for this queue.
        type: str
      ephemeral_dir:
        description: Where the nodes' own NVMe disks are mounted.
        type: str
      root_volume_size:
        description: GiB of the encrypted root volumes; by default 512 for Neuron and 200 for others.
        type: int
      custom_slurm_settings:
        description: Lines for the partition in the configuration of Slurm.
        type: dict
      tags:
        description: Tags of the nodes.
        type: dict
      s3_access:
        description: Further buckets for these nodes.
        type: list
        elements: dict
        suboptions:
          bucket:
            description: The name of the bucket.
            type: str
            required: true
          key:
            description: The keys, such as V(data/*); by default all.
            type: str
          write:
            description: Whether they may be written too.
            type: bool
      custom_ami:
        description: The AMI of these nodes, instead of O(custom_ami).
        type: str
      security_groups:
        description: Ids of security groups that are used instead of the cluster's own.
        type: list
        elements: str
      additional_security_groups:
        description: Ids of security groups beside the cluster's own.
        type: list
        elements: str
      custom_actions:
        description: Scripts of these nodes, by event, instead of those in O(custom_actions).
        type: dict
      iam_policies:
        description: ARNs of further policies for these nodes.
        type: list
        elements: str
      instance_profile:
        description: The ARN of an instance profile, which replaces every other right that is given.
        type: str
      instance_role:
        description: The ARN of a role, which replaces every other right that is given.
        type: str
"""
