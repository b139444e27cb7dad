# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How teardown finds and deletes the load balancers that Kubernetes made in a cluster's network.

They outlive the cluster of EKS, and nothing makes them anew when that is gone. What counts carries one of the tags by
which Kubernetes knows it *and* lies in a network of the cluster: these tags are by name alone, and another cluster may
have the same name elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tags_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import every, looks
from ansible_collections.trainium.cluster.plugins.module_utils._eks import calls
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan_balancers as plan

Names = dict[str, list[str]]
BALANCERS, TARGETS, INTERFACES = "load balancers", "target groups", "interfaces of load balancers"
# Seconds: a target group is in use a little longer than its load balancer is there, interfaces for some minutes.
IN_USE, TIMEOUT = 30, 600


class BalancersOf:
    """``networks`` gives the ids of the VPCs in which the name of the cluster means it, ``tagged`` those of all VPCs
    that carry its tag.

    ``foreign``: names of others in all of these, which keep a network. ``unseen``: why nobody knows, '' where somebody
    does.
    """

    def __init__(
        self,
        clients: tuple[Any, Any, Any],
        cluster: str,
        networks: Callable[[], Collection[str]],
        tagged: Callable[[], Collection[str]],
    ) -> None:
        self._classic, self._newer, self._ec2 = clients
        self._cluster, self._networks, self._tagged = cluster, networks, tagged
        self._progress = Progress()
        self._deleted: list[plan.Balancer] = []
        self.foreign: list[str] = []
        self.unseen = ""

    def _all(self) -> list[plan.Balancer]:
        """Every load balancer in the networks, whosever it is."""
        networks = {*self._networks(), *self._tagged()}
        if not networks:
            return []
        return [
            *plan.classic_in(calls.list_classic(self._classic), networks),
            *plan.newer_in(calls.list_newer(self._newer), networks),
        ]

    def _mine(self) -> list[plan.Balancer]:
        networks, every_one = self._networks(), self._all()
        mine = [one for one in every_one if one.network in networks and self._is_mine(one)]
        self.foreign = [one.name for one in every_one if one not in mine]
        return mine

    def _targets(self) -> list[plan.Balancer]:
        networks = self._networks()
        found = plan.newer_in(calls.list_target_groups(self._newer), networks, "TargetGroup") if networks else []
        return [one for one in found if self._is_mine(one)]

    def _is_mine(self, one: plan.Balancer) -> bool:
        if one.arn:
            found = calls.tags_of_newer(self._newer, ResourceArns=[one.arn])
        else:
            found = calls.tags_of_classic(self._classic, LoadBalancerNames=[one.name])
        return plan.is_of_kubernetes(tags_of(found[0]) if found else {}, self._cluster)

    def _look(self) -> tuple[list[plan.Balancer], list[plan.Balancer]] | None:
        """Ours, and our target groups; None where we may not see them."""
        self.foreign = []
        try:
            return self._mine(), self._targets()
        except AwsCallError as error:
            # Most clusters have none, and policies from before know nothing of them.
            if "AccessDenied" not in error.code:
                raise
            self.unseen = str(error)
            return None

    def look(self) -> Names:
        found = self._look()
        if found is None:
            return {}
        mine, targets = found
        return {BALANCERS: sorted(one.name for one in mine), TARGETS: sorted(one.name for one in targets)}

    def delete(self) -> None:
        """One that cannot be deleted does not keep the others."""
        mine, targets = self._look() or ([], [])
        problems: list[TrainiumError] = []
        for one in mine:
            try:
                calls.delete_balancer(self._newer if one.arn else self._classic, one.name, one.arn)
                self._deleted.append(one)
            except TrainiumError as error:
                problems.append(error)
        seconds = 0 if problems else IN_USE
        for one in targets:
            try:
                self._delete_target_group(one, seconds)
            except TrainiumError as error:
                problems.append(error)
        if problems:
            raise problems[0]

    def _delete_target_group(self, one: plan.Balancer, seconds: float) -> None:
        for passed in looks(seconds, every(2)):
            try:
                calls.delete_target_group(self._newer, one.name, one.arn)
                return
            except AwsCallError as error:
                if error.code != "ResourceInUse" or passed >= seconds:
                    raise

    def lingering(self) -> Names:
        """The interfaces that AWS has not taken away yet, though their load balancer is gone."""
        networks = self._networks()
        if not networks or self.unseen:
            return {}
        found = calls.balancer_interfaces(self._ec2, networks)
        own = set(networks).intersection(self._tagged())
        return {INTERFACES: plan.lingering(found, self._all(), own, self._deleted) if found else []}

    def wait_gone(self) -> None:
        """AWS alone can delete them."""
        total = 0
        for _passed in looks(TIMEOUT):
            left = self.lingering().get(INTERFACES, [])
            total = max(total, len(left))
            if total:
                self._progress.report(f"{INTERFACES} gone", total - len(left), total, left)
            if not left:
                return
        raise TrainiumError(f"{', '.join(left)} of load balancers that were deleted did not go within {TIMEOUT} s")
