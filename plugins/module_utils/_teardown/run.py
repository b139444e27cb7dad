# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What cluster_resources does: look for every kind, delete kind by kind, look again. The table says what and how."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import check_ours, tags_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import looks
from ansible_collections.trainium.cluster.plugins.module_utils._teardown import calls
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import (
    FRAME,
    KINDS,
    LINGERING,
    OF_EKS,
    Kind,
    deletion,
    is_in,
    is_of_eks,
    names_of,
    together,
)

Names = dict[str, list[str]]
# Seconds, all in all, for which what lay in the network may keep it from going, and how often it is tried.
PATIENCE, PAUSE = 120.0, 3.0


def _is_in_use(error: TrainiumError) -> bool:
    return isinstance(error, AwsCallError) and error.code == "DependencyViolation"


class Maker(NamedTuple):
    """How another part of the collection finds and deletes what it makes; the former gives names by kind."""

    look: Callable[[], Names]
    delete: Callable[[], object]


class Teardown:
    """``makers`` has an entry for every kind without ``look`` in the table; ``owner`` is who asks, if that is known.

    When the makers have looked, ``held`` gives the ids of the VPCs that stay with what is kept in them, and
    ``networks`` those of the cluster's own in which its name in tags of Kubernetes means it.
    """

    def __init__(
        self,
        client: Any,
        makers: Mapping[str, Maker],
        cluster: str,
        owner: str | None = None,
        held: Callable[[], Collection[str]] = tuple,
        networks: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._client, self._makers, self._cluster = client, makers, cluster
        self._held, self._networks = held, networks
        self._whose = {"cluster_name": cluster, "owner": owner}
        self._progress = Progress()
        self.reasons: list[str] = []
        # The tags of what the last look has found, by kind and name.
        self._tags: dict[str, dict[str, Mapping[str, str]]] = {}
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
                found[kind.name] = names_of(kind, self._look(kind))
            else:
                found.update(self._makers[kind.name].look())
        return {kind: names for kind, names in found.items() if names}

    def unmarked(self, found: Names, mark: str) -> Names:
        """What of what the last look has found does not carry a tag; what other parts have found counts as such."""
        without = {
            kind: [name for name in names if mark not in self._tags.get(kind, {}).get(name, {})]
            for kind, names in found.items()
        }
        return {kind: names for kind, names in without.items() if names}

    def delete(self, found: Names) -> None:
        """Delete what was found. A kind that cannot be deleted does not keep the others; ``reasons`` says why."""
        for kind in KINDS:
            try:
                if self._eks_stays and kind.name in OF_EKS:
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
        """What of a kind is to go. Raises TrainiumError where something carries the tag of another owner."""
        found = calls.look(self._client, kind, self._cluster)
        if found and kind.is_of_others:
            networks = self._networks()
            found = [item for item in found if is_in(item, networks)]
        held = self._held() if kind.name in FRAME else ()
        items = [item for item in found if not is_in(item, held) and not (self._eks_stays and is_of_eks(kind, item))]
        known = self._tags[kind.name] = {}
        for item in items:
            # Those of network interfaces have another name.
            tags = known[str(item[kind.identity])] = tags_of({"Tags": item.get("Tags") or item.get("TagSet")})
            if not kind.is_of_others:
                check_ours(tags, self._whose, f"{item[kind.identity]} of the {kind.name}")
        return items

    def _delete(self, kind: Kind) -> None:
        items, tried = self._look(kind), 0
        problems: list[TrainiumError] = []
        # A security group can be in rules of one that comes after it: once more, as long as some went.
        while items and len(items) != tried:
            tried = len(items)
            items, problems = self._try(kind, items)
        if problems:
            raise problems[0]
        if kind.wait:
            self._wait_gone(kind)

    def _try(self, kind: Kind, items: list[Any]) -> tuple[list[Any], list[TrainiumError]]:
        """Those that are left to try again, if one of them was in use, and why they did not go."""
        stayed: list[Any] = []
        problems: list[TrainiumError] = []
        gone = self._together(kind, items)
        for item in [one for one in items if one[kind.identity] not in gone]:
            try:
                for operation, arguments in deletion(kind, item):
                    self._call(operation, arguments)
            except TrainiumError as error:
                stayed.append(item)
                problems.append(error)
        return (stayed if any(_is_in_use(one) for one in problems) else []), problems

    def _together(self, kind: Kind, items: list[Any]) -> set[str]:
        """The names of those that calls for many have deleted; where one is refused, each is tried by itself."""
        gone: set[str] = set()
        for names in together(kind, items):
            with suppress(AwsCallError):
                terminating = calls.terminate_together(self._client, InstanceIds=names)
                gone.update(str(one["InstanceId"]) for one in terminating)
        return gone

    def _call(self, operation: str, arguments: Mapping[str, Any]) -> None:
        """One step; as long as network interfaces may linger, once more where EC2 says that something is in use."""
        while True:
            try:
                calls.delete(self._client, operation, arguments)
                return
            except AwsCallError as error:
                if not _is_in_use(error) or time.monotonic() + PAUSE > self._until:
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
