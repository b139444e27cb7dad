"""The resources of EC2's calls: what is there by its id or name, and what a call makes.

Source: the Service Authorization Reference of EC2, which says for each action what its resources are and which
condition keys each of them has: a tag that is there is of what is there, and one that is given of what is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from moto.ec2.models import ec2_backends

from sandbox.emulator.access.statements import Context
from sandbox.emulator.ec2.placement import GROUPS
from sandbox.emulator.records import store

ACCOUNT = "123456789012"
Resource = tuple[str, dict[str, str], Context]
# Beginning of an id -> type of the resource.
KINDS = {
    "ami": "image",
    "cr": "capacity-reservation",
    "eipalloc": "elastic-ip",
    "eni": "network-interface",
    "i": "instance",
    "igw": "internet-gateway",
    "key": "key-pair",
    "lt": "launch-template",
    "nat": "natgateway",
    "pg": "placement-group",
    "rtb": "route-table",
    "sg": "security-group",
    "sir": "spot-instances-request",
    "snap": "snapshot",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
    "vpce": "vpc-endpoint",
}
# They belong to no account, or to others.
_OF_NO_ACCOUNT = ("image", "snapshot")
_ID = re.compile(r"^([a-z]+)-[0-9a-f]{8,17}$")
# What a call makes. Volumes of a launch are counted by themselves.
_MADE = {
    "AllocateAddress": ["elastic-ip"],
    "CreateCapacityReservation": ["capacity-reservation"],
    "CreateImage": ["image", "snapshot"],
    "CreateInternetGateway": ["internet-gateway"],
    "CreateKeyPair": ["key-pair"],
    "CreateLaunchTemplate": ["launch-template"],
    "CreateNatGateway": ["natgateway"],
    "CreateNetworkInterface": ["network-interface"],
    "CreatePlacementGroup": ["placement-group"],
    "CreateRouteTable": ["route-table"],
    "CreateSecurityGroup": ["security-group"],
    "CreateSubnet": ["subnet"],
    "CreateVolume": ["volume"],
    "CreateVpc": ["vpc"],
    "CreateVpcEndpoint": ["vpc-endpoint"],
    "PurchaseCapacityBlock": ["capacity-reservation"],
    "ImportKeyPair": ["key-pair"],
    "RunInstances": ["instance", "network-interface"],
}
# What these name besides is no resource of theirs.
_ONLY = {
    "AuthorizeSecurityGroupEgress": ("GroupId",),
    "AuthorizeSecurityGroupIngress": ("GroupId",),
    "CreateRoute": ("RouteTableId",),
    "ReplaceRoute": ("RouteTableId",),
    "RevokeSecurityGroupEgress": ("GroupId",),
    "RevokeSecurityGroupIngress": ("GroupId",),
    "UpdateSecurityGroupRuleDescriptionsEgress": ("GroupId",),
    "UpdateSecurityGroupRuleDescriptionsIngress": ("GroupId",),
}
_NO_NAMES = ("LaunchTemplateData.", "TagSpecification", "Tag.")
# Ids of an account's own that stand for something else, below.
_ASSOCIATIONS = ("eipassoc", "rtbassoc")


def resources(region: str, name: str, given: dict[str, Any]) -> list[Resource]:
    """ARN, tags, and context of its own of everything that a call is about; one of an unknown id has no tags."""
    found: list[Resource] = []
    for one in (*_there(region, name, given), *_made(region, name, given)):
        if one not in found:
            found.append(one)
    return found


def tags_of_kind(given: dict[str, Any], kind: str) -> dict[str, str]:
    """The tags that a request gives to what it makes of a kind."""
    found: dict[str, str] = {}
    for key, value in given.items():
        match = re.match(r"^(TagSpecifications?\.\d+)\.ResourceType$", key)
        if match and value == kind:
            for tag in (one for one in given if one.startswith(f"{match[1]}.Tag.") and one.endswith(".Key")):
                found[str(given[tag])] = str(given.get(f"{tag.removesuffix('Key')}Value", ""))
    return found


def request_tags(tags: dict[str, str]) -> Context:
    if not tags:
        return {}
    return {**{f"aws:RequestTag/{key}": [value] for key, value in tags.items()}, "aws:TagKeys": list(tags)}


def _arn(region: str, kind: str, name: str) -> str:
    return f"arn:aws:ec2:{region}:{'' if kind in _OF_NO_ACCOUNT else ACCOUNT}:{kind}/{name}"


def _there(region: str, name: str, given: dict[str, Any]) -> Iterator[Resource]:
    """What a request names: by ids, by names, by associations."""
    backend = ec2_backends[ACCOUNT][region]

    def known(kind: str, identity: str, called: str = "") -> Resource:
        return _arn(region, kind, called or identity), dict(backend.tags.get(identity, {})), {}

    for key, value in given.items():
        # What a launch template names is asked for when it launches.
        if key.startswith(_NO_NAMES) or (name in _ONLY and key not in _ONLY[name]):
            continue
        match = _ID.match(str(value))
        if match and match[1] in _ASSOCIATIONS:
            yield from (known(*one) for one in _associated(backend, str(value)))
        elif match and match[1] in KINDS:
            yield known(KINDS[match[1]], str(value))
        elif name in ("CreateTags", "DeleteTags") and key.startswith("ResourceId."):
            yield known("unknown", str(value))
    if name in ("DeleteKeyPair", "RunInstances") and (key_name := given.get("KeyName")):
        pair = backend.key_pairs.get(key_name)
        yield known("key-pair", pair.id if pair else "", key_name)
    group = given.get("Placement.GroupName") if name == "RunInstances" else given.get("GroupName")
    if name in ("DeletePlacementGroup", "RunInstances") and group:
        yield known("placement-group", dict(store(backend, GROUPS)).get(group, {}).get("GroupId", ""), group)
    if template := given.get("LaunchTemplateName") if name == "DeleteLaunchTemplate" else None:
        yield known("launch-template", backend.launch_template_name_to_ids.get(template, ""), template)
    if public := given.get("PublicIp"):
        address = next((one for one in backend.addresses if one.public_ip == public), None)
        yield known("elastic-ip", address.allocation_id if address else "", str(public))
    for key, value in given.items():
        if key.endswith(".CapacityReservationResourceGroupArn"):
            yield str(value), {}, {}


def _associated(backend: Any, association: str) -> list[tuple[str, str]]:
    """Kinds and ids of what an association joins; of one that is not there nobody knows anything."""
    for address in backend.addresses:
        if address.association_id == association:
            interface = address.eni.id if address.eni else ""
            return [("elastic-ip", address.allocation_id), *([("network-interface", interface)] if interface else [])]
    for table in backend.route_tables.values():
        for one in table.associations:
            if one["RouteTableAssociationId"] == association:
                subnet = one.get("SubnetId")
                return [("route-table", table.id), *([("subnet", subnet)] if subnet else [])]
    return [("unknown", association)]


def _made(region: str, name: str, given: dict[str, Any]) -> Iterator[Resource]:
    """What is made: it has no tags yet, and those that the request gives to its kind."""
    for kind in _MADE.get(name, []):
        # An interface that is there is no new one.
        if kind != "network-interface" or not _interfaces_are_there(given):
            called = given.get("KeyName") if kind == "key-pair" else given.get("GroupName")
            yield _new(region, kind, given, str(called or "new") if kind in ("key-pair", "placement-group") else "new")
    if name == "RunInstances":
        yield from _volumes(region, given)
        # A resource of its own where it is tagged ("Work with Spot Instances" of EC2's example policies).
        if tags_of_kind(given, "spot-instances-request"):
            yield _new(region, "spot-instances-request", given)


def _interfaces_are_there(given: dict[str, Any]) -> bool:
    mine = [key for key in given if re.match(r"^NetworkInterface\.\d+\.DeviceIndex$", key)]
    return bool(mine) and all(f"{key.rpartition('.')[0]}.NetworkInterfaceId" in given for key in mine)


def _new(region: str, kind: str, given: dict[str, Any], called: str = "new") -> Resource:
    return _arn(region, kind, called), {}, request_tags(tags_of_kind(given, kind))


def _volume(region: str, given: dict[str, Any], encrypted: bool) -> Resource:
    arn, tags, own = _new(region, "volume", given)
    return arn, tags, {**own, "ec2:Encrypted": [str(encrypted).lower()]}


def _volumes(region: str, given: dict[str, Any]) -> Iterator[Resource]:
    """Those that the request names, and the root volume of the image where it is none of them."""
    image = ec2_backends[ACCOUNT][region].amis.get(given.get("ImageId", ""))
    devices = {key: value for key, value in given.items() if re.match(r"^BlockDeviceMapping\.\d+\.DeviceName$", key)}
    for key in devices:
        volume = f"{key.removesuffix('DeviceName')}Ebs."
        if any(one.startswith(volume) for one in given):
            encrypted = str(given.get(f"{volume}Encrypted", "false")).lower() == "true" or f"{volume}KmsKeyId" in given
            yield _volume(region, given, encrypted)
    if image and image.root_device_name not in devices.values():
        yield _volume(region, given, False)


def template_called(region: str, name: str) -> str:
    """The id of a launch template; '' for none of the name."""
    return str(ec2_backends[ACCOUNT][region].launch_template_name_to_ids.get(name, ""))


def by_template(region: str, template: str, version: str, subnets: list[str]) -> list[Resource]:
    """What a launch by a template is about: the template, what it names and what it makes, with the tags that it gives.

    A template that is not there launches nothing, and the service says so.
    """
    backend = ec2_backends[ACCOUNT][region]
    try:
        data = backend._get_template_from_args({"LaunchTemplateId": template, "Version": version}).data
    except Exception:
        return []
    groups = [
        *data.get("SecurityGroupIds", []),
        *(group for card in data.get("NetworkInterfaces", []) for group in card.get("Groups", [])),
    ]
    # A template for EKS names no image, and EKS takes one of its own.
    named = [("image", data.get("ImageId", "of-eks")), ("launch-template", template)]
    named += [("subnet", one) for one in subnets]
    named += [("security-group", group) for group in dict.fromkeys(groups)]
    tags = data.get("TagSpecifications", [])
    made = {one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in tags}
    there: list[Resource] = [(_arn(region, kind, one), dict(backend.tags.get(one, {})), {}) for kind, one in named]
    new = ("instance", "network-interface", "volume")
    return there + [(_arn(region, kind, "new"), {}, request_tags(made.get(kind, {}))) for kind in new]
