# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which Elastic IPs to associate, allocate and release. Pure.

An address belongs to a cluster by the tag ``trainium:cluster``. One that also carries ``trainium:set`` was allocated
by that set and is released with it; others were put there by the user, are borrowed and never released. One of another
set or role (such as a NAT gateway's) is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import ROLE_TAG, SET_TAG, tags_of
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import Node, primary_interface

Address = Mapping[str, Any]


class AddressPlan(NamedTuple):
    """``associate`` pairs addresses with instance ids; ``allocate`` more are needed; ``release`` are no longer.

    ``reuse`` are there for nodes that do not exist yet.
    """

    associate: list[tuple[Address, str]]
    allocate: int
    release: list[Address]
    reuse: int = 0

    @property
    def changes(self) -> bool:
        return bool(self.associate or self.allocate or self.release or self.reuse)


def is_own(address: Address) -> bool:
    """Whether a set allocated it."""
    return SET_TAG in tags_of(address)


def plan_addresses(
    keep: Iterable[Node],
    launch: int,
    addresses: Iterable[Address],
    owner: tuple[str, str],
    wanted: bool,
    replaced: Collection[str] = (),
) -> AddressPlan:
    """``addresses`` are the items of DescribeAddresses with the cluster's tag; ``owner`` is the set's name and role.

    ``launch`` further nodes do not exist yet: addresses are kept or allocated for them. Own addresses are used before
    borrowed ones. When none are wanted, the set's own are released and borrowed ones stay where they are.
    The instances ``replaced`` end before the launch, which sets their addresses free for it.
    """
    set_name, role = owner
    usable = [
        item
        for item in addresses
        if tags_of(item).get(SET_TAG, set_name) == set_name and tags_of(item).get(ROLE_TAG, role) == role
    ]
    usable.sort(key=lambda item: (not is_own(item), item["AllocationId"]))
    if not wanted:
        return AddressPlan([], 0, [item for item in usable if is_own(item)])

    keep = list(keep)
    by_interface = {primary_interface(node): node["instance_id"] for node in keep}
    ids = {node["instance_id"] for node in keep}
    served: set[str] = set()
    free: list[Address] = []
    release: list[Address] = []
    for item in usable:
        holder = by_interface.get(item.get("NetworkInterfaceId") or "?") or item.get("InstanceId") or ""
        if not item.get("AssociationId") or holder in replaced:
            free.append(item)
        elif holder in ids:
            served.add(holder)
        elif is_own(item):
            # It served a node that goes or is gone.
            release.append(item)
    bare = [node["instance_id"] for node in keep if node["instance_id"] not in served]
    needed = len(bare) + launch
    release.extend(item for item in free[needed:] if is_own(item))
    reuse = max(0, min(len(free) - len(bare), launch))
    return AddressPlan(list(zip(free, bare)), max(0, needed - len(free)), release, reuse)
