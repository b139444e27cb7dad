# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What EFS and FSx have in common: file systems that are listed alike, and take time to go."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import given
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    checked,
    one_call,
    pages,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Goal, wait_until


@one_call("list the file systems")
def describe_all(client: Client) -> list[Item]:
    """Every ``FileSystems[]`` item of the region; neither service has filters."""
    return list(pages(client, "describe_file_systems").get("FileSystems", ()))


@one_call("describe the file system")
@retried
def describe_one(client: Client, **which: Any) -> Item | None:
    """The file system that the service's own parameters name; None when there is none."""
    with passing_over("FileSystemNotFound"):
        return next(iter(checked(client.describe_file_systems(**which))["FileSystems"]), None)
    return None


class FileSystemRun:
    """The arguments of a run as it works with them, the time that it has, the wait for what goes, and the result.

    ``TEXTS``: options in which empty text, as roles pass it, means not given. ``STATE``: the service's field for it.
    ``NAMES``: what a result has of a file system beside it as well. ``LISTS``: lists of ids in a result.
    ``items``: those that are meant, as the service lists them, where the caller knows.
    """

    TEXTS: tuple[str, ...] = ()
    STATE = ""
    NAMES: tuple[str, ...] = ("file_system_id", "dns_name", "mount_source")
    LISTS: tuple[str, ...] = ("deleted", "deleting")

    def __init__(
        self,
        client: Client,
        params: Mapping[str, Any],
        check_mode: bool,
        items: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._client, self._check_mode, self._progress = client, check_mode, Progress()
        self._params, self._items = given(params, self.TEXTS), items
        self._deadline = time.monotonic() + params["wait_timeout"]

    def _describe(self, identity: str) -> Item | None:
        raise NotImplementedError

    def _result(self, changed: bool, file_system: Item, before: Item, after: Item, **lists: list[str]) -> Item:
        """What the module returns; the file system and its names are empty where none is to be."""
        return {
            "changed": changed,
            "file_system": file_system,
            **{name: file_system.get(name, "") for name in self.NAMES},
            **{name: lists.get(name, []) for name in self.LISTS},
            "diff": {"before": before, "after": after},
        }

    def _wait_until(self, goal: Goal, identity: str) -> Item | None:
        """What was seen last of a file system, when it has reached the goal."""
        return wait_until(goal, lambda: self._describe(identity), self._left(), self._progress)

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    def _wait_gone(self, items: Sequence[Mapping[str, Any]], required: bool = False) -> None:
        """Until the service shows none of them any more. ``required``: a new one by the name must not meet the old."""
        for item in items:
            identity = item["file_system_id"]
            if required and not self._params["wait"]:
                raise TrainiumError(f"{identity} by the same name is being deleted; wait until it is gone, or set wait")
            goal = Goal(
                "gone",
                lambda seen: seen is None or seen.get(self.STATE) == "deleted",
                lambda seen: "",
                lambda seen: f"{(seen or {}).get('FileSystemId')} ({(seen or {}).get(self.STATE)})",
            )
            self._wait_until(goal, identity)
