# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nodes have that is other than what is asked for now; none of it changes on a node that exists. Pure.

An option that is not given is not compared, except the placement group: none is a placement as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import Node, kinds_text
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import PLAIN, Interface

# What makes nodes of one set that do not fit each other: how they reach each other, and how far apart they are.
BINDING = ("interface_layout", "placement_group", "security_groups")
# Suboptions of volumes -> fields of DescribeVolumes. Encryption and snapshot are settled when a volume is made.
_VOLUME_FIELDS = {"size": "Size", "type": "VolumeType", "iops": "Iops", "throughput": "Throughput"}


class Difference(NamedTuple):
    """The nodes that have ``found`` where ``option`` asks for ``wanted``."""

    option: str
    found: str
    wanted: str
    nodes: list[str]

    def __str__(self) -> str:
        more = f" and {len(self.nodes) - 3} more" if len(self.nodes) > 3 else ""
        return f"{self.option} {self.found} instead of {self.wanted} ({', '.join(self.nodes[:3])}{more})"


def differences(
    nodes: Iterable[Node],
    params: Mapping[str, Any],
    interfaces: Sequence[Interface],
    volumes: Iterable[Mapping[str, Any]],
) -> list[Difference]:
    """``interfaces`` are those of the layout that is asked for, ``volumes`` the items of DescribeVolumes."""
    nodes = list(nodes)
    wanted_groups, profile = sorted(params["security_groups"]), params["instance_profile"]
    layout = sorted((item.card, item.device, item.kind) for item in interfaces)
    found = _where(nodes, "interface_layout", _kinds(layout), lambda node: _kinds(_layout(node)))
    found += _where(nodes, "placement_group", params["placement_group"] or "none", _placement)
    if wanted_groups:
        found += _where(
            nodes, "security_groups", ", ".join(wanted_groups), lambda node: ", ".join(node["security_groups"])
        )
    if params["key_name"]:
        found += _where(nodes, "key_name", params["key_name"], lambda node: node["key_name"] or "none")
    if profile:
        found += _where(nodes, "instance_profile", profile, lambda node: _profile(node, profile))
    return found + _volumes(nodes, params.get("volumes") or (), volumes)


def _where(nodes: Sequence[Node], option: str, wanted: str, look: Callable[[Node], str]) -> list[Difference]:
    """One difference for each value that is not the wanted one; '' is not known yet."""
    by_value: dict[str, list[str]] = {}
    for node in nodes:
        value = look(node)
        if value not in ("", wanted):
            by_value.setdefault(value, []).append(node["instance_id"])
    return [Difference(option, value, wanted, ids) for value, ids in sorted(by_value.items())]


def _kinds(layout: Sequence[tuple[int, int, str]]) -> str:
    """``1 interface, 8 efa-only``; a layout is told by its kinds, since the type gives the cards."""
    return kinds_text(kind for _card, _device, kind in layout)


def _layout(node: Node) -> list[tuple[int, int, str]]:
    """The node's interfaces that a launch makes; plain ones beside the primary were attached by somebody else."""
    places = [
        (item["network_card_index"], item["device_index"], item["interface_type"])
        for item in node["network_interfaces"]
    ]
    return sorted(place for place in places if place[:2] == (0, 0) or place[2] != PLAIN)


def _placement(node: Node) -> str:
    return str(node["placement_group"] or "none")


def _profile(node: Node, wanted: str) -> str:
    """EC2 shows the ARN; asked for is that or the name, which is its end."""
    arn = str(node["instance_profile"] or "none")
    return wanted if arn.rpartition("/")[2] == wanted else arn


def _volumes(
    nodes: Sequence[Node], wanted: Iterable[Mapping[str, Any]], volumes: Iterable[Mapping[str, Any]]
) -> list[Difference]:
    """What is asked of a volume and is otherwise. A volume that nobody asks for is left out."""
    by_place = {
        (attachment.get("InstanceId"), attachment.get("Device")): volume
        for volume in volumes
        for attachment in volume.get("Attachments") or ()
    }
    found: list[Difference] = []
    for volume in wanted:
        asked = {key: volume[key] for key in _VOLUME_FIELDS if volume.get(key) is not None}

        def look(node: Node, volume: Mapping[str, Any] = volume, asked: Mapping[str, Any] = asked) -> str:
            has = by_place.get((node["instance_id"], volume.get("device_name") or node["root_device_name"]))
            if has is None:
                return "no volume" if node["volumes"] else ""
            return _text({key: has.get(_VOLUME_FIELDS[key]) for key in asked})

        option = f"volume {volume.get('device_name') or 'of the root device'}:"
        found += _where(nodes, option, _text(asked), look)
    return found


def _text(fields: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in fields.items())


def check_growth(found: Iterable[Difference], name: str) -> None:
    """New nodes beside others that do not fit them are refused."""
    binding = [item for item in found if item.option in BINDING]
    if binding:
        raise TrainiumError(
            f"the set {name} has nodes with {'; '.join(map(str, binding))}, and new nodes beside them would not fit; "
            "ask for what the nodes have, remove them with state=absent first, or choose another name"
        )


def warning(found: Iterable[Difference], name: str) -> str:
    """What to say of differences that stay as they are."""
    listed = "; ".join(map(str, found))
    return f"Nodes of the set {name} have {listed}; what is asked for is for nodes that are launched from now on."
