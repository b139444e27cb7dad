# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What cluster_resources does: look for every kind, delete kind by kind, look again. The table says what and how."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import check_ours, tags_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import looks
from ansible_collections.trainium.cluster.plugins.module_utils._teardown import calls
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import (
    KINDS,
    LINGERING,
    Kind,
    deletion,
    is_of_eks,
    names_of,
)

Names = dict[str, list[str]]
# Seconds, all in all, for which what lay in the network may keep it from going, and how often it is tried.
PATIENCE, PAUSE = 120.0, 3.0


class Maker(NamedTuple):
    """How another part of the collection finds and deletes what it makes; the former gives names by kind."""

    look: Callable[[], Names]
    delete: Callable[[], object]


class Teardown:
    """``makers`` has an entry for every kind without ``look`` in the table; ``owner`` is who asks, if that is known."""

    def __init__(self, client: Any, makers: Mapping[str, Maker], cluster: str, owner: str | None = None) -> None:
        self._client, self._makers, self._cluster = client, makers, cluster
        self._whose = {"cluster_name": cluster, "owner": owner}
        self._progress = Progress()
        self.reasons: list[str] = []
        # A node group of EKS is still there.
        self._eks_stays = False
        # Until when it is waited for network interfaces that are on their way out.
        self._until = 0.0

    def look(self) -> Names:
        """The names of what belongs to the cluster, by kind, without empty lists.

        Raises TrainiumError where something carries the tag of another owner.
        """
        found: Names = {}
        for kind in KINDS:
            if kind.look:
                items = calls.look(self._client, kind, self._cluster)
                for item in items:
                    # Those of network interfaces have another name.
                    tags = tags_of({"Tags": item.get("Tags") or item.get("TagSet")})
                    check_ours(tags, self._whose, f"{item[kind.identity]} of the {kind.name}")
                found[kind.name] = names_of(kind, items)
            else:
                found.update(self._makers[kind.name].look())
        return {kind: names for kind, names in found.items() if names}

    def delete(self, found: Names) -> None:
        """Delete what was found. A kind that cannot be deleted does not keep the others; ``reasons`` says why."""
        for kind in KINDS:
            try:
                if self._eks_stays and kind.name == "IAM roles":
                    continue
                if not kind.look:
                    self._makers[kind.name].delete()
                    if kind.name in LINGERING and set(found) & set(LINGERING):
                        self._until = time.monotonic() + PATIENCE
                elif kind.name in found:
                    self._delete(kind)
            except TrainiumError as error:
                self.reasons.append(str(error))
                self._eks_stays = self._eks_stays or kind.name == "EKS clusters"

    def _look(self, kind: Kind) -> list[Any]:
        """What of a kind is to go."""
        found = calls.look(self._client, kind, self._cluster)
        return [item for item in found if not (self._eks_stays and is_of_eks(kind, item))]

    def _delete(self, kind: Kind) -> None:
        problems: list[TrainiumError] = []
        for item in self._look(kind):
            try:
                for operation, arguments in deletion(kind, item):
                    self._call(operation, arguments)
            except TrainiumError as error:
                problems.append(error)
        if problems:
            raise problems[0]
        if kind.wait:
            self._wait_gone(kind)

    def _call(self, operation: str, arguments: Mapping[str, Any]) -> None:
        """One step; as long as network interfaces may linger, once more where EC2 says that something is in use."""
        while True:
            try:
                calls.delete(self._client, operation, arguments)
                return
            except AwsCallError as error:
                if error.code != "DependencyViolation" or time.monotonic() + PAUSE > self._until:
                    raise
            time.sleep(PAUSE)

    def _wait_gone(self, kind: Kind) -> None:
        total = 0
        for _passed in looks(kind.wait):
            left = names_of(kind, self._look(kind))
            total = max(total, len(left))
            self._progress.report(f"{kind.name} gone", total - len(left), total, left)
            if not left:
                return
        raise TrainiumError(f"{', '.join(left)} did not go within {kind.wait} s")
