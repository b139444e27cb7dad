# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The RunInstances request of a set of nodes, and the token that makes it safe to repeat. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    GENERATION_TAG,
    PLACE_TAG,
    ROLE_TAG,
    SET_TAG,
    client_token,
    own_tags,
    tag_list,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import Place
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import Interface
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.user_data import with_stop

# The suboptions of volumes, as EC2 names them.
_VOLUME_FIELDS = {
    "size": "VolumeSize",
    "type": "VolumeType",
    "iops": "Iops",
    "throughput": "Throughput",
    "kms_key_id": "KmsKeyId",
    "snapshot_id": "SnapshotId",
}
VOLUME_DEFAULT = {"type": "gp3", "encrypted": True, "delete_on_termination": True}

Params = Mapping[str, Any]


def set_tags(params: Params) -> dict[str, str]:
    """The tags of everything that belongs to the set; the user's may rename, the collection's own are fixed."""
    return {
        "Name": params["name"],
        **own_tags(params),
        ROLE_TAG: params["role"],
        SET_TAG: params["name"],
    }


def interface_entries(interfaces: Sequence[Interface], subnet_id: str, groups: Sequence[str]) -> list[dict[str, Any]]:
    """``NetworkInterfaces`` of RunInstances or of a launch template.

    A single interface says that it wants no public address, whatever the subnet's default; EC2 gives none to several.
    """
    entries: list[dict[str, Any]] = []
    for interface in interfaces:
        entry: dict[str, Any] = {
            "NetworkCardIndex": interface.card,
            "DeviceIndex": interface.device,
            "InterfaceType": interface.kind,
            "DeleteOnTermination": True,
        }
        if subnet_id:
            entry["SubnetId"] = subnet_id
        if groups:
            entry["Groups"] = list(groups)
        entries.append(entry)
    if len(entries) == 1:
        entries[0]["AssociatePublicIpAddress"] = False
    return entries


def volume_mappings(volumes: Sequence[Mapping[str, Any]], image: Mapping[str, Any]) -> list[dict[str, Any]]:
    """``BlockDeviceMappings``: the volumes asked for, and encryption for those that the image brings by itself.

    A volume without a device name is the image's root volume, one without a size has the image's. Sizes are GiB,
    throughput is MiB/s.
    """
    root = image.get("RootDeviceName") or "/dev/sda1"
    wanted = {volume.get("device_name") or root: volume for volume in volumes}
    brought = {item["DeviceName"]: item["Ebs"] for item in image.get("BlockDeviceMappings") or () if item.get("Ebs")}
    for device in dict.fromkeys([root, *brought]):
        wanted.setdefault(device, VOLUME_DEFAULT)
    mappings = []
    for device in sorted(wanted):
        volume = wanted[device]
        ebs = {name: volume[key] for key, name in _VOLUME_FIELDS.items() if volume.get(key) is not None}
        if brought.get(device, {}).get("VolumeSize"):
            ebs.setdefault("VolumeSize", brought[device]["VolumeSize"])
        ebs["DeleteOnTermination"] = bool(volume.get("delete_on_termination", True))
        # False is left out: EC2 refuses it for a snapshot that is encrypted.
        if volume.get("encrypted", True):
            ebs["Encrypted"] = True
        mappings.append({"DeviceName": device, "Ebs": ebs})
    return mappings


def capacity_specification(reservation: Mapping[str, Any] | None) -> dict[str, Any]:
    """``CapacityReservationSpecification``; empty when nothing is asked for."""
    reservation = reservation or {}
    if reservation.get("id"):
        return {"CapacityReservationTarget": {"CapacityReservationId": reservation["id"]}}
    if reservation.get("resource_group_arn"):
        arn = reservation["resource_group_arn"]
        return {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": arn}}
    if reservation.get("preference"):
        return {"CapacityReservationPreference": reservation["preference"]}
    return {}


def market_options(market: str) -> dict[str, Any]:
    """``InstanceMarketOptions``; empty for on-demand."""
    if market == "spot":
        return {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        }
    return {"MarketType": market} if market == "capacity-block" else {}


def build_request(
    params: Params,
    interfaces: Sequence[Interface],
    image: Mapping[str, Any],
    subnet_id: str,
    count: int,
    generation: int,
    place: Place | None = None,
    address: str = "",
) -> dict[str, Any]:
    """The one RunInstances request for ``count`` nodes, all or none (MinCount = MaxCount), with its ClientToken.

    ``params`` are the arguments of efa_instance, ``image`` the item of DescribeImages. ``place`` is that of the node
    which a single one replaces, ``address`` the private address that it had: "You cannot specify this option if you're
    launching more than one instance" (API reference, InstanceNetworkInterfaceSpecification).
    """
    tags = {**set_tags(params), GENERATION_TAG: str(generation), **({PLACE_TAG: str(place)} if place else {})}
    profile = _profile(params.get("instance_profile"))
    user_data = with_stop(params.get("user_data") or "", params.get("stop_after") or 0)
    # One-time spot instances can but end.
    spot = params["market"] == "spot"
    behavior = "" if spot else params.get("instance_initiated_shutdown_behavior") or ""
    fields = launch_fields(params, interfaces, image, subnet_id, tags)
    if address:
        fields["NetworkInterfaces"][0]["PrivateIpAddress"] = address
    request = {
        **fields,
        "MinCount": count,
        "MaxCount": count,
        **({"UserData": user_data} if user_data else {}),
        **({"InstanceInitiatedShutdownBehavior": behavior} if behavior else {}),
        **({"IamInstanceProfile": profile} if profile else {}),
    }
    request["ClientToken"] = client_token(request)
    return request


def launch_fields(
    params: Params,
    interfaces: Sequence[Interface],
    image: Mapping[str, Any],
    subnet_id: str,
    tags: Mapping[str, str],
) -> dict[str, Any]:
    """What a launch and a launch template say alike. ``tags`` are those of everything that is launched."""
    kinds = ["instance", "volume", "network-interface"]
    if params["market"] == "spot":
        kinds.append("spot-instances-request")
    metadata = params.get("metadata_options") or {}
    fields: dict[str, Any] = {
        "InstanceType": params["instance_type"],
        "NetworkInterfaces": interface_entries(interfaces, subnet_id, params["security_groups"] or ()),
        "BlockDeviceMappings": volume_mappings(params.get("volumes") or (), image),
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": metadata.get("http_tokens") or "required",
            # Two, so that containers on the node reach the service as well.
            "HttpPutResponseHopLimit": metadata.get("http_put_response_hop_limit") or 2,
        },
        "TagSpecifications": [{"ResourceType": kind, "Tags": tag_list(tags)} for kind in kinds],
    }
    optional = {
        "ImageId": params.get("image_id"),
        "KeyName": params.get("key_name"),
        "Placement": {"GroupName": params["placement_group"]} if params.get("placement_group") else None,
        "CapacityReservationSpecification": capacity_specification(params.get("capacity_reservation")),
        "InstanceMarketOptions": market_options(params["market"]),
    }
    return {**fields, **{key: value for key, value in optional.items() if value}}


def _profile(profile: str | None) -> dict[str, str]:
    if not profile:
        return {}
    return {"Arn": profile} if profile.startswith("arn:") else {"Name": profile}


def shown_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request as it may be shown: user data can hold secrets."""
    return {key: ("(not shown)" if key == "UserData" else value) for key, value in request.items()}
