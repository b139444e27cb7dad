# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of EFS each, and the look at subnets of EC2, see ec2.py for errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.retries import AWSRetry
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    call_of,
    list_of,
    one_call,
    passing_over,
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


targets = list_of("list the mount targets", "describe_mount_targets", "MountTargets", ("FileSystemNotFound",))
# None of a mount target that has no network interface yet, or that is gone or going since it was listed.
groups = call_of(
    "look at the security groups of the mount target",
    "describe_mount_target_security_groups",
    "SecurityGroups",
    ("IncorrectMountTargetState", "MountTargetNotFound"),
)
subnets = list_of("look at the subnets", "describe_subnets", "Subnets")
# The id of the new file system, or None where there is one with its CreationToken.
create = _within_limits("the file system")(
    call_of("make the file system", "create_file_system", "FileSystemId", ("FileSystemAlreadyExists",))
)
_update = call_of("change the file system", "update_file_system")
tag = call_of("tag the file system", "tag_resource")
_create_target = call_of("make the mount target", "create_mount_target")
set_groups = call_of("change the security groups of the mount target", "modify_mount_target_security_groups")
delete_target = call_of("delete the mount target", "delete_mount_target", passed=("MountTargetNotFound",))


def update(client: Client, request: Mapping[str, Any]) -> None:
    """Safe to repeat: it names what is wanted."""
    with _within_limits(request["FileSystemId"]):
        _update(client, **request)


def create_target(client: Client, request: Mapping[str, Any]) -> None:
    """One that is there already, from a call whose answer was lost, is fine."""
    try:
        _create_target(client, **request)
    except AwsCallError as error:
        if error.code != "MountTargetConflict" or not _has_target(client, request):
            raise


def _has_target(client: Client, request: Mapping[str, Any]) -> bool:
    found = targets(client, FileSystemId=request["FileSystemId"])
    return request["SubnetId"] in [one["SubnetId"] for one in found]


@one_call("delete the file system")
@_until_free
def delete(client: Client, identity: str) -> None:
    """One that is gone already is fine."""
    with passing_over("FileSystemNotFound"):
        client.delete_file_system(FileSystemId=identity)
