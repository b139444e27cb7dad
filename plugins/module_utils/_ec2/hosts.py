# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From DescribeInstances to the hosts of an inventory: reduce, order, rank, name, group. Pure.

A *record* is what is kept of an instance: a flat dict of strings and integers plus the tags, safe for any cache.
Everything here is linear in the number of instances, sorting apart.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, ROLE_TAG
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import instances

HEAD = "head"
COMPUTE = "compute"
LOGIN = "login"
SSM = "ssm"
BASTION = "bastion"
CREATE = "create"
LIVE_STATES = ("pending", "running")
# An instance in one of these comes back as the node that it was.
RESTING_STATES = ("stopping", "stopped")
DEFAULT_HOSTNAMES = (
    *("slurm-node-name", "kubernetes-node-name", "short-private-dns-name", "private-ip-address", "instance-id"),
)
# What EKS puts on the instances of its node groups.
EKS_TAG = "eks:cluster-name"

Record = dict[str, Any]

# Fields of a record that serve ordering and naming and are no host variables.
_INTERNAL = ("ami_launch_index", "attach_time", "generation", "public_dns_name", "parallelcluster_name")
# Fields that a record takes from instances.node_of as they are.
_KEPT = (
    "instance_id",
    "instance_type",
    "image_id",
    "availability_zone",
    "placement_group",
    "subnet_id",
    "private_dns_name",
    "efa_interface_count",
    "launch_time",
)

# What a record is made of in an answer of DescribeInstances; None means all of a member.
READ: dict[str, Any] = {
    "NextToken": None,
    "Reservations": {
        "Instances": {
            **dict.fromkeys(("InstanceId", "InstanceType", "ImageId", "SubnetId", "LaunchTime", "AmiLaunchIndex")),
            **dict.fromkeys(("PrivateIpAddress", "PrivateDnsName", "PublicIpAddress", "PublicDnsName", "Tags")),
            "State": {"Name": None},
            "Placement": {"AvailabilityZone": None, "GroupName": None},
            "NetworkInterfaces": {
                "InterfaceType": None,
                "Attachment": dict.fromkeys(("NetworkCardIndex", "DeviceIndex", "AttachTime")),
            },
        }
    },
}

# Tags are chosen by whoever may tag an instance, and a host's name gets into templates, patterns, paths and commands.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
# The controller, and what Ansible itself means by a name.
_RESERVED = frozenset(("localhost", "127.0.0.1", "all", "ungrouped", HEAD, COMPUTE, LOGIN))
_NOT_IN_GROUP_NAMES = re.compile(r"[^A-Za-z0-9_]")
# user@host:port, several of them separated by commas, as ssh -J takes them; never what looks like an option.
_HOP = r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?(?:[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?"
_BASTION = re.compile(rf"{_HOP}(?:,{_HOP})*")
_HOSTNAME_FIELDS = {
    "slurm-node-name": "slurm_node_name",
    "private-dns-name": "private_dns_name",
    "private-ip-address": "private_address",
    "ip-address": "public_address",
    "dns-name": "public_dns_name",
    "instance-id": "instance_id",
}


class Options(NamedTuple):
    """How nodes are named and reached; see the inventory plugin's documentation."""

    hostnames: Sequence[str] = DEFAULT_HOSTNAMES
    address: str = "auto"
    bastion: str = ""
    # The key with which to log in to the bastion of the cluster itself; '' leaves it to ssh.
    private_key_file: str = ""
    # By ssh to an address, or to the instance over Session Manager, with this profile of the AWS configuration.
    connection: str = "ssh"
    profile: str = ""
    ssh_common_args: str = ""
    # A file of known hosts, and the algorithms by instance id of those that are in it.
    known_hosts: str = ""
    pinned: Mapping[str, str] = {}
    # The states of instances that are hosts; those in others only tell which node is the head. All where it is empty.
    states: Collection[str] = ()


class Node(NamedTuple):
    """One host of the inventory."""

    name: str
    variables: dict[str, Any]
    groups: list[str]


class Cluster(NamedTuple):
    """The records of one cluster: all in order, the ranked compute nodes, and the head, running or not (None where
    there is none).

    ``bastion`` is its own bastion, which is no host of the inventory.
    """

    records: list[Record]
    ranked: list[Record]
    head: Record | None
    bastion: Record | None = None


def reduce_instance(instance: Mapping[str, Any], region: str) -> Record:
    """Keep of one ``Instances[]`` item of DescribeInstances what nodes are made of; the rest is dropped.

    Fields that EC2 leaves out (no public address, no placement group) become ''. What an instance is in its
    ParallelCluster wins over our tags, which all of a cluster's instances share.
    """
    node = instances.node_of(instance)
    tags = node["tags"]
    place, parallelcluster = instances.place_of(node), instances.parallelcluster_of(tags)
    return {
        **{field: node[field] for field in _KEPT},
        "generation": place.generation,
        "ami_launch_index": place.within,
        "attach_time": place.attached,
        "instance_state": node["state"],
        "cluster_name": tags.get(CLUSTER_TAG) or parallelcluster.get("parallelcluster_name", ""),
        "node_role": tags.get(ROLE_TAG, ""),
        "aws_region": region,
        "private_address": node["private_ip_address"],
        "public_address": node["public_ip_address"],
        "public_dns_name": instance.get("PublicDnsName") or "",
        "instance_tags": tags,
        **parallelcluster,
    }


def clusters(records: Iterable[Record]) -> list[Cluster]:
    """Split by cluster (sorted by name), order, rank, and choose the head.

    Compute nodes that are pending or running have a rank, without gaps, as torchrun counts them. The head is the first
    instance of role head that runs, or else that is not gone, else the first compute node, whether it runs or not: its
    queue is on its disk. A ParallelCluster always has a head of its own, which none of its compute nodes replaces.
    """
    by_name: dict[str, list[Record]] = {}
    for record in records:
        by_name.setdefault(record["cluster_name"], []).append(record)
    result = []
    for _name, members in sorted(by_name.items()):
        members = sorted(members, key=_order)
        live = [record for record in members if record["instance_state"] in LIVE_STATES]
        there = [record for record in members if record["instance_state"] in (*LIVE_STATES, *RESTING_STATES)]
        ranked = [record for record in live if record["node_role"] == COMPUTE]
        # One that runs first: an old one that was kept, or anybody's with the tags, is not in its place.
        heads = [record for record in (*live, *there) if record["node_role"] == HEAD]
        heads = heads or [
            record for record in there if record["node_role"] == COMPUTE and "parallelcluster_name" not in record
        ]
        bastions = [record for record in live if record["node_role"] == BASTION and record["public_address"]]
        members = [record for record in members if record["node_role"] != BASTION]
        result.append(Cluster(members, ranked, heads[0] if heads else None, bastions[0] if bastions else None))
    return result


def _order(record: Record) -> tuple[Any, ...]:
    place = instances.Place(record["generation"], record["ami_launch_index"], record["attach_time"])
    return (*place.order, record["instance_id"])


def group_name(prefix: str, value: str) -> str:
    """``type`` and ``trn1.32xlarge`` -> ``type_trn1_32xlarge``."""
    return _NOT_IN_GROUP_NAMES.sub("_", f"{prefix}_{value}")


def group_names(record: Record, is_head: bool) -> list[str]:
    """The groups of one node."""
    names = [record["node_role"]] if record["node_role"] in (COMPUTE, LOGIN) else []
    if is_head:
        names.append(HEAD)
    for prefix, field in (
        ("cluster", "cluster_name"),
        ("type", "instance_type"),
        ("zone", "availability_zone"),
        ("placement_group", "placement_group"),
        ("queue", "queue"),
        ("compute_resource", "compute_resource"),
    ):
        if record.get(field):
            names.append(group_name(prefix, record[field]))
    return names


def host_name(record: Record, hostnames: Sequence[str]) -> str:
    """The first of the preferences that the node has a name for, else the instance id.

    A value that has other characters than letters, digits, dots, underscores and hyphens is no name.

    Raises TrainiumError for a preference that does not exist.
    """
    for preference in hostnames:
        if preference == "short-private-dns-name":
            name = record["private_dns_name"].partition(".")[0]
        elif preference == "kubernetes-node-name":
            name = record["private_dns_name"] if EKS_TAG in record["instance_tags"] else ""
        elif preference.startswith("tag:"):
            name = record["instance_tags"].get(preference[4:], "")
        elif preference in _HOSTNAME_FIELDS:
            name = record.get(_HOSTNAME_FIELDS[preference], "")
        else:
            known = ", ".join(["short-private-dns-name", "kubernetes-node-name", *_HOSTNAME_FIELDS])
            raise TrainiumError(f"hostnames holds {preference!r}, which is not one of {known} or tag:<key>")
        if _NAME.fullmatch(str(name)):
            return str(name)
    return str(record["instance_id"])


def plan_nodes(records: Iterable[Record], options: Options) -> list[Node]:
    """Every host with its variables and groups, compute nodes in rank order.

    Raises TrainiumError where an option cannot be honoured.
    """
    if options.connection not in ("ssh", SSM):
        raise TrainiumError(f"connection is {options.connection!r}; use ssh or {SSM}")
    if options.connection == SSM and options.bastion:
        raise TrainiumError(f"bastion is {options.bastion!r}, and connection {SSM} needs none; leave one of them out")
    found = clusters(records)
    names = {
        record["instance_id"]: host_name(record, options.hostnames) for cluster in found for record in cluster.records
    }
    # Two networks may use the same addresses: such hosts go by their ids, or one would swallow the other. So do hosts
    # that a tag calls by the id of another, or like a group or the controller.
    taken = {name for name, count in Counter(names.values()).items() if count > 1}
    taken.update(_RESERVED, names)
    nodes: list[Node] = []
    for cluster in found:
        hop, hop_id = _bastion(options, cluster)
        master = cluster.ranked[0]["private_address"] if cluster.ranked else ""
        ranks = {record["instance_id"]: rank for rank, record in enumerate(cluster.ranked)}
        head_state = cluster.head["instance_state"] if cluster.head else ""
        for record in cluster.records:
            if options.states and record["instance_state"] not in options.states:
                continue
            identity = record["instance_id"]
            name = names[identity]
            variables = {key: value for key, value in record.items() if key not in _INTERNAL}
            if identity in ranks:
                variables["node_rank"] = ranks[identity]
            if master:
                variables["master_addr"] = master
            variables.update(connection(record, options, "" if identity == hop_id else hop, identity == hop_id))
            variables["head_state"] = head_state
            is_head = head_state in LIVE_STATES and cluster.head is not None and cluster.head["instance_id"] == identity
            nodes.append(Node(identity if name in taken else name, variables, group_names(record, is_head)))
    groups = {group for node in nodes for group in node.groups}
    return [node._replace(name=node.variables["instance_id"]) if node.name in groups else node for node in nodes]


def _bastion(options: Options, cluster: Cluster) -> tuple[str, str]:
    """ssh's option for the jump host of a cluster's nodes, and the id of the instance that it is, if it is the head."""
    bastion = options.bastion
    if not bastion or (bastion == CREATE and cluster.bastion is None):
        return "", ""
    if bastion == CREATE and cluster.bastion:
        return f"ProxyCommand={_jump(cluster.bastion, options)}", ""
    if not _BASTION.fullmatch(bastion):
        raise TrainiumError(f"bastion is {bastion!r}, which is not host, user@host, user@host:port or [user@]{HEAD}")
    user, _at, host = bastion.rpartition("@")
    if host != HEAD:
        return f"ProxyJump={bastion}", ""
    if cluster.head is None:
        if cluster.ranked:
            raise TrainiumError(
                f"bastion is {HEAD}, but cluster {cluster.ranked[0]['cluster_name']!r} has no running head; "
                "start it or name another bastion"
            )
        return "", ""
    if cluster.head["instance_state"] in RESTING_STATES:
        # Whatever starts it needs the inventory.
        return "", ""
    if not cluster.head["public_address"]:
        raise TrainiumError(
            f"bastion is {HEAD}, but the head {cluster.head['instance_id']} of cluster "
            f"{cluster.head['cluster_name']!r} has no public address; give it one or name another bastion"
        )
    address = cluster.head["public_address"]
    return f"ProxyJump={user}@{address}" if user else f"ProxyJump={address}", cluster.head["instance_id"]


def _jump(bastion: Record, options: Options) -> str:
    """What carries ssh over the bastion of the cluster itself: unlike ProxyJump it takes a key and known hosts."""
    words = ["ssh", *_host_key(bastion, options), "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes"]
    words += ["-i", options.private_key_file] if options.private_key_file else []
    words += ["-o", "ServerAliveInterval=30", f"ubuntu@{bastion['public_address']}"]
    return " ".join(shlex.quote(word).replace("%", "%%") for word in words) + " -W '[%h]:%p'"


def _host_key(record: Record, options: Options) -> list[str]:
    """The arguments of ssh by which it knows an instance, at whatever address."""
    words = ["-o", f"HostKeyAlias={record['instance_id']}"]
    algorithms = options.pinned.get(record["instance_id"])
    if algorithms:
        # Without the list, a key of another kind than the known ones would be new, and accepted.
        # In quotes of ssh's own, since it takes words as several files.
        file = f'UserKnownHostsFile="{options.known_hosts}"'
        words += ["-o", file, "-o", f"HostKeyAlgorithms={algorithms}"]
    return words


def session_command(record: Record, profile: str) -> str:
    """What carries ssh to a node over Session Manager, as ssh gives it to a shell; ssh puts the port for ``%p``.

    Source: the Systems Manager user guide, "Allow and control permissions for SSH connections through Session Manager".
    """
    words = ["aws", "ssm", "start-session", "--target", record["instance_id"], "--region", record["aws_region"]]
    words += ["--profile", profile] if profile else []
    words += ["--document-name", "AWS-StartSSHSession", "--parameters"]
    return " ".join(shlex.quote(word).replace("%", "%%") for word in words) + " portNumber=%p"


def connection(record: Record, options: Options, hop: str, is_hop: bool = False) -> dict[str, str]:
    """ansible_host and how ssh gets there; ``hop`` is ssh's option for a jump host, ``is_hop`` if the node is it.

    Host keys are kept by instance id: a new instance that is given an old address is a stranger, not an impostor, and
    does not inherit the open connection of its predecessor either.
    """
    public, private = record["public_address"], record["private_address"]
    prefer_public = is_hop or options.address == "public" or (options.address == "auto" and not hop)
    address = (public or private) if prefer_public else private
    if options.connection == SSM:
        address = record["instance_id"]
    if not address:
        return {}
    arguments = [options.ssh_common_args] if options.ssh_common_args else []
    arguments.append(shlex.join(_host_key(record, options)))
    # A command may be silent for longer than NAT gateways and firewalls keep a connection. A new node's key, where none
    # was told by its console, is taken once: nobody is there to be asked.
    arguments.append("-o ServerAliveInterval=30 -o StrictHostKeyChecking=accept-new")
    if options.connection == SSM:
        arguments.append(f"-o {shlex.quote(f'ProxyCommand={session_command(record, options.profile)}')}")
    elif hop and address == private:
        arguments.append(f"-o {shlex.quote(hop)}")
    return {
        "ansible_host": address,
        "ansible_ssh_common_args": " ".join(arguments),
        # Expanded by the ssh connection plugin (%(directory)s) and by ssh (%r, the user).
        "ansible_control_path": f"%(directory)s/{record['instance_id']}-%%r",
    }
