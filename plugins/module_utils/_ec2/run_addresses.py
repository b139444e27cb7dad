# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Elastic IPs of a set of nodes: carries out what addresses.py decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.at_once import Bucket, at_once
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import filters_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError, sentence_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, tag_list
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace, looks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.addresses import (
    Address,
    AddressPlan,
    plan_addresses,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import Node, primary_interface
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.request import set_tags

# Of each mutating action an account may ask 50 at once and 5 a second (EC2 developer guide, "Request throttling for the
# Amazon EC2 API"); some are left to others.
BURST, RATE = 40, 5


class Addresses:
    """The cluster's Elastic IPs, as one set of nodes sees them."""

    def __init__(self, client: ec2.Client, params: Mapping[str, Any]) -> None:
        self._client, self._params = client, params
        self._wanted = params["public_ip"] == "primary" and params["state"] != "absent"
        self._tags = tag_list(set_tags(params))
        self._owner = (params["name"], params["role"])
        self._known: list[Address] = []
        # Allocation ids of those that a node may have by now, whatever EC2 answered.
        self._given: set[str] = set()

    def look(self) -> None:
        """What EC2 shows, for the plan: one call, however many nodes there are."""
        filters = filters_of({f"tag:{CLUSTER_TAG}": self._params["cluster_name"]})
        self._known = list(ec2.describe_addresses(self._client, Filters=filters))

    def plan(self, keep: Iterable[Node], launch: int = 0, replaced: Collection[str] = ()) -> AddressPlan:
        """By the last look."""
        return plan_addresses(keep, launch, self._known, self._owner, self._wanted, replaced)

    def free(self, nodes: Sequence[Node]) -> AddressPlan:
        """One for each node: EC2 may show for a while that one has a node which is gone. Raises TrainiumError.

        Where those that were seen and those that were allocated since suffice, EC2 is not asked again.
        """
        plan = self.plan(nodes)
        if not plan.allocate:
            return plan
        for _passed in looks(self._params["wait_timeout"], Pace(1, 1.5, 10)):
            self.look()
            plan = self.plan(nodes)
            if not plan.allocate:
                return plan
        raise TrainiumError(
            f"EC2 still shows {plan.allocate} of the addresses of {self._params['name']} with nodes that are gone; run "
            "the same again"
        )

    def allocate(self, number: int) -> list[Address]:
        """All of them or none: a quota that is too small leaves nothing behind."""
        made: list[Address] = []
        errors: list[Exception] = []
        bucket = Bucket(BURST, RATE)

        def one() -> None:
            if errors:
                return
            bucket.take()
            try:
                made.append({**ec2.allocate_address(self._client, self._tags), "Tags": self._tags})
            except Exception as error:
                errors.append(error)

        at_once(*[one] * number)
        if errors:
            left = self.take_back(made)
            if left:
                raise TrainiumError(f"{sentence_of(errors[0])}; {left}") from errors[0]
            raise errors[0]
        self._known += made
        return made

    def take_back(self, made: Iterable[Address]) -> str:
        """Give back those of a launch that failed which no node has got; says what is left, if anything is.

        EC2 is no help there: in a default VPC it takes an address that is released from the node that has it.
        """
        reasons = []
        for address in made:
            try:
                if address["AllocationId"] not in self._given or not self._is_associated(address):
                    ec2.release_new_address(self._client, address["AllocationId"])
            except Exception as error:
                reasons.append(sentence_of(error))
        return f"addresses are left, which state=absent releases: {reasons[0]}" if reasons else ""

    def _is_associated(self, address: Address) -> bool:
        filters = filters_of({"allocation-id": address["AllocationId"]})
        found = ec2.describe_addresses(self._client, Filters=filters)
        return any(item.get("AssociationId") for item in found)

    def associate(self, plan: AddressPlan, nodes: Sequence[Node]) -> None:
        """Each address with card 0 / device 0 of its node."""
        by_id = {node["instance_id"]: node for node in nodes}
        bucket = Bucket(BURST, RATE)
        failed: list[str] = []

        def one(address: Address, instance_id: str) -> None:
            if failed:
                return
            bucket.take()
            self._given.add(address["AllocationId"])
            try:
                ec2.associate_address(self._client, address["AllocationId"], primary_interface(by_id[instance_id]))
            except Exception:
                failed.append(instance_id)
                raise

        at_once(*[partial(one, *pair) for pair in plan.associate])

    def release(self, addresses: Sequence[Address]) -> None:
        """As they are by now: an association ends with its node, and whoever may only change what carries the cluster's
        tag is refused one that is not there."""
        if not addresses:
            return
        self.look()
        now = {address["AllocationId"]: address for address in self._known}
        bucket = Bucket(BURST, RATE)

        def one(address: Address) -> None:
            bucket.take()
            ec2.release_address(self._client, now.get(address["AllocationId"], address))

        at_once(*[partial(one, address) for address in addresses])
        gone = {address["AllocationId"] for address in addresses}
        self._known = [address for address in self._known if address["AllocationId"] not in gone]
