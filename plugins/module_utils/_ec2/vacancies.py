# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Places in a set whose nodes were ended to be replaced: what the next launch takes over of them. Pure.

A node is marked by a tag before it is ended, so that a run which was killed in between leaves word for the next one, as
long as EC2 shows the tags of an instance that has ended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import SUBNET
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import PLACE_TAG, VACATED_TAG
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import (
    DEAD_STATES,
    LIVE_STATES,
    Node,
    Place,
    generation_of,
    place_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.plan import next_generation

_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_ADDRESS = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}", re.ASCII)


class Vacancy(NamedTuple):
    """A place, and the private address, and with it the name, of the node that had it; '' where it is not known.

    ``launch`` is the generation of the launch that was to fill it.
    """

    place: Place
    launch: int
    address: str
    subnet: str

    def __str__(self) -> str:
        return " ".join(filter(None, (str(self.place), str(self.launch), self.address, self.subnet)))

    @classmethod
    def read(cls, text: str) -> Vacancy | None:
        """None for what is no mark of a node that was ended to be replaced."""
        words = [*text.split(" "), "", "", ""][:4]
        place = Place.read(words[0])
        if place is None or not _NUMBER.fullmatch(words[1]):
            return None
        launch, address, subnet = int(words[1]), *words[2:]
        known = _ADDRESS.fullmatch(address) and SUBNET.fullmatch(subnet)
        return cls(place, launch, address, subnet) if known else cls(place, launch, "", "")


def vacancy_of(node: Node, launch: int) -> Vacancy:
    """What a living node leaves behind to one of the generation ``launch``."""
    address, subnet = node["private_ip_address"], node["subnet_id"]
    known = address and subnet
    return Vacancy(place_of(node), launch, address if known else "", subnet if known else "")


def vacancies(nodes: Iterable[Node], replaced: Collection[str] = ()) -> list[Vacancy]:
    """The places to fill, in their order: of the nodes that are to be ``replaced``, and of those that were and have had
    no successor."""
    nodes = list(nodes)
    living = [node for node in nodes if node["state"] in LIVE_STATES]
    dead = sorted((node for node in nodes if node["state"] in DEAD_STATES), key=lambda node: str(node["launch_time"]))
    found: dict[Place, Vacancy] = {}
    for node in dead:
        left = Vacancy.read(node["tags"].get(VACATED_TAG, ""))
        # A set that was removed and launched anew has nothing to do with places in the old one.
        if left and any(generation_of(other) < left.launch for other in living):
            found[left.place] = left
    for node in [*living, *filter(_left_for_good, dead)]:
        found.pop(place_of(node), None)
    for node in living:
        if node["instance_id"] in replaced:
            found[place_of(node)] = vacancy_of(node, next_generation(nodes))
    return [found[place] for place in sorted(found, key=lambda place: place.order)]


def ending(nodes: Iterable[Node], places: Collection[Vacancy]) -> list[Node]:
    """Those that leave the ``places`` and have not quite ended, as after a run that was killed while it waited for
    that: they still hold their addresses and their part of a reservation."""
    return [
        node
        for node in nodes
        if node["state"] == "shutting-down" and Vacancy.read(node["tags"].get(VACATED_TAG, "")) in places
    ]


def _left_for_good(node: Node) -> bool:
    """Whether a successor was ended, and not by EC2, as where that found no room for it in the end."""
    by_ec2 = node["state_reason_code"].startswith("Server.")
    return PLACE_TAG in node["tags"] and VACATED_TAG not in node["tags"] and not by_ec2
