# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Instances as modules return them, and the tags that mark them. Pure.

A *node* is a flat dict made of one ``Instances[]`` item of DescribeInstances or RunInstances, see ``node_of``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    GENERATION_TAG,
    PLACE_TAG,
    tags_of,
)

# How AWS ParallelCluster marks its instances.
PARALLELCLUSTER_TAG = "parallelcluster:cluster-name"
_NODE_TYPES = {"HeadNode": "head", "Compute": "compute", "LoginNode": "login"}

LIVE_STATES = ("pending", "running", "stopping", "stopped")
DEAD_STATES = ("shutting-down", "terminated")
EFA_KINDS = ("efa", "efa-only")

Node = dict[str, Any]
# What diff mode shows of a node, beside its interfaces.
_SHOWN = (
    *("state", "instance_type", "image_id", "availability_zone", "subnet_id", "placement_group"),
    *("public_ip_address", "tags"),
)

# As EC2 writes a moment: 2026-11-27T04:00:00.000Z.
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z", re.ASCII)
_PLACE = re.compile(r"(\d{1,9})/(\d{1,9})/([0-9T:.+-]{0,40})", re.ASCII)


class Place(NamedTuple):
    """Where a node stands in the order: its launch, EC2's index within it, when its primary interface was attached.

    A node that replaced another has the other's, by a tag.
    """

    generation: int
    within: int
    attached: str

    def __str__(self) -> str:
        return f"{self.generation}/{self.within}/{self.attached}"

    @classmethod
    def read(cls, text: str) -> Place | None:
        """None for what is no place: whoever may tag instances may write anything."""
        found = _PLACE.fullmatch(text)
        return cls(int(found[1]), int(found[2]), found[3]) if found else None

    @property
    def order(self) -> tuple[Any, ...]:
        """What nodes are sorted by, oldest first, whenever they were stopped and started.

        The nodes of a launch have one generation, and an index in it. Without a generation (those of ParallelCluster)
        only the attachment of the primary interface tells the launches apart.
        """
        if self.generation:
            return (self.generation, self.within, self.attached)
        return (self.generation, self.attached, self.within)


def parallelcluster_of(tags: Mapping[str, str]) -> dict[str, str]:
    """What ParallelCluster's tags say of an instance; {} if they are not there.

    ``parallelcluster_name``; ``node_role`` where the type of node is known; ``queue`` and ``compute_resource`` of
    compute nodes.
    """
    if not tags.get(PARALLELCLUSTER_TAG):
        return {}
    found = {
        "parallelcluster_name": tags[PARALLELCLUSTER_TAG],
        "node_role": _NODE_TYPES.get(tags.get("parallelcluster:node-type", ""), ""),
        "queue": tags.get("parallelcluster:queue-name", ""),
        "compute_resource": tags.get("parallelcluster:compute-resource-name", ""),
    }
    return {key: value for key, value in found.items() if value}


def node_of(instance: Mapping[str, Any]) -> Node:
    """The fields of an instance that matter here; what EC2 leaves out becomes '' or an empty list."""
    placement = instance.get("Placement") or {}
    interfaces = sorted((_interface_of(item) for item in instance.get("NetworkInterfaces") or ()), key=_place)
    reason = instance.get("StateReason") or {}
    volumes = [item.get("Ebs", {}).get("VolumeId", "") for item in instance.get("BlockDeviceMappings") or ()]
    return {
        "instance_id": instance["InstanceId"],
        "instance_type": instance.get("InstanceType", ""),
        "image_id": instance.get("ImageId", ""),
        "state": (instance.get("State") or {}).get("Name", ""),
        "state_reason": reason.get("Message") or "",
        "state_reason_code": reason.get("Code") or "",
        "private_ip_address": instance.get("PrivateIpAddress") or "",
        "private_dns_name": instance.get("PrivateDnsName") or "",
        "public_ip_address": instance.get("PublicIpAddress") or "",
        "vpc_id": instance.get("VpcId") or "",
        "subnet_id": instance.get("SubnetId") or "",
        "availability_zone": placement.get("AvailabilityZone") or "",
        "placement_group": placement.get("GroupName") or "",
        "key_name": instance.get("KeyName") or "",
        "instance_profile": (instance.get("IamInstanceProfile") or {}).get("Arn") or "",
        "security_groups": sorted(group["GroupId"] for group in instance.get("SecurityGroups") or ()),
        "root_device_name": instance.get("RootDeviceName") or "",
        "launch_time": _timestamp(instance.get("LaunchTime")),
        "attach_time": _attach_time(instance),
        "ami_launch_index": int(instance.get("AmiLaunchIndex") or 0),
        "efa_interface_count": sum(1 for item in interfaces if item["interface_type"] in EFA_KINDS),
        "network_interfaces": interfaces,
        "volumes": [volume for volume in volumes if volume],
        "capacity_reservation_id": instance.get("CapacityReservationId") or "",
        "tags": tags_of(instance),
    }


def _interface_of(item: Mapping[str, Any]) -> dict[str, Any]:
    attachment = item.get("Attachment") or {}
    return {
        "network_interface_id": item.get("NetworkInterfaceId", ""),
        "network_card_index": int(attachment.get("NetworkCardIndex") or 0),
        "device_index": int(attachment.get("DeviceIndex") or 0),
        "interface_type": item.get("InterfaceType") or "interface",
        "private_ip_address": item.get("PrivateIpAddress") or "",
        "subnet_id": item.get("SubnetId") or "",
    }


def _place(interface: Mapping[str, Any]) -> tuple[int, int]:
    return interface["network_card_index"], interface["device_index"]


def _timestamp(moment: datetime | str | None) -> str:
    """UTC text that sorts by time; the same for a moment and for EC2's text of it."""
    if isinstance(moment, datetime):
        return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds")
    found = _MOMENT.fullmatch(moment or "")
    return f"{found[1]}.{(found[2] or '')[:3]:0<3}+00:00" if found else moment or ""


def _attach_time(instance: Mapping[str, Any]) -> str:
    """When the primary interface was attached; '' before EC2 shows it.

    That is at the launch, and stays: "You can't detach the primary network interface" (EC2 user guide, "Elastic network
    interfaces"). LaunchTime does not: it is "The time that the instance was last launched" (API reference, Instance).
    """
    for item in instance.get("NetworkInterfaces") or ():
        attachment = item.get("Attachment") or {}
        if not (attachment.get("NetworkCardIndex") or attachment.get("DeviceIndex")):
            return _timestamp(attachment.get("AttachTime"))
    return ""


def generation_of(node: Node) -> int:
    """The launch that the node comes from; 0 where the tag is missing or no number."""
    text = node["tags"].get(GENERATION_TAG, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def place_of(node: Node) -> Place:
    """That of the node which it replaced, or its own."""
    own = Place(generation_of(node), node["ami_launch_index"], node.get("attach_time") or node["launch_time"])
    return Place.read(node["tags"].get(PLACE_TAG, "")) or own


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """Oldest first, by place and then by id. The inventory ranks nodes likewise."""
    return sorted(nodes, key=lambda node: (place_of(node).order, node["instance_id"]))


def primary_interface(node: Node) -> str:
    """The id of the interface at card 0 / device 0; '' before EC2 shows it."""
    for interface in node["network_interfaces"]:
        if _place(interface) == (0, 0):
            return str(interface["network_interface_id"])
    return ""


def resources_of(nodes: Iterable[Node]) -> list[str]:
    """The ids of the instances, their volumes and their interfaces: everything that carries the set's tags."""
    ids = []
    for node in nodes:
        ids.append(node["instance_id"])
        ids.extend(node["volumes"])
        ids.extend(interface["network_interface_id"] for interface in node["network_interfaces"])
    return ids


def kinds_text(kinds: Iterable[str]) -> str:
    """``8 efa`` or ``1 interface, 8 efa-only``."""
    return ", ".join(f"{number} {kind}" for kind, number in Counter(kinds).items())


def summary(nodes: Iterable[Node]) -> dict[str, Any]:
    """What diff mode shows of a set; the dead are left out."""
    shown = {}
    for node in in_order(nodes):
        if node["state"] in LIVE_STATES:
            shown[node["instance_id"]] = {
                **{field: node[field] for field in _SHOWN},
                "interfaces": kinds_text(item["interface_type"] for item in node["network_interfaces"]),
            }
    return {"count": len(shown), "instances": shown}
