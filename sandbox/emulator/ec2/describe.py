"""DescribeInstances: pages of instances, and filters that stock moto lacks. It pages reservations instead."""

from __future__ import annotations

import copy
from typing import Any

import moto.ec2.models.instances as models
from moto.core.responses import ActionResult
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response
from moto.ec2.utils import filter_dict_attribute_mapping, is_tag_filter

from sandbox.emulator.errors import refuse

PAGE = 1000  # instances, EC2's limit

# Filter -> attribute of moto's instance.
FILTERS = {
    "client-token": "client_token",
    "instance-lifecycle": "lifecycle",
    "instance-state-code": "state_code_text",
    "placement-group-name": "placement.group_name",
    "tenancy": "placement.tenancy",
    "network-interface.vpc-id": "vpc_id",
    "network-interface.subnet-id": "subnet_id",
    "network-interface.network-interface-id": "interface_ids",
    "network-interface.addresses.private-ip-address": "interface_addresses",
    "network-interface.group-id": "security_groups.id",
    "iam-instance-profile.arn": "iam_instance_profile.arn",
    "capacity-reservation-id": "capacity_reservation_id",
    "metadata-options.http-tokens": "metadata_options.http_tokens",
    "root-device-type": "root_device_type",
    "virtualization-type": "virtualization_type",
    "hypervisor": "hypervisor",
}


def _check_filters(names: dict[str, Any]) -> None:
    for name in names:
        if name not in filter_dict_attribute_mapping and not is_tag_filter(name):
            refuse("InvalidParameterValue", f"The filter '{name}' is invalid")


def describe_instances(self: EC2Response) -> Any:
    self.error_on_dryrun()
    identities, limit = self._get_param("InstanceIds", []), self._get_param("MaxResults")
    if identities and limit:
        refuse(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        )
    filters = self._filters_from_querystring()
    _check_filters(filters)
    if identities:
        found = self.ec2_backend.get_reservations_by_instance_ids(identities, filters=filters)
    else:
        found = self.ec2_backend.describe_instances(filters=filters)
    size = min(int(limit), PAGE) if limit else None
    page, token = _page(found, self._get_param("NextToken"), size)
    return ActionResult({"Reservations": page, "NextToken": token})


def _page(reservations: list[Any], after: str | None, size: int | None) -> tuple[list[Any], str | None]:
    """At most ``size`` instances that follow the instance ``after``, in their reservations; and the next token."""
    pairs = [(reservation, instance) for reservation in reservations for instance in reservation.instances]
    start = 0
    if after:
        start = next((number + 1 for number, pair in enumerate(pairs) if pair[1].id == after), -1)
        if start < 0:
            refuse("InvalidNextToken", f"The token '{after}' is invalid")
    chosen = pairs[start : start + size if size else None]
    page: list[Any] = []
    for reservation, instance in chosen:
        if not page or page[-1].id != reservation.id:
            page.append(copy.copy(reservation))
            page[-1].instances = []
        page[-1].instances.append(instance)
    more = start + len(chosen) < len(pairs)
    return page, chosen[-1][1].id if more and chosen else None


_describe_status = EC2Backend.describe_instance_status

# Filter of DescribeInstanceStatus -> the value of an instance. Stock moto lets every instance pass.
STATUS_FILTERS = {
    "availability-zone": lambda instance: instance.availability_zone,
    "event.code": lambda _instance: None,
    "instance-state-code": lambda instance: str(instance._state.code),
    "instance-state-name": lambda instance: instance._state.name,
    "instance-status.status": lambda instance: instance.instance_status["Status"],
    "system-status.status": lambda instance: instance.system_status["Status"],
}


def _status(self: Any, instance_ids: list[str], include_all_instances: bool, filters: Any) -> list[Any]:
    found: list[Any] = _describe_status(self, instance_ids, include_all_instances, None)
    for asked in filters or []:
        value = STATUS_FILTERS.get(asked["name"])
        if value is None:
            refuse("InvalidParameterValue", f"The filter '{asked['name']}' is invalid")
        found = [instance for instance in found if value(instance) in asked["values"]]
    return found


def install() -> None:
    filter_dict_attribute_mapping.update(FILTERS)
    instance = models.Instance
    instance.state_code_text = property(lambda self: str(self._state.code))
    instance.interface_ids = property(lambda self: [nic.id for nic in self.network_interfaces])
    instance.interface_addresses = property(lambda self: [nic.private_ip_address for nic in self.network_interfaces])
    EC2Response.describe_instances = describe_instances
    EC2Backend.describe_instance_status = _status
