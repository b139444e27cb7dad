# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which network interfaces an instance is launched with. Pure.

EC2 wants one primary interface, card 0 / device 0, and device indexes that are unique within a card. EFA traffic of a
card needs one interface of kind ``efa`` or ``efa-only`` on it, and no more than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES

PLAIN = "interface"
EFA = "efa"
EFA_ONLY = "efa-only"

NONE_LAYOUT = "none"
PARALLELCLUSTER_LAYOUT = "parallelcluster"
LAYOUTS = (EFA, EFA_ONLY, PARALLELCLUSTER_LAYOUT, NONE_LAYOUT)


class Card(NamedTuple):
    """One network card: how many interfaces it takes and which kinds."""

    card: int
    maximum_interfaces: int
    kinds: frozenset[str]

    @property
    def carries_efa(self) -> bool:
        return EFA in self.kinds or EFA_ONLY in self.kinds


class TypeNetwork(NamedTuple):
    """What an instance type can do: its cards in order, and how many EFA interfaces it takes altogether."""

    instance_type: str
    cards: tuple[Card, ...]
    maximum_efa: int


class Interface(NamedTuple):
    """One planned interface; ``kind`` is EC2's InterfaceType."""

    card: int
    device: int
    kind: str


def network_of(record: Mapping[str, Any]) -> TypeNetwork:
    """The network of one ``InstanceTypes[]`` item of DescribeInstanceTypes.

    Fields that the reply lacks are taken from the table of known types.
    Raises TrainiumError when neither tells how many cards there are.
    """
    name = str(record.get("InstanceType", ""))
    info: Mapping[str, Any] = record.get("NetworkInfo") or {}
    known = TYPES.get(name)
    described = sorted(info.get("NetworkCards") or (), key=lambda card: int(card["NetworkCardIndex"]))
    if described:
        limits = [(int(card["NetworkCardIndex"]), int(card["MaximumNetworkInterfaces"])) for card in described]
    elif known and known.cards:
        limits = [(index, known.interfaces_per_card) for index in range(known.cards)]
    elif info.get("MaximumNetworkInterfaces"):
        limits = [(0, int(info["MaximumNetworkInterfaces"]))]
    else:
        raise TrainiumError(f"the network cards of instance type {name} are not known; check its name")

    maximum_efa = _maximum_efa(info, known.efa if known else 0)
    stated = {int(card["NetworkCardIndex"]): frozenset(card.get("InterfaceTypes") or ()) for card in described}
    if any(stated.values()):
        kinds = [stated[index] or frozenset({PLAIN}) for index, _limit in limits]
    else:
        # A type with fewer EFA interfaces than cards has none on its primary card.
        first = 0 if maximum_efa >= len(limits) else 1
        kinds = [
            frozenset({PLAIN, EFA, EFA_ONLY} if first <= place < first + maximum_efa else {PLAIN})
            for place in range(len(limits))
        ]
    cards = (Card(index, limit, kind) for (index, limit), kind in zip(limits, kinds))
    return TypeNetwork(name, tuple(cards), maximum_efa)


def _maximum_efa(info: Mapping[str, Any], known: int) -> int:
    stated = (info.get("EfaInfo") or {}).get("MaximumEfaInterfaces")
    if stated is not None:
        return int(stated)
    if info.get("EfaSupported") is None:
        return known
    return (known or 1) if info["EfaSupported"] else 0


def known_network(instance_type: str) -> TypeNetwork:
    """The network of a type by its name alone. Raises TrainiumError for a type that the table does not hold."""
    if instance_type not in TYPES:
        raise TrainiumError(
            f"instance type {instance_type} is not in the table of known types; give its DescribeInstanceTypes record"
        )
    return network_of({"InstanceType": instance_type})


def plan_interfaces(network: TypeNetwork, layout: str | None) -> list[Interface]:
    """The interfaces in launch order, the primary one first.

    ``layout`` is one of LAYOUTS; None means ``efa`` where the type has EFA and one plain interface where not.
    Raises TrainiumError for EFA on a type without it.
    """
    if layout is None:
        layout = EFA if network.maximum_efa else NONE_LAYOUT
    if layout not in LAYOUTS:
        raise TrainiumError(f"interface layout {layout!r} is not one of {', '.join(LAYOUTS)}")
    if layout == NONE_LAYOUT:
        return [Interface(0, 0, PLAIN)]
    if not network.maximum_efa:
        raise TrainiumError(
            f"instance type {network.instance_type} has no EFA, which interface layout {layout} asks for; "
            f"choose a larger size such as trn1.32xlarge, or layout {NONE_LAYOUT}"
        )
    carriers = [card for card in network.cards if card.carries_efa][: network.maximum_efa]
    planned = _primary(network, layout, carriers)
    preferred, other = (EFA, EFA_ONLY) if layout == EFA else (EFA_ONLY, EFA)
    for card in carriers:
        if card.card:
            kind = preferred if preferred in card.kinds else other
            planned.append(Interface(card.card, 0 if card.maximum_interfaces == 1 else 1, kind))
    return planned


def _primary(network: TypeNetwork, layout: str, carriers: list[Card]) -> list[Interface]:
    """Card 0: one interface with an address, and its EFA where the card has it."""
    primary = network.cards[0]
    if primary not in carriers:
        return [Interface(0, 0, PLAIN)]
    if layout == EFA:
        return [Interface(0, 0, EFA if EFA in primary.kinds else PLAIN)]
    if primary.maximum_interfaces >= 2 and EFA_ONLY in primary.kinds:
        return [Interface(0, 0, PLAIN), Interface(0, 1, EFA_ONLY)]
    # No room for two: ParallelCluster keeps the card's EFA, the other layout keeps to its word.
    return [Interface(0, 0, EFA if layout == PARALLELCLUSTER_LAYOUT and EFA in primary.kinds else PLAIN)]


def efa_count(interfaces: list[Interface]) -> int:
    """How many of the interfaces carry EFA."""
    return sum(1 for interface in interfaces if interface.kind != PLAIN)
