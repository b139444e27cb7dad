# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Elastic IPs of a set of nodes: carries out what addresses.py decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, tag_list
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.addresses import (
    Address,
    AddressPlan,
    plan_addresses,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import Node, primary_interface
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.request import set_tags


class Addresses:
    """The cluster's Elastic IPs, as one set of nodes sees them."""

    def __init__(self, client: ec2.Client, params: Mapping[str, Any]) -> None:
        self._client, self._params = client, params
        self._wanted = params["public_ip"] == "primary" and params["state"] != "absent"
        self._tags = tag_list(set_tags(params))

    def plan(self, keep: Iterable[Node], launch: int = 0) -> AddressPlan:
        """One call, however many nodes there are."""
        found = self._find()
        owner = (self._params["name"], self._params["role"])
        return plan_addresses(keep, launch, found, owner, self._wanted)

    def allocate(self, number: int) -> list[Address]:
        """All of them or none: a quota that is too small leaves nothing behind."""
        made: list[Address] = []
        try:
            for _index in range(number):
                made.append(ec2.allocate_address(self._client, self._tags))
        except Exception:
            self.release(made)
            raise
        return made

    def associate(self, plan: AddressPlan, nodes: Sequence[Node]) -> None:
        """Each address with card 0 / device 0 of its node."""
        by_id = {node["instance_id"]: node for node in nodes}
        for address, instance_id in plan.associate:
            ec2.associate_address(self._client, address["AllocationId"], primary_interface(by_id[instance_id]))

    def release(self, addresses: Sequence[Address]) -> None:
        """As they are by now: an association ends with its node, and whoever may only change what carries the cluster's
        tag is refused one that is not there."""
        now = {address["AllocationId"]: address for address in (self._find() if addresses else ())}
        for address in addresses:
            ec2.release_address(self._client, now.get(address["AllocationId"], address))

    def _find(self) -> list[Address]:
        return list(ec2.describe_addresses(self._client, {f"tag:{CLUSTER_TAG}": self._params["cluster_name"]}))
