"""CreateImage: an image of an instance, which takes its time; stock moto has it at once, and no tags for snapshots.

After EC2's API reference (CreateImage, DescribeImages) and its error codes: names are unique for an owner; the image
has the architecture of its instance, and a volume of the size and the encryption of the instance's own; its snapshot
has tags of its own, and stays when the image is deregistered.
"""

from __future__ import annotations

import time
from typing import Any

from moto.ec2.models.amis import Ami
from moto.ec2.responses import EC2Response
from moto.ec2.utils import random_ami_id

from sandbox.emulator.errors import refuse

STATES = ("running", "stopped", "stopping")
LIKE = ("architecture", "boot_mode", "hypervisor", "root_device_name", "root_device_type", "virtualization_type")
SECONDS = {"pending": 0.0}

_stock_devices = Ami.block_device_mappings


def listing() -> list[dict[str, str]]:
    """The images that were made of instances, for whoever keeps their disks."""
    from moto.ec2.models import ec2_backends

    return [
        {"image_id": ami.id, "instance_id": ami.instance_id}
        for regions in list(ec2_backends.values())
        for backend in list(regions.values())
        for ami in list(backend.amis.values())
        if getattr(ami, "instance_id", None)
    ]


def _state(self: Any) -> str:
    return "pending" if time.monotonic() < self.__dict__.get("_available_at", 0.0) else str(self.__dict__["_own_state"])


def _set_state(self: Any, state: str) -> None:
    self.__dict__["_own_state"] = state


def _devices(self: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _stock_devices.fget(self)
    if root := self.__dict__.get("_root"):
        found[0]["Ebs"].update(root)
    return found


def _create_image(self: Any) -> Any:
    """Of an instance that has come to rest or runs, with a name that is free."""
    given = {name: self._get_param(name) for name in ("Name", "Description", "InstanceId")}
    tags: dict[str, dict[str, str]] = {"image": {}, "snapshot": {}}
    for one in self._get_param("TagSpecifications", []):
        if one.get("ResourceType") not in tags:
            refuse("InvalidParameterValue", f"'{one.get('ResourceType')}' is not a valid taggable resource type.")
        tags[one["ResourceType"]].update({tag["Key"]: tag.get("Value", "") for tag in one.get("Tags", [])})
    backend = self.ec2_backend
    instance = backend.get_instance(given["InstanceId"])
    if instance._state.name not in STATES:
        refuse("IncorrectState", f"Instance '{instance.id}' is not in a state from which an image can be made.")
    same = next((ami for ami in backend.amis.values() if ami.name == given["Name"] and not ami.owner_alias), None)
    if same:
        refuse("InvalidAMIName.Duplicate", f"AMI name {given['Name']} is already in use by AMI {same.id}")
    self.error_on_dryrun()
    ami = Ami(
        backend,
        random_ami_id(),
        instance=instance,
        name=given["Name"],
        description=given["Description"] or "",
        snapshot_description=f"Created by CreateImage({instance.id})",
    )
    parent = backend.amis.get(instance.image_id)
    for name in LIKE if parent else ():
        setattr(ami, name, getattr(parent, name))
    volumes = [block for _name, block in instance.get_block_device_mapping]
    if volumes:
        volume = backend.volumes[volumes[0].volume_id]
        ami.__dict__["_root"] = {"VolumeSize": int(volume.size), "Encrypted": bool(volume.encrypted)}
        ami.ebs_snapshot.encrypted = bool(volume.encrypted)
    ami.add_tags(tags["image"])
    ami.ebs_snapshot.add_tags(tags["snapshot"])
    ami.__dict__["_available_at"] = time.monotonic() + SECONDS["pending"]
    backend.amis[ami.id] = ami
    return _answer({"ImageId": ami.id})


def _answer(result: dict[str, Any]) -> Any:
    from moto.core.responses import ActionResult

    return ActionResult(result)


def install(pending: float) -> None:
    global _stock_devices
    SECONDS["pending"] = pending
    # What module catalog has put in its place.
    _stock_devices = Ami.block_device_mappings
    Ami.state = property(_state, _set_state)
    Ami.block_device_mappings = property(_devices)
    EC2Response.create_image = _create_image
