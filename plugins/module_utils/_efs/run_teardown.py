# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How teardown finds the file systems of EFS of a cluster, which of them it deletes, and what it says of the others.

It deletes what this collection has made for the owner. A file system that a stack made, of ParallelCluster or another,
went with its stack or was to be retained. One that is to be kept carries a tag that says so to later teardowns. What is
another owner's, or nobody's, keeps nothing from being deleted: anybody may give it the tag of any cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._common.file_systems import describe_all
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    OWNER_TAG,
    is_kept,
    is_of_a_stack,
    is_owner,
    keep_tags,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._efs import calls
from ansible_collections.trainium.cluster.plugins.module_utils._efs import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._efs.run import EfsFileSystem, wait_targets_gone

Names = dict[str, list[str]]
FILE_SYSTEMS, TARGETS = "EFS file systems", "EFS mount targets"
# What is to stay, and would be deleted by a later teardown that does not say so.
UNMARKED = "EFS file systems to be marked as kept"
TIMEOUT = 1800


class Sorted(NamedTuple):
    """``FileSystems[]`` items of EFS by what becomes of them."""

    go: list[Mapping[str, Any]]
    keep: list[Mapping[str, Any]]
    retained: list[Mapping[str, Any]]
    foreign: list[Mapping[str, Any]]


def sort(items: Iterable[Mapping[str, Any]], owner: str | None, keep: bool | None) -> Sorted:
    """What becomes of the file systems of a cluster; ``keep`` is None where nobody said anything."""
    found = Sorted([], [], [], [])
    for item in items:
        tags = tags_of(item)
        mine = is_owner(tags, {"owner": owner})
        if not mine and (tags.get(OWNER_TAG) or not is_of_a_stack(tags)):
            found.foreign.append(item)
        elif is_of_a_stack(tags):
            found.retained.append(item)
        elif is_kept(tags, keep):
            found.keep.append(item)
        else:
            found.go.append(item)
    return found


def told(found: Sorted) -> list[str]:
    """What stays, each with what it costs and how it goes, to be put into a sentence."""
    found = Sorted(*([item for item in items if item.get("LifeCycleState") not in planner.GOING] for items in found))
    return [
        *(
            f"the shared file system {_billed(item)}; trainium_keep_shared_storage: false deletes it"
            for item in found.keep
        ),
        *(
            f"the file system {_billed(item)}, since a stack was told to retain it; delete it yourself"
            for item in found.retained
        ),
        *(
            f"the file system {item['FileSystemId']}, which does not carry your tag trainium:owner"
            for item in found.foreign
        ),
    ]


def _billed(item: Mapping[str, Any]) -> str:
    amount = planner.file_system_of(item)["provisioned_throughput"]
    hourly = f" and by the hour for {amount} MiB/s" if amount else ""
    return f"{item['FileSystemId']}, which AWS bills by what lies in it{hourly}"


class EfsOf:
    """What of EFS carries a cluster's tag. ``look`` and ``delete`` make a Maker of teardown's.

    ``networks`` gives the ids of the VPCs that are to go: what is retained lets go of them, and of no others.
    """

    def __init__(
        self, client: Any, cluster: str, owner: str | None, keep: bool | None, networks: Callable[[], list[str]]
    ) -> None:
        self._client, self._cluster, self._owner, self._keep = client, cluster, owner, keep
        self._networks, self._progress = networks, Progress()
        # What stays, in words.
        self.told: list[str] = []
        self.foreign: list[str] = []
        # Whose mount targets whoever asks may not list.
        self.unseen: set[str] = set()

    def look(self) -> Names:
        found = self._sorted()
        gone = self._run("absent", found.go, True)
        kept = self._run("detached", found.keep, True)
        staying = [item for item in found.keep if item.get("LifeCycleState") not in planner.GOING]
        targets = [*kept["detached"], *(one["MountTargetId"] for one in self._in_the_way(found.retained))]
        # The mount targets of a file system that goes are not told.
        return {
            FILE_SYSTEMS: gone["deleted"] + gone["deleting"],
            UNMARKED: sorted(item["FileSystemId"] for item in staying if keep_tags(tags_of(item), True)),
            TARGETS: sorted(targets),
        }

    def delete(self) -> None:
        found = self._sorted()
        self._run("detached", found.keep, False)
        for target in self._in_the_way(found.retained):
            calls.delete_target(self._client, MountTargetId=target["MountTargetId"])
        wait_targets_gone(lambda: self._in_the_way(found.retained), TIMEOUT, self._progress)
        self._run("absent", found.go, False)

    def _sorted(self) -> Sorted:
        items = planner.belonging(describe_all(self._client), {"cluster_name": self._cluster})
        found = sort(items, self._owner, self._keep)
        self.told, self.foreign = told(found), sorted(item["FileSystemId"] for item in found.foreign)
        return found

    def _run(self, state: str, items: Sequence[Mapping[str, Any]], check_mode: bool) -> dict[str, Any]:
        params = {"cluster_name": self._cluster, "owner": self._owner, "state": state, "wait": True}
        return EfsFileSystem(self._client, None, {**params, "wait_timeout": TIMEOUT}, check_mode, items).run()

    def _in_the_way(self, retained: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The mount targets of what is retained that lie in networks that go."""
        targets = [one for item in retained for one in self._targets(item["FileSystemId"])]
        networks = self._networks() if targets else []
        return [one for one in targets if one.get("VpcId") in networks]

    def _targets(self, identity: str) -> list[dict[str, Any]]:
        """What may not be seen keeps nothing else from being deleted; where it is in the way, the network stays."""
        try:
            return calls.targets(self._client, FileSystemId=identity)
        except AwsCallError as error:
            if not error.code.startswith("AccessDenied"):
                raise
        self.unseen.add(identity)
        return []
