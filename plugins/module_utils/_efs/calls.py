# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of EFS each, and the look at subnets of EC2, see ec2.py for errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws

from ansible_collections.amazon.aws.plugins.module_utils.retries import AWSRetry
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    one_call,
    pages,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError

# A mount target that is not listed any more may still keep its file system from being deleted.
_until_free = AWSRetry.jittered_backoff(retries=8, delay=1, max_delay=20, catch_extra_error_codes=["FileSystemInUse"])


@contextmanager
def _within_limits(what: str) -> Iterator[None]:
    """Say what the limits of throughput are that a call met."""
    try:
        yield
    except AwsCallError as error:
        if error.code == "TooManyRequests":
            raise TrainiumError(
                f"AWS changes the throughput mode of {what}, or lowers its provisioned throughput, only 24 hours after "
                "its throughput was provisioned or raised; wait until then, or leave throughput_mode and "
                "provisioned_throughput (in the playbooks trainium_shared_storage_throughput) as they are"
            ) from error
        if error.code == "ThroughputLimitExceeded":
            raise TrainiumError(
                f"the throughput of {what} would be more than this account may have in the region; lower "
                "provisioned_throughput (in the playbooks trainium_shared_storage_throughput), or ask AWS for a higher "
                "quota of EFS"
            ) from error
        raise


@one_call("list the mount targets")
def targets(client: Client, identity: str) -> list[Item]:
    """Every ``MountTargets[]`` item of a file system; none where there is no such file system."""
    with passing_over("FileSystemNotFound"):
        return list(pages(client, "describe_mount_targets", FileSystemId=identity).get("MountTargets", ()))
    return []


@one_call("look at the security groups of the mount target")
@retried
def groups(client: Client, target: str) -> list[str]:
    """None of a mount target that has no network interface yet, or that is gone or going since it was listed."""
    with passing_over("IncorrectMountTargetState", "MountTargetNotFound"):
        return list(client.describe_mount_target_security_groups(MountTargetId=target)["SecurityGroups"])
    return []


@one_call("look at the subnets")
def subnets(ec2: Client, identities: Sequence[str]) -> list[Item]:
    return list(pages(ec2, "describe_subnets", SubnetIds=list(identities)).get("Subnets", ()))


@_within_limits("the file system")
@one_call("make the file system")
@retried
def create(client: Client, request: Mapping[str, Any]) -> Item | None:
    """The new file system, or None where there is one with its CreationToken."""
    with passing_over("FileSystemAlreadyExists"):
        return dict(client.create_file_system(**request))
    return None


def update(client: Client, request: Mapping[str, Any]) -> None:
    """Safe to repeat: it names what is wanted."""

    @one_call("change the file system")
    @retried
    def change() -> None:
        client.update_file_system(**request)

    with _within_limits(request["FileSystemId"]):
        change()


@one_call("tag the file system")
@retried
def tag(client: Client, identity: str, tags: Sequence[Mapping[str, str]]) -> None:
    client.tag_resource(ResourceId=identity, Tags=list(tags))


@one_call("make the mount target")
@retried
def create_target(client: Client, request: Mapping[str, Any]) -> None:
    """One that is there already, from a call whose answer was lost, is fine."""
    try:
        client.create_mount_target(**request)
    except aws.ClientError as error:
        if error.response["Error"]["Code"] != "MountTargetConflict" or not _has_target(client, request):
            raise


def _has_target(client: Client, request: Mapping[str, Any]) -> bool:
    return request["SubnetId"] in [one["SubnetId"] for one in targets(client, request["FileSystemId"])]


@one_call("change the security groups of the mount target")
@retried
def set_groups(client: Client, target: str, wanted: Sequence[str]) -> None:
    client.modify_mount_target_security_groups(MountTargetId=target, SecurityGroups=list(wanted))


@one_call("delete the mount target")
@retried
def delete_target(client: Client, target: str) -> None:
    """One that is gone already is fine."""
    with passing_over("MountTargetNotFound"):
        client.delete_mount_target(MountTargetId=target)


@one_call("delete the file system")
@_until_free
def delete(client: Client, identity: str) -> None:
    """One that is gone already is fine."""
    with passing_over("FileSystemNotFound"):
        client.delete_file_system(FileSystemId=identity)
