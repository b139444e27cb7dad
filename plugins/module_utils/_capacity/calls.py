# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call each about capacity reservations (EC2) and groups of them (Resource Groups), see ec2.py for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws

from ansible_collections.amazon.aws.plugins.module_utils.retries import AWSRetry
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.plan import POOL
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    call_of,
    filters_of,
    list_of,
    one_call,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError

# CreateGroup as EC2 wants it for a group that launches may target.
CONFIGURATION = [
    {"Type": POOL},
    {
        "Type": "AWS::ResourceGroups::Generic",
        "Parameters": [{"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}],
    },
]
PAGE_SIZE = 1000

_reservations = list_of("list the capacity reservations", "describe_capacity_reservations", "CapacityReservations")
modify = call_of("modify the capacity reservation", "modify_capacity_reservation")
cancel = call_of("cancel the capacity reservation", "cancel_capacity_reservation")
groups_of = list_of(
    "list the groups of the capacity reservation", "get_groups_for_capacity_reservation", "CapacityReservationGroups"
)
describe_group = call_of("describe the resource group", "get_group", "Group")
create_group = call_of("make the resource group", "create_group")
delete_group = call_of("delete the resource group", "delete_group", passed=("NotFoundException",))
list_groups = list_of("list the resource groups", "list_groups", "GroupIdentifiers")
_resources = list_of("list what is in the resource group", "list_group_resources", "Resources")


def describe(client: Client, filters: Mapping[str, Any]) -> list[Item]:
    """The ``CapacityReservations[]`` items that match on the server's side, cancelled ones too while EC2 shows them."""
    return _reservations(client, Filters=filters_of(filters), PaginationConfig={"PageSize": PAGE_SIZE})


@one_call("make the capacity reservation")
def create(client: Client, request: Mapping[str, Any]) -> Item:
    """The reservation. Safe to repeat: the request carries a ClientToken.

    ``client`` should not retry by itself, since EC2 reports missing capacity as a server error.
    """

    @AWSRetry.jittered_backoff(retries=5, delay=1, max_delay=20)
    def throttled() -> Item:
        return dict(client.create_capacity_reservation(**request)["CapacityReservation"])

    for _attempt in range(2):
        try:
            return throttled()
        except (aws.HTTPClientError, aws.ConnectionError):
            # The answer was lost, perhaps not the reservation: the token makes a second question harmless.
            continue
    return throttled()


@one_call("try the capacity reservation")
def dry_run(client: Client, request: Mapping[str, Any]) -> None:
    """Ask EC2 whether it would take the request; returns when it would. It does not say whether there is capacity."""
    with passing_over("DryRunOperation"):
        client.create_capacity_reservation(**request, DryRun=True)


@one_call("describe the resource group")
@retried
def group_types(client: Client, name: str) -> list[str] | None:
    """The types of a group's configuration; None where there is no such group."""
    with passing_over("NotFoundException"):
        found = client.get_group_configuration(Group=name).get("GroupConfiguration", {})
        return [entry["Type"] for entry in found.get("Configuration", ())]
    return None


@one_call("put the capacity reservation into the resource group")
@retried
def group(client: Client, name: str, arns: Sequence[str]) -> None:
    _all_done(client.group_resources(Group=name, ResourceArns=list(arns)), f"put it into the resource group {name}")


@one_call("take the capacity reservation out of the resource group")
@retried
def ungroup(client: Client, name: str, arns: Sequence[str]) -> None:
    _all_done(client.ungroup_resources(Group=name, ResourceArns=list(arns)), f"take it out of the group {name}")


def _all_done(answer: Mapping[str, Any], description: str) -> None:
    """Both calls succeed as calls where they failed for a resource."""
    for failed in answer.get("Failed") or ():
        code, reason = failed.get("ErrorCode", ""), str(failed.get("ErrorMessage", "")).rstrip(".")
        raise AwsCallError(f"AWS would not {description}: {reason} ({code})", code, reason)


def members(client: Client, name: str) -> list[str]:
    """The ARNs in a group."""
    return [item["Identifier"]["ResourceArn"] for item in _resources(client, Group=name)]


@one_call("read the tags of the resource group")
@retried
def group_tags(client: Client, arn: str) -> dict[str, str]:
    """A group's tags; none for a group that has gone meanwhile."""
    with passing_over("NotFoundException"):
        return dict(client.get_tags(Arn=arn).get("Tags") or {})
    return {}
