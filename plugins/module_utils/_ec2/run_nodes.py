# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The nodes of a set as EC2 shows them: looked for, waited for, and not asked for again where nothing was changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, SET_TAG
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import Node, node_of
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.waiting import wait_for

# Soon again, since a launch takes seconds, and never more than a fifth longer than it takes.
PACE = Pace(0.4, 1.2, 5.0)

# "some neuron instances can take longer to terminate" (a maintainer in aws/karpenter-provider-aws#7019).
SLOWER_END = 3


class Nodes:
    """Every instance of the set that EC2 still shows, living or dead."""

    def __init__(self, client: ec2.Client, params: Mapping[str, Any]) -> None:
        self._client, self._patience = client, params["wait_timeout"]
        self._filters = set_filters(params["cluster_name"], params["name"])
        self._progress = Progress()
        self._seen: list[Node] = []
        self._current = False

    def find(self) -> list[Node]:
        """Look for them."""
        self._seen = [node_of(item) for item in ec2.describe_instances(self._client, self._filters)]
        self._current = True
        return self._seen

    def now(self) -> list[Node]:
        """As they are: what the last look showed, where nothing was changed since."""
        return self._seen if self._current else self.find()

    def changed(self) -> None:
        """The last look is no longer true."""
        self._current = False

    def wait_for(self, goal: str, ids: list[str], seen: list[Node] | None = None) -> None:
        """``seen`` is a look just made: where it shows that the goal is not reached, the next comes after a pause."""
        views = [seen] if seen and any(node["state"] != goal for node in seen) else []
        patience = self._patience * (1 if goal == "running" else SLOWER_END)
        wait_for(goal, ids, lambda: views.pop() if views else self.find(), patience, self._progress, PACE)


def set_filters(cluster_name: str, name: str) -> dict[str, str]:
    """By which EC2 finds what belongs to a set."""
    return {f"tag:{CLUSTER_TAG}": cluster_name, f"tag:{SET_TAG}": name}
