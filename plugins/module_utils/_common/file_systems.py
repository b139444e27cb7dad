# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What EFS and FSx have in common: file systems that are listed alike, and take time to go."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import given
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    checked,
    one_call,
    pages,
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
    try:
        found = checked(client.describe_file_systems(**which))["FileSystems"]
    except aws.ClientError as error:
        if error.response["Error"]["Code"] == "FileSystemNotFound":
            return None
        raise
    return next(iter(found), None)


class FileSystemRun:
    """The arguments of a run as it works with them, the time that it has, and the wait for what goes.

    ``TEXTS``: options in which empty text, as roles pass it, means not given. ``STATE``: the service's field for it.
    """

    TEXTS: tuple[str, ...] = ()
    STATE = ""

    def __init__(self, client: Client, params: Mapping[str, Any], check_mode: bool) -> None:
        self._client, self._check_mode, self._progress = client, check_mode, Progress()
        self._params = given(params, self.TEXTS)
        self._deadline = time.monotonic() + params["wait_timeout"]

    def _describe(self, identity: str) -> Item | None:
        raise NotImplementedError

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
