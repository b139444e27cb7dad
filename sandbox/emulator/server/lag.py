"""Eventual consistency: for some seconds EC2's descriptions do not know what was just made.

Whoever asks for it by its id is told that there is none; in listings it is missing. On AWS calls that change it may be
told so as well, and an answer may still be old after a newer one; here they work at once, and what shows goes on to
show.
https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
"""

from __future__ import annotations

import random
import re
import threading
import time
from typing import Any
from xml.etree import ElementTree

# Beginning of an id -> the tag that names it in its own listing, the action of that, and the code for an unknown one.
KINDS = {
    "vpc": ("vpcId", "DescribeVpcs", "InvalidVpcID.NotFound"),
    "subnet": ("subnetId", "DescribeSubnets", "InvalidSubnetID.NotFound"),
    "sg": ("groupId", "DescribeSecurityGroups", "InvalidGroup.NotFound"),
    "rtb": ("routeTableId", "DescribeRouteTables", "InvalidRouteTableID.NotFound"),
    "igw": ("internetGatewayId", "DescribeInternetGateways", "InvalidInternetGatewayID.NotFound"),
    "nat": ("natGatewayId", "DescribeNatGateways", "NatGatewayNotFound"),
    "vpce": ("vpcEndpointId", "DescribeVpcEndpoints", "InvalidVpcEndpointId.NotFound"),
    "eni": ("networkInterfaceId", "DescribeNetworkInterfaces", "InvalidNetworkInterfaceID.NotFound"),
    "eipalloc": ("allocationId", "DescribeAddresses", "InvalidAllocationID.NotFound"),
    "i": ("instanceId", "DescribeInstances", "InvalidInstanceID.NotFound"),
    "lt": ("launchTemplateId", "DescribeLaunchTemplates", "InvalidLaunchTemplateId.NotFound"),
    "vol": ("volumeId", "DescribeVolumes", "InvalidVolume.NotFound"),
}
# What an action makes; its answer may name other things as well.
MAKERS = {
    "CreateVpc": ("vpc",),
    "CreateSubnet": ("subnet",),
    "CreateSecurityGroup": ("sg",),
    "CreateRouteTable": ("rtb",),
    "CreateInternetGateway": ("igw",),
    "CreateNatGateway": ("nat",),
    "CreateVpcEndpoint": ("vpce",),
    "CreateNetworkInterface": ("eni",),
    "AllocateAddress": ("eipalloc",),
    "RunInstances": ("i", "eni", "vol"),
    "CreateFleet": ("i", "eni", "vol"),
    "CreateLaunchTemplate": ("lt",),
    "CreateVolume": ("vol",),
}
ID = re.compile(rb">((?:" + "|".join(KINDS).encode() + rb")-[0-9a-f]{8,17})<")


class Lag:
    """When each thing shows. ``seconds`` is the most that one takes; 0 is no lag."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.seconds, self.seed = 0.0, ""
        self._shows: dict[str, float] = {}

    def change(self, body: dict[str, Any]) -> None:
        """``seconds`` and ``seed``."""
        with self._lock:
            self.clear()
            self.seconds, self.seed = float(body["seconds"]), str(body.get("seed", ""))

    def made(self, entry: dict[str, Any], status: str, answered: bytes) -> None:
        """What a call has made, by its answer, shows after a while."""
        kinds = MAKERS.get(entry["action"]) if entry["service"] == "ec2" else None
        if not self.seconds or not kinds or not status.startswith("2"):
            return
        with self._lock:
            for identity in dict.fromkeys(found.decode() for found in ID.findall(answered)):
                if identity.rpartition("-")[0] in kinds and identity not in self._shows:
                    wait = random.Random(f"{self.seed} {len(self._shows)}").uniform(0, self.seconds)  # noqa: S311
                    self._shows[identity] = time.monotonic() + wait

    def hidden(self) -> set[str]:
        """The ids of what does not show yet."""
        now = time.monotonic()
        with self._lock:
            return {identity for identity, shows in self._shows.items() if shows > now}

    def refusal(self, entry: dict[str, Any]) -> tuple[int, str, str] | None:
        """(status, code, message) for a description of what does not show yet."""
        if not self.seconds or entry["service"] != "ec2":
            return None
        hidden = self.hidden()
        for name, value in entry["parameters"].items():
            # Of filters nothing is refused; they find nothing.
            if value in hidden and not name.startswith("Filter"):
                _tag, action, code = KINDS[value.rpartition("-")[0]]
                if action == entry["action"]:
                    return 400, code, f"The ID '{value}' does not exist"
        return None

    def without(self, entry: dict[str, Any], answered: bytes) -> bytes:
        """A listing without what does not show yet."""
        if not self.seconds or entry["service"] != "ec2":
            return answered
        tags = [tag for tag, action, _code in KINDS.values() if action == entry["action"]]
        hidden = self.hidden()
        if not tags or not hidden or not any(one.encode() in answered for one in hidden):
            return answered
        space = re.search(rb'xmlns="([^"]+)"', answered)
        if space:
            ElementTree.register_namespace("", space[1].decode())
        root = ElementTree.fromstring(answered)  # noqa: S314  # moto's own answer
        _strip(root, tags[0], hidden)
        return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _strip(parent: ElementTree.Element, tag: str, hidden: set[str]) -> None:
    for child in list(parent):
        named = [one.text for one in child if one.tag.rpartition("}")[2] == tag]
        if named and named[0] in hidden:
            parent.remove(child)
            continue
        _strip(child, tag, hidden)
        # A reservation of which no instance shows.
        sets = [one for one in child if one.tag.rpartition("}")[2] == "instancesSet"]
        if sets and not len(sets[0]):
            parent.remove(child)


LAG = Lag()
