# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One EC2 call each. Throttling is waited out; every failure becomes an AwsCallError of one sentence.

amazon.aws's own calls are not imported: Ansible sends their file with each module, which compiles it anew, and that
takes a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

with suppress(ImportError):  # AnsibleAWSModule reports a missing SDK.
    from botocore import exceptions as aws
    from botocore.parsers import ResponseParserError

from ansible_collections.amazon.aws.plugins.module_utils.retries import AWSRetry
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    call_of,
    checked,
    filters_of,
    list_of,
    one_call,
    pages,
    passing_over,
    retried,
    unreadable,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import looks

# EC2's page for instances; without it, a large set would cost many calls.
PAGE_SIZE = 1000
# Systems Manager's largest page of managed nodes; its filter takes up to 100 ids.
SSM_PAGE_SIZE = 50
# CreateTags takes this many resources at once.
TAG_BATCH = 500
# EC2 may not see an instance profile yet that was just made: "changes that I make are not always immediately visible"
# (IAM user guide, "Troubleshoot IAM").
PROFILE_SECONDS = 60
# An instance that EC2 no longer knows.
GONE = "InvalidInstanceID.NotFound"
# EC2's own codes for "not here, not now": another subnet may do.
CAPACITY_CODES = (
    "InsufficientInstanceCapacity",
    "InsufficientHostCapacity",
    "InsufficientCapacity",
    "InsufficientFreeAddressesInSubnet",
    "ReservationCapacityExceeded",
    "SpotMaxPriceTooLow",
    "UnfulfillableCapacity",
    "Unsupported",
)


@one_call("list the instances")
def describe_instances(client: Client, filters: Mapping[str, Any]) -> list[Item]:
    """The ``Instances[]`` items that match on the server's side; one call per 1,000."""
    found = pages(client, "describe_instances", Filters=filters_of(filters), PaginationConfig={"PageSize": PAGE_SIZE})
    return [instance for reservation in found.get("Reservations", ()) for instance in reservation["Instances"]]


@one_call("read the console")
def console_output(client: Client, instance_id: str) -> str:
    """What an instance wrote to its console, the last 64 KB; '' where there is nothing yet, or it is gone.

    Instances that are no Nitro ones refuse ``Latest``: what they wrote at boot comes without.
    """

    @retried
    def output(**latest: bool) -> str:
        return str(client.get_console_output(InstanceId=instance_id, **latest).get("Output") or "")

    with passing_over("InvalidInstanceID*"):
        with passing_over("UnsupportedOperation"):
            return output(Latest=True)
        return output()
    return ""


@one_call("ask Systems Manager for the instances")
def managed_instances(client: Client, ids: Sequence[str]) -> set[str]:
    """Those of the instances whose SSM agent is connected; ``client`` is one of Systems Manager."""
    online: set[str] = set()
    for start in range(0, len(ids), SSM_PAGE_SIZE):
        wanted = [
            {"Key": "InstanceIds", "Values": list(ids[start : start + SSM_PAGE_SIZE])},
            {"Key": "PingStatus", "Values": ["Online"]},
        ]
        found = pages(
            client, "describe_instance_information", Filters=wanted, PaginationConfig={"PageSize": SSM_PAGE_SIZE}
        )
        online.update(item["InstanceId"] for item in found.get("InstanceInformationList", ()))
    return online


@one_call("describe the instance type")
def describe_instance_type(client: Client, name: str) -> Item | None:
    """The record of a type; None for a type that EC2 does not know."""
    with passing_over("InvalidInstanceType", "InvalidParameterValue"):
        found = pages(client, "describe_instance_types", InstanceTypes=[name]).get("InstanceTypes", ())
        return next((item for item in found if item["InstanceType"] == name), None)
    return None


@one_call("describe the instance types")
def default_vcpus(client: Client, names: Sequence[str]) -> dict[str, int]:
    """The vCPUs of types that EC2 knows."""
    found = pages(client, "describe_instance_types", InstanceTypes=list(names)).get("InstanceTypes", ())
    return {item["InstanceType"]: item["VCpuInfo"]["DefaultVCpus"] for item in found}


def list_quotas(client: Client, operation: str) -> list[Item]:
    """``client`` is one of Service Quotas; ``operation`` lists what applies to the account, or the defaults."""
    return list_of("list the quotas of EC2", operation, "Quotas")(client, ServiceCode="ec2")


_offerings = list_of(
    "list the zones that offer the instance type", "describe_instance_type_offerings", "InstanceTypeOfferings"
)
_images = list_of("describe the image", "describe_images", "Images", ("InvalidAMIID.*",))
_subnets = list_of("describe the subnets", "describe_subnets", "Subnets")
_security_groups = list_of("describe the security groups", "describe_security_groups", "SecurityGroups")
describe_volumes = list_of("describe the volumes", "describe_volumes", "Volumes")
describe_snapshots = list_of("describe the snapshots", "describe_snapshots", "Snapshots")
describe_addresses = call_of("list the Elastic IPs", "describe_addresses", "Addresses")
key_pairs = call_of("describe the key pair", "describe_key_pairs", "KeyPairs")
start_instances = call_of("start the instances", "start_instances", "StartingInstances", (GONE,))
stop_instances = call_of("stop the instances", "stop_instances", "StoppingInstances", (GONE,))
terminate_instances = call_of("terminate the instances", "terminate_instances", "TerminatingInstances", (GONE,))


def zones_offering(client: Client, instance_type: str) -> list[str]:
    """The names of the region's availability zones with the type."""
    filters = filters_of({"instance-type": instance_type})
    return sorted(item["Location"] for item in _offerings(client, LocationType="availability-zone", Filters=filters))


def describe_image(client: Client, image_id: str) -> Item | None:
    """The image; None when there is none by that id."""
    return next(iter(_images(client, ImageIds=[image_id])), None)


def describe_subnets(client: Client, ids: Sequence[str]) -> list[Item]:
    """Those of the subnets that exist. By filter and not by id, so that a missing one is no error."""
    return _subnets(client, Filters=filters_of({"subnet-id": list(ids)}))


def look(client: Client, kind: str, filters: Mapping[str, Any]) -> list[Item]:
    """Those of a kind, such as ``internet_gateways``, that match on the server's side."""
    call = list_of(f"list the {kind.replace('_', ' ')}", f"describe_{kind}", kind.title().replace("_", ""))
    return call(client, Filters=filters_of(filters))


@one_call("make the image")
def create_image(client: Client, request: Mapping[str, Any]) -> str:
    return str(client.create_image(**request)["ImageId"])


def describe_security_groups(client: Client, ids: Sequence[str]) -> list[Item]:
    """Those of the groups that exist."""
    return _security_groups(client, Filters=filters_of({"group-id": list(ids)}))


def key_pair_exists(client: Client, name: str) -> bool:
    return bool(key_pairs(client, Filters=filters_of({"key-name": name})))


@one_call("describe the placement group")
def placement_group_exists(client: Client, name: str) -> bool:
    found = checked(client.describe_placement_groups(Filters=filters_of({"group-name": name})))["PlacementGroups"]
    return any(group.get("State", "available") == "available" for group in found)


@one_call("describe the capacity reservation")
def describe_capacity_reservation(client: Client, reservation_id: str) -> Item | None:
    """The reservation; None when there is none by that id."""
    with passing_over("InvalidCapacityReservationId*"):
        found = checked(client.describe_capacity_reservations(CapacityReservationIds=[reservation_id]))
        return next(iter(found["CapacityReservations"]), None)
    return None


def not_repeated(client: Client, operation: str) -> None:
    """From now on the client repeats this operation no more by itself, whatever comes of it.

    A second client with other settings would read the whole model of EC2 anew.
    """

    def give_up(response: Any, caught_exception: Exception | None, **_more: Any) -> None:
        if caught_exception:
            raise caught_exception
        http, answer = response
        if http.status_code >= 300:
            raise aws.ClientError(answer, operation)

    client.meta.events.register_first(f"needs-retry.ec2.{operation}", give_up)


@one_call("launch the instances")
def run_instances(client: Client, request: Mapping[str, Any]) -> list[Item]:
    """The instances of one launch. Safe to repeat: the request carries a ClientToken.

    For ``client`` see ``not_repeated``, since EC2 reports missing capacity as a server error.
    """

    @AWSRetry.jittered_backoff(retries=5, delay=1, max_delay=20)
    def throttled() -> Item:
        for _passed in looks(PROFILE_SECONDS):
            try:
                return dict(client.run_instances(**request))
            except aws.ClientError as error:
                if "Invalid IAM Instance Profile" not in str(error):
                    raise
        return dict(client.run_instances(**request))

    for _attempt in range(2):
        try:
            return list(_field(throttled(), "Instances", "launch the instances"))
        except (aws.HTTPClientError, aws.ConnectionError, ResponseParserError):
            # The answer was lost, perhaps not the launch: the token makes a second question harmless.
            continue
    return list(_field(throttled(), "Instances", "launch the instances"))


def _field(answer: Mapping[str, Any], name: str, description: str) -> Any:
    """A field that EC2 never leaves out; a page that happens to be XML is read as an answer without any."""
    if name not in answer:
        raise unreadable(description)
    return answer[name]


@one_call("try the launch")
def dry_run(client: Client, request: Mapping[str, Any]) -> None:
    """Ask EC2 whether it would accept the request; returns when it would."""
    with passing_over("DryRunOperation"):
        client.run_instances(**request, DryRun=True)


@one_call("tag the resources")
def create_tags(client: Client, resources: Sequence[str], tags: Sequence[Mapping[str, str]]) -> None:
    @AWSRetry.jittered_backoff(retries=5, delay=1, max_delay=20)
    def throttled(batch: Sequence[str]) -> None:
        client.create_tags(Resources=list(batch), Tags=list(tags))

    for start in range(0, len(resources), TAG_BATCH):
        throttled(resources[start : start + TAG_BATCH])


@one_call("allocate an Elastic IP")
def allocate_address(client: Client, tags: Sequence[Mapping[str, str]]) -> Item:
    specification = [{"ResourceType": "elastic-ip", "Tags": list(tags)}]
    answer = dict(retried(client.allocate_address)(Domain="vpc", TagSpecifications=specification))
    _field(answer, "AllocationId", "allocate an Elastic IP")
    return answer


# "A newly allocated address may not be visible yet": Terraform's aws_eip and aws_eip_association wait for it as well.
shown_soon = AWSRetry.jittered_backoff(
    retries=6, delay=1, max_delay=20, catch_extra_error_codes=["ThrottlingException", "InvalidAllocationID.NotFound"]
)


@one_call("associate an Elastic IP")
def associate_address(client: Client, allocation_id: str, interface_id: str) -> None:
    request = {"AllocationId": allocation_id, "NetworkInterfaceId": interface_id, "AllowReassociation": False}
    checked(shown_soon(client.associate_address)(**request))


@one_call("release an Elastic IP")
def release_new_address(client: Client, allocation_id: str) -> None:
    """Give back an address that this run has allocated, and that EC2 may not know everywhere yet."""
    checked(shown_soon(client.release_address)(AllocationId=allocation_id))


@one_call("release an Elastic IP")
def release_address(client: Client, address: Mapping[str, Any]) -> None:
    """Give the address back, whatever it is associated with; one that is gone already is fine."""
    gone = ("InvalidAllocationID.NotFound", "InvalidAssociationID.NotFound", "InvalidAddressID.NotFound")
    if address.get("AssociationId"):
        with passing_over(*gone):
            checked(retried(client.disassociate_address)(AssociationId=address["AssociationId"]))
    with passing_over(*gone):
        checked(retried(client.release_address)(AllocationId=address["AllocationId"]))
