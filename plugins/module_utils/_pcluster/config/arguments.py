# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The variables that describe a cluster of ParallelCluster, for the module's arguments and for its documentation."""

from __future__ import annotations

from functools import partial
from typing import Any

Options = dict[str, dict[str, Any]]

SYSTEMS = ["ubuntu2404", "ubuntu2204", "alinux2023", "rhel8", "rhel9", "rocky8", "rocky9"]


def _option(kind: str, *paragraphs: str, **further: Any) -> dict[str, Any]:
    return {"description": paragraphs[0] if len(paragraphs) == 1 else list(paragraphs), "type": kind, **further}


_text = partial(_option, "str")
_number = partial(_option, "int")
_switch = partial(_option, "bool")
_mapping = partial(_option, "dict")
_texts = partial(_option, "list", elements="str")
_mappings = partial(_option, "list", elements="dict")

_RESERVATION: Options = {
    "id": _text("The id, such as V(cr-0a1b2c3d4e5f60001)."),
    "resource_group_arn": _text("The ARN of a resource group of reservations."),
    "owner": _text(
        "Who made it. Reservations of V(aws) have a placement group of their own.",
        "By default V(aws) for p4, p5 and p6, and V(self) for other types.",
        choices=["self", "aws"],
    ),
}

_S3_ACCESS: Options = {
    "bucket": _text("The name of the bucket.", required=True),
    "key": _text("The keys, such as V(data/*); by default all.", no_log=False),
    "write": _switch("Whether they may be written too."),
}

# What head node, login nodes and queues have in common.
_NODE: Options = {
    "custom_ami": _text("The AMI of these nodes, instead of O(custom_ami)."),
    "security_groups": _texts("Ids of security groups that are used instead of the cluster's own."),
    "additional_security_groups": _texts("Ids of security groups beside the cluster's own."),
    "custom_actions": _mapping("Scripts of these nodes, by event, instead of those in O(custom_actions)."),
    "iam_policies": _texts("ARNs of further policies for these nodes."),
    "instance_profile": _text("The ARN of an instance profile, which replaces every other right that is given."),
    "instance_role": _text("The ARN of a role, which replaces every other right that is given."),
}

_HEAD_NODE: Options = {
    **_NODE,
    "instance_type": _text("The instance type; V(m5.2xlarge) unless the preset says otherwise."),
    "subnet_id": _text("The subnet, a public one for logging in from outside."),
    "elastic_ip": _text("V(true) for a new Elastic IP, or the allocation id of one."),
    "shared_storage_type": _text("Where the directories lie that the head node shares.", choices=["Ebs", "Efs"]),
    "dcv": _switch("Whether there is a remote desktop, open to O(allowed_ips)."),
    "root_volume_size": _number("GiB of the encrypted root volume; 200 unless the preset says otherwise."),
    "s3_access": _mappings("Further buckets for this node.", options=_S3_ACCESS),
}

_LOGIN_POOL: Options = {
    **_NODE,
    "name": _text("The name.", default="login"),
    "instance_type": _text("The instance type, by default V(m5.xlarge)."),
    "count": _number("How many nodes there are, by default 1."),
    "gracetime_period": _number("Minutes that users get before a node goes."),
    "subnet_id": _text("The subnet, by default the head node's."),
    "allowed_ips": _text("The addresses that may log in, by default O(allowed_ips)."),
}

_COMPUTE_RESOURCE: Options = {
    "name": _text("The name.", required=True),
    "instance_type": _text("The instance type."),
    "instance_types": _texts("Several types from which ParallelCluster chooses."),
    "min_count": _number("Static nodes, by default none."),
    "max_count": _number("Nodes altogether, by default 10."),
    "efa": _switch("Whether EFA is on; by default where the type has it."),
    "gdr_support": _switch("Whether GPUDirect is on."),
    "capacity_reservation": _mapping("A capacity reservation of one id or of a resource group.", options=_RESERVATION),
    "disable_hyperthreading": _switch("Whether each core shows one thread only."),
    "spot_price": _option("float", "The highest price for spot instances."),
    "schedulable_memory": _number("MiB that jobs can ask for."),
}

_QUEUE: Options = {
    **_NODE,
    "name": _text("The name.", required=True),
    "compute_resources": _mappings("The kinds of nodes in the queue.", options=_COMPUTE_RESOURCE),
    "capacity_type": _text("How the nodes are paid for.", choices=["ONDEMAND", "SPOT", "CAPACITY_BLOCK"]),
    "allocation_strategy": _text("How ParallelCluster chooses from O(queues[].compute_resources[].instance_types)."),
    "capacity_reservation": _mapping("A reservation for all compute resources of the queue.", options=_RESERVATION),
    "job_exclusive_allocation": _switch(
        "Whether a job has its nodes to itself; by default so where they have Neuron devices."
    ),
    "subnet_ids": _texts("The subnets, by default O(compute_subnet_ids)."),
    "placement_group": _text("As O(placement_group), for this queue."),
    "ephemeral_dir": _text("Where the nodes' own NVMe disks are mounted."),
    "root_volume_size": _number("GiB of the encrypted root volumes; by default 512 for Neuron and 200 for others."),
    "custom_slurm_settings": _mapping("Lines for the partition in the configuration of Slurm."),
    "tags": _mapping("Tags of the nodes."),
    "s3_access": _mappings("Further buckets for these nodes.", options=_S3_ACCESS),
}

_ACCOUNTING: Options = {
    "uri": _text("Its host and port, such as V(db.example.com:3306)."),
    "user_name": _text("Its user."),
    "password_secret_arn": _text("The ARN of the secret with the password.", no_log=False),
    "database_name": _text("The name of the database, by default the cluster's."),
}

_MONITORING: Options = {
    "detailed": _switch("Whether EC2 metrics come each minute."),
    "dashboard": _switch("Whether there is a CloudWatch dashboard, by default so."),
    "alarms": _switch("Whether there are alarms, by default so."),
    "log_retention_days": _number("Days that logs are kept, by default 30."),
    "log_deletion_policy": _text("What becomes of the logs when the cluster goes.", choices=["Delete", "Retain"]),
}

_CLUSTER: Options = {
    "region": _text("The AWS region."),
    "os": _text(
        "The operating system; V(ubuntu2404) unless the preset says otherwise, the one that current Neuron runs on.",
        choices=SYSTEMS,
    ),
    "custom_ami": _text("The AMI of all nodes, instead of the official one."),
    "key_name": _text("The key pair for ssh to the head node.", no_log=False),
    "allowed_ips": _text(
        "The addresses that may log in by ssh, such as V(198.51.100.7/32), or the id of a prefix list.",
        "Without it the configuration is refused, because ParallelCluster would let in the whole Internet.",
    ),
    "ssm_access": _switch(
        "Whether all nodes get the policy for Session Manager. With it every user of a node may read all parameters "
        "of Systems Manager in the account."
    ),
    "iam_policies": _texts("ARNs of further policies for all nodes."),
    "s3_access": _mappings(
        "Buckets that head node and compute nodes may read. The folders of scripts in S3 are added.", options=_S3_ACCESS
    ),
    "compute_subnet_ids": _texts(
        "The subnets of queues that do not name their own, best private ones.",
        "EFA wants one. A queue with EFA, several subnets and nothing reserved becomes one for each subnet, and the "
        "others have the name of the first with C(-z2) and so on.",
    ),
    "instance_type": _text(
        "The instance type of the first compute resource of the first queue, the one that trains. What O(queues) "
        "says of it itself wins, here and in O(min_count), O(max_count) and O(capacity_reservation)."
    ),
    "min_count": _number(
        "Its static nodes, which are always there. Where all of a preset's are, O(max_count) alone is enough."
    ),
    "max_count": _number("Its nodes altogether."),
    "capacity_reservation": _mapping("Its capacity reservation.", options=_RESERVATION),
    "placement_group": _text(
        "V(true), V(false), or the name of a placement group.",
        "By default nodes with EFA get one, but not beside a reservation of AWS or a Capacity Block.",
    ),
    "ephemeral_dir": _text(
        "Where the compute nodes' own NVMe disks are mounted; ParallelCluster's default is V(/scratch)."
    ),
    "shared_storage": _mappings(
        "What all nodes mount, each with C(type), C(mount_dir), C(name) and the options of its type in snake case, "
        "such as C(file_system_id), C(provisioned_throughput) or C(storage_capacity).",
        "Types are C(efs), C(fsx_lustre), C(fsx_openzfs), C(fsx_ontap), C(file_cache), C(ebs) and C(nfs). An id of "
        "an existing one is mounted, otherwise a new one is made, encrypted.",
        "It replaces the shared storage of a preset, so all of it has to be named. With C(deletion_policy) V(Retain) "
        "an entry stays when the cluster is deleted, and is billed.",
        "Type C(nfs) takes C(server), C(path), C(options) and C(script), the URL of a script that every node runs "
        "with the source, the directory and the options.",
    ),
    "custom_actions": _mapping(
        "Scripts by kind of node (C(head), C(compute), C(login)) and event (C(on_node_start), C(on_node_configured), "
        "and C(on_node_updated) for head and login nodes), as a list of C(script), a URL, and C(args)."
    ),
    "setup_actions": _mapping(
        "Scripts as in O(custom_actions) that run before them on every node of the kind, after the mounting of "
        "O(shared_storage) of type C(nfs). Nothing that a queue or a node has of its own replaces them."
    ),
    "head_bootstrap_timeout": _number(
        "Seconds that the head node may take until it is ready, its scripts and static nodes included. The default "
        "of ParallelCluster is 2100, here as for compute nodes.",
        "It cannot be changed in a cluster that exists.",
    ),
    "compute_bootstrap_timeout": _number(
        "Seconds that a compute node may take until it is ready, its scripts included."
    ),
    "scaling_strategy": _text(
        "What happens if not all nodes of a job can be had.",
        choices=["all-or-nothing", "best-effort", "greedy-all-or-nothing"],
    ),
    "scaledown_idletime": _number("Minutes after which an idle dynamic node goes."),
    "queue_update_strategy": _text(
        "What an update does with nodes that it concerns.", choices=["COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE"]
    ),
    "custom_slurm_settings": _mapping("Lines for the configuration of Slurm."),
    "accounting": _mapping("The database of Slurm accounting.", options=_ACCOUNTING),
    "monitoring": _mapping("What is watched.", options=_MONITORING),
    "tags": _mapping("Tags of all resources."),
    "overrides": _mapping(
        "Keys of ParallelCluster that are laid upon the rendered configuration, such as C(DevSettings).",
        "Lists whose items have a name are merged by it, and V(null) removes a key.",
    ),
    "head_node": _mapping("The head node.", options=_HEAD_NODE),
    "login_nodes": _mappings("Pools of login nodes.", options=_LOGIN_POOL),
    "queues": _mappings("The queues. Upon those of a preset they are laid by name.", options=_QUEUE),
}


def _with(options: Options, without: str, options_key: str) -> Options:
    """The options without one of their keys, and with what is below an option under the name ``options_key``."""
    return {
        name: {
            **{key: value for key, value in option.items() if key not in (without, "options")},
            **({options_key: _with(option["options"], without, options_key)} if "options" in option else {}),
        }
        for name, option in options.items()
    }


CLUSTER_ARGUMENTS = _with(_CLUSTER, without="description", options_key="options")
CLUSTER_DOCUMENTATION = _with(_CLUSTER, without="no_log", options_key="suboptions")
