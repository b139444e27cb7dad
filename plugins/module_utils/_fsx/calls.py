# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of FSx each, see ec2.py for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    one_call,
    passing_over,
    retried,
)


@one_call("make the file system")
@retried
def create(client: Client, request: Mapping[str, Any]) -> Item:
    """The new file system. Safe to repeat: the request carries a ClientRequestToken."""
    return dict(client.create_file_system(**request)["FileSystem"])


@one_call("change the file system")
@retried
def update(client: Client, request: Mapping[str, Any]) -> None:
    """Safe to repeat like ``create``."""
    client.update_file_system(**request)


@one_call("tag the file system")
@retried
def tag(client: Client, arn: str, tags: Sequence[Mapping[str, str]]) -> None:
    client.tag_resource(ResourceARN=arn, Tags=list(tags))


@one_call("delete the file system")
@retried
def delete(client: Client, identity: str) -> None:
    """One that is gone already is fine."""
    with passing_over("FileSystemNotFound"):
        client.delete_file_system(FileSystemId=identity)
