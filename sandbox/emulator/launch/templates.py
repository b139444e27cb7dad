"""Launches from a launch template: its fields become the request's own, and so pass every check of a launch.

Stock moto takes only image, type, key, user data and groups from a template, but no interfaces and no placement.
"""

from __future__ import annotations

import copy
from typing import Any

from moto.ec2.responses import EC2Response

from sandbox.emulator.ec2.catalog import ROOT_SIZE

Parameters = dict[str, Any]
# Fields of which a request gives only some members.
NESTED = ("Placement", "MetadataOptions", "CapacityReservationSpecification", "Monitoring")


def expand(response: EC2Response) -> EC2Response:
    """The same RunInstances request with the fields of its launch template; the request's own win."""
    named = response._get_param("LaunchTemplate")
    if not named:
        return response
    version = response.ec2_backend._get_template_from_args({"Version": "$Default", **named})
    merged = merge(version.data, {key: value for key, value in response.params.items() if key != "LaunchTemplate"})
    tags = {"aws:ec2launchtemplate:id": version.template.id, "aws:ec2launchtemplate:version": str(version.number)}
    specifications = merged.get("TagSpecifications", [])
    merged["TagSpecifications"] = _merge_tags([_specification("instance", tags)], specifications)
    expanded = copy.copy(response)
    expanded.params = merged
    return expanded


def merge(data: Parameters, request: Parameters) -> Parameters:
    """The fields of a launch template and of a request."""
    merged = copy.deepcopy({key: value for key, value in data.items() if value is not None})
    if "UserData" in merged:
        merged["UserData"] = merged["UserData"].as_bytes()
    for key, value in request.items():
        if key == "TagSpecifications":
            value = _merge_tags(merged.get(key, []), value)
        elif key in NESTED and isinstance(merged.get(key), dict):
            value = {**merged[key], **value}
        merged[key] = value
    # Instance store volumes are no volumes.
    devices = [device for device in merged.get("BlockDeviceMappings") or [] if not device.get("VirtualName")]
    for device in devices:
        ebs = device.get("Ebs", {})
        if not ebs.get("VolumeSize") and not ebs.get("SnapshotId"):
            ebs["VolumeSize"] = ROOT_SIZE  # the image's own
    if "BlockDeviceMappings" in merged:
        merged["BlockDeviceMappings"] = devices
    for nic in merged.get("NetworkInterfaces") or []:
        for key in ("AssociatePublicIpAddress", "DeleteOnTermination"):
            if isinstance(nic.get(key), str):
                nic[key] = nic[key].lower() == "true"
    return merged


def _specification(kind: str, tags: dict[str, str]) -> Parameters:
    return {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def _merge_tags(first: list[Parameters], second: list[Parameters]) -> list[Parameters]:
    """Tags of both by type of resource; the second win."""
    tags: dict[str, dict[str, str]] = {}
    for specification in [*first, *second]:
        of_kind = tags.setdefault(specification["ResourceType"], {})
        of_kind.update({tag["Key"]: tag.get("Value", "") for tag in specification.get("Tags", [])})
    return [_specification(kind, of_kind) for kind, of_kind in tags.items() if of_kind]
