"""What calls of EFS are about, and what EFS does with EC2 in the name of who calls.

Sources: the Service Authorization Reference of EFS (its condition keys are Encrypted and CreateAction; a mount target
is no resource of its own, and is judged by its file system), and for EC2 the API reference of CreateMountTarget,
DeleteMountTarget and those of their security groups.
"""

from __future__ import annotations

import urllib.parse
from typing import Any

from moto.efs.models import efs_backends

from sandbox.emulator.access.ec2 import ACCOUNT
from sandbox.emulator.access.roles import linked
from sandbox.emulator.access.statements import Need

Resource = tuple[str, dict[str, str]]

_VIA = {"aws:ViaAWSService": ["true"]}
_EVERYTHING: list[Resource] = [("*", {})]


def _arn(region: str, identity: str) -> str:
    return f"arn:aws:elasticfilesystem:{region}:{ACCOUNT}:file-system/{identity}"


def made(region: str) -> list[Resource]:
    """What is being made."""
    return [(_arn(region, "new"), {})]


def resources(region: str, path: str, given: dict[str, Any]) -> list[Resource]:
    """The file system that the path or the request names, or the one of a mount target; none for all of them."""
    backend, named = efs_backends[ACCOUNT][region], urllib.parse.unquote(path).strip("/").split("/")
    identity = str(given.get("FileSystemId") or (named[2] if len(named) > 2 else ""))
    if target := backend.mount_targets_by_id.get(identity):
        identity = target.file_system_id
    if not identity:
        return []
    return [(_arn(region, identity), dict(backend.tagging_service.get_tag_dict_for_resource(identity)))]


def more(region: str, name: str, given: dict[str, Any]) -> list[Need]:
    """What is needed beside the call itself."""
    interface: list[Resource] = [(f"arn:aws:ec2:{region}:{ACCOUNT}:network-interface/eni-of-efs", {})]
    if name == "CreateFileSystem":
        return [linked("elasticfilesystem.amazonaws.com")]
    if name == "CreateMountTarget":
        looks: list[Need] = [
            {"action": f"ec2:{look}", "resources": _EVERYTHING, "context": _VIA}
            for look in ("DescribeSubnets", "DescribeNetworkInterfaces")
        ]
        # Into a subnet, with security groups.
        parts = (
            ("subnet", given.get("SubnetId")),
            *(("security-group", group) for group in given.get("SecurityGroups") or ()),
        )
        used: list[Resource] = [(f"arn:aws:ec2:{region}:{ACCOUNT}:{kind}/{identity}", {}) for kind, identity in parts]
        return [*looks, {"action": "ec2:CreateNetworkInterface", "resources": [*interface, *used], "context": _VIA}]
    action = {
        "DeleteMountTarget": "DeleteNetworkInterface",
        "ModifyMountTargetSecurityGroups": "ModifyNetworkInterfaceAttribute",
        "DescribeMountTargetSecurityGroups": "DescribeNetworkInterfaceAttribute",
    }.get(name)
    where = _EVERYTHING if action and action.startswith("Describe") else interface
    return [{"action": f"ec2:{action}", "resources": where, "context": _VIA}] if action else []
