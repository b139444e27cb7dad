# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The variables that describe a cluster of ParallelCluster, its nodes among them."""

from __future__ import annotations


class ModuleDocFragment:
    """C(trainium.cluster.pcluster_variables)."""

    DOCUMENTATION = r"""
options:
  region:
    description: The AWS region.
    type: str
  os:
    description: >-
      The operating system; V(ubuntu2404) unless the preset says otherwise, the one that current Neuron runs on.
    type: str
    choices: [ubuntu2404, ubuntu2204, alinux2023, rhel8, rhel9, rocky8, rocky9]
  custom_ami:
    description: The AMI of all nodes, instead of the official one.
    type: str
  key_name:
    description: The key pair for ssh to the head node.
    type: str
  allowed_ips:
    description:
      - The addresses that may log in by ssh, such as V(198.51.100.7/32), or the id of a prefix list.
      - Without it the configuration is refused, because ParallelCluster would let in the whole Internet.
    type: str
  ssm_access:
    description:
      - Whether all nodes get the policy for Session Manager. With it every user of a node may read all parameters of
        Systems Manager in the account.
    type: bool
  iam_policies:
    description: ARNs of further policies for all nodes.
    type: list
    elements: str
  s3_access:
    description: Buckets that head node and compute nodes may read. The folders of scripts in S3 are added.
    type: list
    elements: dict
    suboptions: &s3_access
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
  compute_subnet_ids:
    description:
      - The subnets of queues that do not name their own, best private ones.
      - EFA wants one. A queue with EFA, several subnets and nothing reserved becomes one for each subnet, and the
        others have the name of the first with C(-z2) and so on.
    type: list
    elements: str
  instance_type:
    description:
      - The instance type of the first compute resource of the first queue, the one that trains. What O(queues) says of
        it itself wins, here and in O(min_count), O(max_count) and O(capacity_reservation).
    type: str
  min_count:
    description: Its static nodes, which are always there. Where all of a preset's are, O(max_count) alone is enough.
    type: int
  max_count:
    description: Its nodes altogether.
    type: int
  capacity_reservation:
    description: Its capacity reservation.
    type: dict
    suboptions: &reservation
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
  placement_group:
    description:
      - V(true), V(false), or the name of a placement group.
      - By default nodes with EFA get one, but not beside a reservation of AWS or a Capacity Block.
    type: str
  ephemeral_dir:
    description: Where the compute nodes' own NVMe disks are mounted; ParallelCluster's default is V(/scratch).
    type: str
  shared_storage:
    description:
      - What all nodes mount, each with C(type), C(mount_dir), C(name) and the options of its type in snake case,
        such as C(file_system_id), C(provisioned_throughput) or C(storage_capacity).
      - Types are C(efs), C(fsx_lustre), C(fsx_openzfs), C(fsx_ontap), C(file_cache), C(ebs) and C(nfs). An id of an
        existing one is mounted, otherwise a new one is made, encrypted.
      - It replaces the shared storage of a preset, so all of it has to be named. With C(deletion_policy) V(Retain) an
        entry stays when the cluster is deleted, and is billed.
      - Type C(nfs) takes C(server), C(path), C(options) and C(script), the URL of a script that every node runs
        with the source, the directory and the options.
    type: list
    elements: dict
  custom_actions:
    description:
      - Scripts by kind of node (C(head), C(compute), C(login)) and event (C(on_node_start), C(on_node_configured),
        and C(on_node_updated) for head and login nodes), as a list of C(script), a URL, and C(args).
    type: dict
  setup_actions:
    description:
      - Scripts as in O(custom_actions) that run before them on every node of the kind, after the mounting of
        O(shared_storage) of type C(nfs). Nothing that a queue or a node has of its own replaces them.
    type: dict
  head_bootstrap_timeout:
    description:
      - Seconds that the head node may take until it is ready, its scripts and static nodes included. The default of
        ParallelCluster is 2100, here as for compute nodes.
      - It cannot be changed in a cluster that exists.
    type: int
  compute_bootstrap_timeout:
    description: Seconds that a compute node may take until it is ready, its scripts included.
    type: int
  scaling_strategy:
    description: What happens if not all nodes of a job can be had.
    type: str
    choices: [all-or-nothing, best-effort, greedy-all-or-nothing]
  scaledown_idletime:
    description: Minutes after which an idle dynamic node goes.
    type: int
  queue_update_strategy:
    description: What an update does with nodes that it concerns.
    type: str
    choices: [COMPUTE_FLEET_STOP, DRAIN, TERMINATE]
  custom_slurm_settings:
    description: Lines for the configuration of Slurm.
    type: dict
  accounting:
    description: The database of Slurm accounting.
    type: dict
    suboptions:
      uri:
        description: Its host and port, such as V(db.example.com:3306).
        type: str
      user_name:
        description: Its user.
        type: str
      password_secret_arn:
        description: The ARN of the secret with the password.
        type: str
      database_name:
        description: The name of the database, by default the cluster's.
        type: str
  monitoring:
    description: What is watched.
    type: dict
    suboptions:
      detailed:
        description: Whether EC2 metrics come each minute.
        type: bool
      dashboard:
        description: Whether there is a CloudWatch dashboard, by default so.
        type: bool
      alarms:
        description: Whether there are alarms, by default so.
        type: bool
      log_retention_days:
        description: Days that logs are kept, by default 30.
        type: int
      log_deletion_policy:
        description: What becomes of the logs when the cluster goes.
        type: str
        choices: [Delete, Retain]
  tags:
    description: Tags of all resources.
    type: dict
  overrides:
    description:
      - Keys of ParallelCluster that are laid upon the rendered configuration, such as C(DevSettings).
      - Lists whose items have a name are merged by it, and V(null) removes a key.
    type: dict
  head_node:
    description: The head node.
    type: dict
    suboptions:
      <<: &node
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
        suboptions: *s3_access
  login_nodes:
    description: Pools of login nodes.
    type: list
    elements: dict
    suboptions:
      <<: *node
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
  queues:
    description:
      - The queues. Upon those of a preset they are laid by name.
    type: list
    elements: dict
    suboptions:
      <<: *node
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
            description: Whether EFA is on; by default where the type has it.
            type: bool
          gdr_support:
            description: Whether GPUDirect is on.
            type: bool
          capacity_reservation:
            description: A capacity reservation of one id or of a resource group.
            type: dict
            suboptions: *reservation
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
        suboptions: *reservation
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
        suboptions: *s3_access
"""
