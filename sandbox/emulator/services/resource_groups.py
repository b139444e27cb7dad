"""Resource groups with members that were put into them; stock moto keeps none.

A group of the type AWS::EC2::CapacityReservationPool takes capacity reservations, and loses those that end.
"""

from __future__ import annotations

import json
from typing import Any

from moto.ec2.models import ec2_backends
from moto.resourcegroups import urls
from moto.resourcegroups.exceptions import BadRequestException, NotFoundException
from moto.resourcegroups.models import ResourceGroupsBackend, resourcegroups_backends
from moto.resourcegroups.responses import ResourceGroupsResponse

from sandbox.emulator.records import RESERVATIONS, store

POOL = "AWS::EC2::CapacityReservationPool"
LIVING = ("active", "pending")
PAGE = 50

_stock_delete = ResourceGroupsBackend.delete_group


def _members(backend: Any, name: str) -> list[str]:
    """The ARNs in a group that are still there, in the order in which they came."""
    arns: list[str] = store(backend, "members").setdefault(name, {"arns": []})["arns"]
    records = store(ec2_backends[backend.account_id][backend.region_name], RESERVATIONS)
    living = {record["CapacityReservationArn"] for record in records.values() if record["State"] in LIVING}
    arns[:] = [arn for arn in arns if arn in living]
    return arns


def groups_of(account: str, region: str, arn: str) -> list[str]:
    """The ARNs of the groups that a resource is in."""
    backend = resourcegroups_backends[account][region]
    return [group.arn for group in backend.list_groups().values() if arn in _members(backend, group.name)]


def members_of(account: str, region: str, arn: str) -> list[str]:
    """The ARNs in a group; none in one that does not exist."""
    backend = resourcegroups_backends[account][region]
    return _members(backend, backend.get_group(arn).name) if arn in backend.groups else []


def _group(response: ResourceGroupsResponse) -> Any:
    """The group that a request names by its name or its ARN."""
    name = response._get_param("Group") or response._get_param("GroupName")
    return response.resourcegroups_backend.get_group(group_name=name)


def _types(group: Any) -> list[str]:
    return [entry["Type"] for entry in group.configuration or ()]


def _listing(response: ResourceGroupsResponse, name: str, items: list[Any], more: Any = None) -> str:
    """One page of an answer."""
    first = int(response._get_param("NextToken") or 0)
    last = first + int(response._get_param("MaxResults") or PAGE)
    answer = {name: items[first:last], **{key: value[first:last] for key, value in (more or {}).items()}}
    if last < len(items):
        answer["NextToken"] = str(last)
    return json.dumps(answer)


def _shown(group: Any) -> dict[str, str]:
    return {"GroupArn": group.arn, "Name": group.name, "Description": group.description}


def get_group(self: ResourceGroupsResponse) -> str:
    return json.dumps({"Group": _shown(_group(self))})


def get_group_configuration(self: ResourceGroupsResponse) -> str:
    return json.dumps({"GroupConfiguration": {"Configuration": _group(self).configuration or []}})


def get_tags(self: ResourceGroupsResponse) -> str:
    arn = self.parsed_url.path.removeprefix("/resources/").removesuffix("/tags").replace("%3A", ":").replace("%2F", "/")
    return json.dumps({"Arn": arn, "Tags": self.resourcegroups_backend.get_group(group_name=arn).tags})


def list_groups(self: ResourceGroupsResponse) -> str:
    groups = list(self.resourcegroups_backend.list_groups().values())
    for entry in self._get_param("Filters") or ():
        if entry["Name"] != "configuration-type":
            raise BadRequestException(f"The sandbox does not know the filter {entry['Name']}")
        groups = [group for group in groups if set(_types(group)) & set(entry["Values"])]
    identifiers = [{"GroupName": group.name, "GroupArn": group.arn} for group in groups]
    return _listing(self, "GroupIdentifiers", identifiers, {"Groups": [_shown(group) for group in groups]})


def list_group_resources(self: ResourceGroupsResponse) -> str:
    arns = _members(self.resourcegroups_backend, _group(self).name)
    identifiers = [{"ResourceArn": arn, "ResourceType": "AWS::EC2::CapacityReservation"} for arn in arns]
    return _listing(self, "ResourceIdentifiers", identifiers, {"Resources": [{"Identifier": i} for i in identifiers]})


def group_resources(self: ResourceGroupsResponse) -> str:
    group, backend = _group(self), self.resourcegroups_backend
    if POOL not in _types(group):
        raise BadRequestException(f"The group {group.name} takes no resources by name.")
    records = store(ec2_backends[backend.account_id][backend.region_name], RESERVATIONS)
    known = {record["CapacityReservationArn"] for record in records.values() if record["State"] in LIVING}
    members, failed = _members(backend, group.name), []
    for arn in self._get_param("ResourceArns"):
        if arn not in known:
            reason = {"ErrorCode": "RESOURCE_NOT_FOUND", "ErrorMessage": "The capacity reservation does not exist."}
            failed.append({"ResourceArn": arn, **reason})
        elif arn not in members:
            members.append(arn)
    done = [arn for arn in self._get_param("ResourceArns") if arn in members]
    return json.dumps({"Succeeded": done, "Failed": failed, "Pending": []})


def ungroup_resources(self: ResourceGroupsResponse) -> str:
    members, done, failed = _members(self.resourcegroups_backend, _group(self).name), [], []
    for arn in self._get_param("ResourceArns"):
        if arn in members:
            members.remove(arn)
            done.append(arn)
        else:
            reason = {"ErrorCode": "RESOURCE_NOT_IN_GROUP", "ErrorMessage": "The resource is not in the group."}
            failed.append({"ResourceArn": arn, **reason})
    return json.dumps({"Succeeded": done, "Failed": failed, "Pending": []})


def _delete_group(self: Any, group_name: str) -> Any:
    """By name or ARN; its members stay."""
    if group_name not in self.groups:
        raise NotFoundException
    group = _stock_delete(self, group_name)
    store(self, "members").pop(group.name, None)
    return group


def install() -> None:
    for action in (
        get_group,
        get_group_configuration,
        get_tags,
        list_groups,
        list_group_resources,
        group_resources,
        ungroup_resources,
    ):
        setattr(ResourceGroupsResponse, action.__name__, action)
    ResourceGroupsBackend.delete_group = _delete_group
    for path in ("group-resources", "ungroup-resources", "list-group-resources"):
        urls.url_paths["{0}/" + path + "$"] = ResourceGroupsResponse.dispatch
