"""Placement groups, tagged and filterable; stock moto has none."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.responses import EC2Response
from moto.moto_api._internal import mock_random

from sandbox.emulator.errors import refuse
from sandbox.emulator.records import chosen, new_tags, store

GROUPS = "placement_groups"
FIELDS = {
    "group-name": "GroupName",
    "group-arn": "GroupArn",
    "state": "State",
    "strategy": "Strategy",
    "partition-count": "PartitionCount",
}


def _unknown(name: str) -> None:
    refuse("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")


def create_placement_group(self: EC2Response) -> Any:
    self.error_on_dryrun()
    backend, name = self.ec2_backend, self._get_param("GroupName")
    groups = store(backend, GROUPS)
    if name in groups:
        refuse("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    identity = f"pg-{mock_random.get_random_hex(17)}"
    groups[name] = {
        "GroupName": name,
        "GroupId": identity,
        "GroupArn": f"arn:aws:ec2:{self.region}:{backend.account_id}:placement-group/{name}",
        "State": "available",
        "Strategy": self._get_param("Strategy", "cluster"),
        "PartitionCount": self._get_param("PartitionCount"),
    }
    backend.create_tags([identity], new_tags(self, "placement-group"))
    return ActionResult({"PlacementGroup": chosen(self, GROUPS, [name], FIELDS)[0]})


def describe_placement_groups(self: EC2Response) -> Any:
    groups = store(self.ec2_backend, GROUPS)
    names, identities = self._get_param("GroupNames", []), self._get_param("GroupIds", [])
    for name in names:
        if name not in groups:
            _unknown(name)
    by_identity = {group["GroupId"]: name for name, group in groups.items()}
    for identity in identities:
        if identity not in by_identity:
            refuse("InvalidPlacementGroupId.Unknown", f"The placement group ID '{identity}' is unknown.")
    wanted = names + [by_identity[identity] for identity in identities]
    return ActionResult({"PlacementGroups": chosen(self, GROUPS, wanted, FIELDS)})


def delete_placement_group(self: EC2Response) -> Any:
    self.error_on_dryrun()
    groups, name = store(self.ec2_backend, GROUPS), self._get_param("GroupName")
    if name not in groups:
        _unknown(name)
    for reservation in self.ec2_backend.reservations.values():
        for instance in reservation.instances:
            if instance._placement.group_name == name and instance._state.name != "terminated":
                refuse("InvalidPlacementGroup.InUse", f"The Placement Group '{name}' is in use and may not be deleted.")
    self.ec2_backend.tags.pop(groups.pop(name)["GroupId"], None)
    return EmptyResult()


def install() -> None:
    for action in (create_placement_group, describe_placement_groups, delete_placement_group):
        setattr(EC2Response, action.__name__, action)
