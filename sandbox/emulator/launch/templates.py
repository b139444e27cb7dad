"""Launches from a launch template: its fields become the request's own, and so pass every check of a launch.

Stock moto takes only image, type, key, user data and groups from a template, but no interfaces and no placement.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.responses import EC2Response
from moto.ec2.utils import parse_user_data

from sandbox.emulator.ec2.catalog import ROOT_SIZE
from sandbox.emulator.errors import refuse
from sandbox.emulator.records import store

Parameters = dict[str, Any]
_create, _create_version = EC2Response.create_launch_template, EC2Response.create_launch_template_version
_version = LaunchTemplate.create_version
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


def _once(self: EC2Response, stock: Any) -> Any:
    """A repeated request with the same token is answered with what the first one made."""
    token, tokens = self._get_param("ClientToken"), store(self.ec2_backend, "template_tokens")
    asked = repr(sorted((key, value) for key, value in self.querystring.items() if key != "ClientToken"))
    if token and token in tokens:
        if tokens[token]["asked"] != asked:
            refuse("IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent.")
        return ActionResult(tokens[token]["answer"])
    answer = stock(self)
    if token:
        tokens[token] = {"asked": asked, "answer": answer.result}
    return answer


def create_launch_template(self: EC2Response) -> Any:
    """Stock moto puts the template's own tags among those of the instances that it launches, and knows no token."""
    if not re.fullmatch(r"[a-zA-Z0-9().\-/_]{3,128}", self._get_param("LaunchTemplateName") or ""):
        refuse("InvalidLaunchTemplateName.MalformedException", "The launch template name is not valid.")

    def stock(response: EC2Response) -> Any:
        made = _create(response)
        template = response.ec2_backend.get_launch_template(made.result["LaunchTemplate"]["LaunchTemplateId"])
        data = template.versions[0].data
        kept = [one for one in data.get("TagSpecifications") or () if one["ResourceType"] != "launch-template"]
        data["TagSpecifications"] = kept
        return made

    return _once(self, stock)


def create_launch_template_version(self: EC2Response) -> Any:
    return _once(self, _create_version)


def _with_user_data(self: Any, data: Parameters, description: str) -> Any:
    """Stock moto reads the user data of the first version only."""
    if isinstance(data.get("UserData"), str):
        data = {**data, "UserData": parse_user_data(data["UserData"])}
    return _version(self, data, description)


def install() -> None:
    EC2Response.create_launch_template = create_launch_template
    EC2Response.create_launch_template_version = create_launch_template_version
    LaunchTemplate.create_version = _with_user_data
