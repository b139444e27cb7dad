# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How teardown finds and deletes what role eks_cluster makes: clusters with their node groups, and log groups.

Node groups go first, as EKS refuses to delete a cluster that has some, then the interfaces that the CNI plugin left
behind, which would keep the subnets. Add-ons, access entries and pod identity associations go with their cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    CLUSTER_TAG,
    check_ours,
    is_owner,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import looks
from ansible_collections.trainium.cluster.plugins.module_utils._eks import calls
from ansible_collections.trainium.cluster.plugins.module_utils._eks.plan_nodegroup import group_of

Names = dict[str, list[str]]
CLUSTERS, GROUPS, LOGS = "EKS clusters", "EKS node groups", "log groups"
TIMEOUT = 2400


def _names(group: str) -> dict[str, str]:
    """Of a group as ``look`` tells it."""
    return dict(zip(("clusterName", "nodegroupName"), group.split("/", maxsplit=1)))


class EksOf:
    """What of EKS carries a cluster's tag. ``look`` and ``delete`` make a Maker of teardown's.

    Ids of VPCs, of what it has seen: ``networks`` has those in which the owner's own lies under the cluster's name, by
    which Kubernetes marks things, ``strangers`` those in which one of this name lies that is not the cluster's.
    """

    def __init__(self, client: Any, ec2_client: Any, cluster: str, owner: str | None = None) -> None:
        self._client, self._ec2, self._cluster = client, ec2_client, cluster
        self._whose = {"cluster_name": cluster, "owner": owner}
        self._progress = Progress()
        self.networks: set[str] = set()
        self.strangers: set[str] = set()

    def _mine(self) -> list[str]:
        mine = []
        for name in calls.list_clusters(self._client):
            one = calls.describe_cluster(self._client, name=name) or {}
            tags, network = one.get("tags") or {}, (one.get("resourcesVpcConfig") or {}).get("vpcId")
            is_mine = tags.get(CLUSTER_TAG) == self._cluster
            if is_mine:
                check_ours(tags, self._whose, f"the EKS cluster {name}")
                mine.append(name)
            if network and name == self._cluster and not is_mine:
                self.strangers.add(network)
            elif network and name == self._cluster and is_owner(tags, self._whose):
                self.networks.add(network)
        return mine

    def look(self) -> Names:
        clusters = self._mine()
        groups = [
            f"{name}/{group}" for name in clusters for group in calls.list_nodegroups(self._client, clusterName=name)
        ]
        return {CLUSTERS: sorted(clusters), GROUPS: sorted(groups)}

    def delete(self) -> Names:
        found = self.look()
        for one in found[GROUPS]:
            calls.delete_nodegroup(self._client, **_names(one))
        self._wait_gone(GROUPS, self._refuse_stuck_groups)
        for name in found[CLUSTERS]:
            for interface in calls.cni_interfaces(self._ec2, name):
                calls.delete_interface(self._ec2, NetworkInterfaceId=interface["NetworkInterfaceId"])
            calls.delete_cluster(self._client, name=name)
        self._wait_gone(CLUSTERS)
        return found

    def _refuse_stuck_groups(self, groups: list[str]) -> None:
        """What EKS could not delete stays until somebody acts (EKS API reference, Nodegroup: status DELETE_FAILED)."""
        for one in groups:
            seen = calls.describe_nodegroup(self._client, **_names(one))
            if seen and seen.get("status") == "DELETE_FAILED":
                reason = "; ".join(group_of(seen)["issues"]) or "EKS gives no reason"
                raise TrainiumError(
                    f"EKS did not delete the node group {one}: {reason.rstrip('.')}; its nodes run on and cost, so "
                    "mend that, then run teardown.yml again"
                )

    def _wait_gone(self, kind: str, refuse: Callable[[list[str]], None] | None = None) -> None:
        total = 0
        for _passed in looks(TIMEOUT):
            left = self.look()[kind]
            if refuse:
                refuse(left)
            total = max(total, len(left))
            self._progress.report(f"{kind} gone", total - len(left), total, left)
            if not left:
                return
        raise TrainiumError(f"{', '.join(left)} did not go within {TIMEOUT} s")


class LogsOf:
    """The log groups of control planes that carry a cluster's tag; none of them goes where they are to be kept."""

    def __init__(self, client: Any, cluster: str, keep: bool) -> None:
        self._client, self._cluster, self._keep = client, cluster, keep

    def look(self) -> Names:
        return {LOGS: [] if self._keep else self._mine()}

    def kept(self) -> list[str]:
        """Those that stay."""
        return self._mine() if self._keep else []

    def _mine(self) -> list[str]:
        found = calls.list_log_groups(self._client, logGroupNamePrefix=f"/aws/eks/{self._cluster}/")
        names = [group["logGroupName"] for group in found]
        return [n for n in names if calls.log_group_tags(self._client, n).get(CLUSTER_TAG) == self._cluster]

    def delete(self) -> Names:
        found = self.look()
        for name in found[LOGS]:
            calls.delete_log_group(self._client, logGroupName=name)
        return found
