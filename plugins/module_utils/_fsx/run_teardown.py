# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How teardown finds the file systems of FSx for Lustre of a cluster, which it deletes, and what it says of the others.

One that a stack made, of ParallelCluster or another, went with its stack or was to be retained. One that is to be kept
carries a tag that says so to later teardowns. FSx never lets go of its network interface, so the network of what is
kept stays as well.

One of another owner is left, and named: anybody may give one the tag of a cluster, which must not keep that from going.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.file_systems import describe_all
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    is_kept,
    is_of_a_stack,
    is_owner,
    keep_tags,
    tag_list,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import calls
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._fsx.run import FsxLustre

Names = dict[str, list[str]]
FILE_SYSTEMS = "file systems"
# What is to stay, and would be deleted by a later teardown that does not say so.
UNMARKED = "file systems to be marked as kept"
TIMEOUT = 1800


class FsxOf:
    """What of FSx carries a cluster's tag. ``look`` and ``delete`` make a Maker of teardown's.

    ``keep`` is None where nobody said anything. ``foreign`` are the ids of those without the tag of the owner, to which
    anybody may have given that of the cluster.
    """

    def __init__(self, client: Any, cluster: str, owner: str | None, keep: bool | None) -> None:
        self._client, self._keep = client, keep
        self._whose = {"cluster_name": cluster, "owner": owner}
        self._retained: list[str] = []
        self._kept: list[planner.FileSystem] = []
        self.foreign: list[str] = []

    def look(self) -> Names:
        going = self._look()
        unmarked = [one["file_system_id"] for one in self._kept if keep_tags(one["tags"], True)]
        return {FILE_SYSTEMS: [item["FileSystemId"] for item in going], UNMARKED: sorted(unmarked)}

    def delete(self) -> None:
        going = self._look()
        for one in self._kept:
            tags = keep_tags(one["tags"], True)
            if tags:
                calls.tag(self._client, ResourceARN=one["arn"], Tags=tag_list(tags))
        params = {**self._whose, "state": "absent", "wait": True, "wait_timeout": TIMEOUT}
        FsxLustre(self._client, params, False, going).run()

    def _look(self) -> Sequence[Mapping[str, Any]]:
        """The ``FileSystems[]`` items that go."""
        going = []
        self._retained, self._kept, self.foreign = [], [], []
        for item in planner.belonging(describe_all(self._client), self._whose):
            tags, identity = tags_of(item), item["FileSystemId"]
            leaving = item.get("Lifecycle") == "DELETING"
            if is_of_a_stack(tags) and not leaving:
                self._retained.append(identity)
                continue
            if not is_owner(tags, self._whose):
                self.foreign.append(identity)
            elif is_kept(tags, self._keep) and not leaving:
                self._kept.append(planner.file_system_of(item))
            else:
                going.append(item)
        return going

    def networks(self) -> set[str]:
        """The ids of the VPCs that what is kept lies in, as of the last look."""
        return {one["vpc_id"] for one in self._kept if one["vpc_id"]}

    @property
    def retained(self) -> list[str]:
        """What stacks were told to retain, each with what it costs and how it goes."""
        return [
            f"the file system {one}, which AWS bills and whose network stays with it, since a stack was told to retain "
            "it; delete it yourself"
            for one in sorted(self._retained)
        ]

    @property
    def told(self) -> list[str]:
        """All that stays, to be put into a sentence."""
        kept = sorted(self._kept, key=lambda one: str(one["file_system_id"]))
        return self.retained + [
            f"the shared file system {one['file_system_id']}, whose {one['storage_capacity']} GiB AWS bills by the "
            f"hour, and its network {one['vpc_id']}, which is free; trainium_keep_shared_storage: false deletes it"
            for one in kept
        ]
