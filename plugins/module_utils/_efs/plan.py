# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What to do about a file system of EFS and its mount targets. Pure.

A *file system* is a flat dict made of one ``FileSystems[]`` item of DescribeFileSystems and the ``MountTargets[]`` of
it, see ``file_system_of``. Throughput is MiB/s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    keep_tags,
    of_cluster,
    own_tags,
    tag_list,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._efs.checks import check_throughput

# What a new file system has where the arguments say nothing.
DEFAULT_MODE = "elastic"

Params = Mapping[str, Any]
FileSystem = dict[str, Any]
GOING = ("deleting", "deleted")


class Plan(NamedTuple):
    """What to do: ``create`` one, ``update`` the throughput of ``current``, set ``tags``, ``delete`` some.

    ``attach``: subnets that get a mount target. ``regroup``: mount targets whose security groups change. ``detach``:
    mount targets that go. ``gone_first``: a deletion of the same name that must end before one is created. ``keep``:
    the ids of those that get the tag of what was kept.
    """

    current: FileSystem | None
    create: bool
    update: dict[str, Any]
    tags: dict[str, str]
    attach: list[str]
    regroup: list[str]
    detach: list[str]
    delete: list[FileSystem]
    gone_first: list[FileSystem]
    keep: Sequence[str] = ()

    @property
    def changes(self) -> bool:
        changed = (self.create, self.update, self.tags, self.attach, self.regroup, self.detach, self.delete, self.keep)
        return any(map(bool, changed))


def file_system_of(item: Mapping[str, Any], targets: Iterable[Mapping[str, Any]] = ()) -> FileSystem:
    """The fields that matter here, by the module's options; what EFS leaves out becomes '' or 0."""
    arn = item.get("FileSystemArn") or ""
    name = dns_name(item["FileSystemId"], arn)
    mode = item.get("ThroughputMode") or ""
    return {
        "file_system_id": item["FileSystemId"],
        "arn": arn,
        "lifecycle": item.get("LifeCycleState") or "",
        "dns_name": name,
        "mount_source": f"{name}:/" if name else "",
        "throughput_mode": mode,
        "provisioned_throughput": int(item.get("ProvisionedThroughputInMibps") or 0) if mode == "provisioned" else 0,
        "encrypted": bool(item.get("Encrypted")),
        "kms_key_id": item.get("KmsKeyId") or "",
        "mount_targets": sorted((target_of(target) for target in targets), key=lambda one: one["availability_zone"]),
        "tags": tags_of(item),
    }


def target_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """One mount target; ``security_groups`` is what the caller has asked for it."""
    return {
        "mount_target_id": item.get("MountTargetId") or "",
        "subnet_id": item.get("SubnetId") or "",
        "vpc_id": item.get("VpcId") or "",
        "availability_zone": item.get("AvailabilityZoneName") or "",
        "ip_address": item.get("IpAddress") or "",
        "lifecycle": item.get("LifeCycleState") or "",
        "security_groups": sorted(item.get("SecurityGroups") or ()),
    }


def dns_name(identity: str, arn: str) -> str:
    """The name that instances of the VPC mount it by; '' for one that check mode promises."""
    parts = arn.split(":")
    if len(parts) < 4 or not identity:
        return ""
    return f"{identity}.efs.{parts[3]}.amazonaws.com{'.cn' if parts[1] == 'aws-cn' else ''}"


def wanted_tags(params: Params) -> dict[str, str]:
    """The tags of the file system; its name is what it is found by, so the user's cannot change that."""
    return {**own_tags(params), "Name": params["name"], **keep_tags({}, params.get("keep"))}


def belonging(items: Iterable[Mapping[str, Any]], params: Params) -> list[Mapping[str, Any]]:
    """Those of all file systems of the account that are meant and not gone."""
    return of_cluster((item for item in items if item.get("LifeCycleState") != "deleted"), params)


def plan_file_system(found: Sequence[FileSystem], params: Params, subnets: Sequence[Mapping[str, Any]] = ()) -> Plan:
    """What to do, given every file system of the name and EC2's ``Subnets[]`` of the subnets that were asked for.

    Raises TrainiumError for what EFS would not do.
    """
    going = [item for item in found if item["lifecycle"] in GOING]
    living = [item for item in found if item["lifecycle"] not in GOING]
    if params["state"] != "present":
        detach = [target["mount_target_id"] for item in living for target in item["mount_targets"]]
        if params["state"] == "detached":
            keep = [item["file_system_id"] for item in living if keep_tags(item["tags"], True)]
            return Plan(None, False, {}, {}, [], [], detach, [], [], keep)
        return Plan(None, False, {}, {}, [], [], detach, living, going)
    if len(living) > 1:
        ids = ", ".join(sorted(item["file_system_id"] for item in living))
        raise TrainiumError(f"{len(living)} file systems have this name: {ids}; delete those that are too many")
    if not living:
        mode = params.get("throughput_mode") or DEFAULT_MODE
        check_throughput(mode, params.get("provisioned_throughput"), params.get("provisioned_throughput") is not None)
        return Plan(None, True, {}, {}, _attach([], subnets, "the new file system"), [], [], [], going)
    current = living[0]
    if current["lifecycle"] == "error":
        raise TrainiumError(
            f"{current['file_system_id']} is in the state error, in which EFS gives its data to nobody; look at its "
            "KMS key, or remove it with state=absent"
        )
    tags = {key: value for key, value in wanted_tags(params).items() if current["tags"].get(key) != value}
    tags.update(keep_tags(current["tags"], params.get("keep")))
    attach = _attach(current["mount_targets"], subnets, current["file_system_id"])
    # In whose zone a new one comes.
    coming = {one["AvailabilityZone"] for one in subnets if one["SubnetId"] in attach}
    broken = [
        target["mount_target_id"]
        for target in current["mount_targets"]
        if target["lifecycle"] == "error" and target["availability_zone"] in coming
    ]
    wanted = sorted(set(params.get("security_groups") or ()))
    regroup = [
        target["mount_target_id"]
        for target in current["mount_targets"]
        # None are known of one that is going, or not made yet.
        if wanted and target["security_groups"] and target["security_groups"] != wanted
        if target["mount_target_id"] not in broken
    ]
    return Plan(current, False, _update(current, params), tags, attach, regroup, broken, [], [])


def _attach(there: Sequence[Mapping[str, Any]], subnets: Sequence[Mapping[str, Any]], called: str) -> list[str]:
    """The subnets that get a mount target: the first of each zone that has none, all in one VPC."""
    networks = {one["vpc_id"] for one in there if one["vpc_id"]} | {one["VpcId"] for one in subnets}
    if len(networks) > 1:
        raise TrainiumError(
            f"the mount targets of {called} would be in {len(networks)} VPCs ({', '.join(sorted(networks))}), and EFS "
            "has them in one; take subnets of one VPC, and remove those of another with state=detached"
        )
    # The caller waits until one that is being deleted is gone, and deletes one that EFS could not make.
    zones = {one["availability_zone"] for one in there if one["lifecycle"] not in (*GOING, "error")}
    chosen = []
    for subnet in subnets:
        if subnet["AvailabilityZone"] not in zones:
            zones.add(subnet["AvailabilityZone"])
            chosen.append(str(subnet["SubnetId"]))
    return chosen


def _update(current: FileSystem, params: Params) -> dict[str, Any]:
    """The throughput of ``current`` as it is to be, where it changes; an option that is not given stays as it is."""
    identity, key, there = current["file_system_id"], params.get("kms_key_id"), current["kms_key_id"]
    if not current["encrypted"]:
        raise TrainiumError(
            f"{identity} is not encrypted, which EFS cannot change; make another file system by another name and copy "
            "the data"
        )
    # EFS shows an ARN where the key's id was given.
    if key and "alias/" not in key and there not in (key, "") and not there.endswith(f"/{key}"):
        raise TrainiumError(
            f"{identity} has kms_key_id {there}, not {key}, which EFS cannot change; make another file "
            "system by another name and copy the data"
        )
    theirs, mine = _account(there), _account(current["arn"])
    if not key and theirs and mine and theirs != mine:
        raise TrainiumError(
            f"{identity} is encrypted with a key of another account, {there}, which can take its data "
            "away; give that as kms_key_id if you trust it, else take another file system"
        )
    asked = params.get("provisioned_throughput")
    mode = params.get("throughput_mode") or current["throughput_mode"]
    amount = asked if asked is not None else current["provisioned_throughput"]
    check_throughput(mode, amount, asked is not None)
    wanted = {"throughput_mode": mode, "provisioned_throughput": amount if mode == "provisioned" else 0}
    if all(current[option] == value for option, value in wanted.items()):
        return {}
    if current["lifecycle"] not in ("available", "updating", "creating"):
        raise TrainiumError(f"{identity} is {current['lifecycle']}; wait until it is available, then change it")
    return wanted


def _account(arn: str) -> str:
    return arn.split(":")[4] if arn.count(":") > 4 else ""


def creation(params: Params) -> dict[str, Any]:
    """The request of CreateFileSystem. Its token follows from cluster and name, so that a run that was killed makes no
    second file system, whatever else changed since."""
    mode = params.get("throughput_mode") or DEFAULT_MODE
    request: dict[str, Any] = {
        "CreationToken": creation_token(params["cluster_name"], params["name"]),
        "PerformanceMode": "generalPurpose",
        "Encrypted": True,
        "ThroughputMode": mode,
        "Tags": tag_list(wanted_tags(params)),
    }
    if mode == "provisioned":
        request["ProvisionedThroughputInMibps"] = float(params["provisioned_throughput"])
    if params.get("kms_key_id"):
        request["KmsKeyId"] = params["kms_key_id"]
    return request


def creation_token(cluster: str, name: str) -> str:
    """At most 64 characters; neither of the two holds a slash."""
    return f"trainium-{hashlib.sha256(f'{cluster}/{name}'.encode()).hexdigest()[:48]}"


def updating(current: FileSystem, update: Mapping[str, Any]) -> dict[str, Any]:
    """The request of UpdateFileSystem."""
    request: dict[str, Any] = {"FileSystemId": current["file_system_id"]}
    if update["throughput_mode"] != current["throughput_mode"]:
        request["ThroughputMode"] = update["throughput_mode"]
    if update["provisioned_throughput"]:
        request["ProvisionedThroughputInMibps"] = float(update["provisioned_throughput"])
    return request


def attaching(identity: str, subnet: str, params: Params) -> dict[str, Any]:
    """The request of CreateMountTarget."""
    groups = params.get("security_groups")
    return {"FileSystemId": identity, "SubnetId": subnet, **({"SecurityGroups": list(groups)} if groups else {})}


def predicted(params: Params, plan: Plan, subnets: Sequence[Mapping[str, Any]]) -> FileSystem:
    """The file system as it will be; a new one has no id and no names yet."""
    zones = {str(one["SubnetId"]): one for one in subnets}
    new = [target_of({**zones[one], "AvailabilityZoneName": zones[one]["AvailabilityZone"]}) for one in plan.attach]
    wanted = sorted(set(params.get("security_groups") or ()))
    for target in new:
        target["security_groups"] = wanted
    if plan.current:
        there = [
            {**one, "security_groups": wanted} if one["mount_target_id"] in plan.regroup else one
            for one in plan.current["mount_targets"]
            if one["mount_target_id"] not in plan.detach
        ]
        targets = sorted([*there, *new], key=lambda one: one["availability_zone"])
        tags = {**plan.current["tags"], **plan.tags}
        return {**plan.current, **plan.update, "mount_targets": targets, "tags": tags}
    empty = file_system_of({"FileSystemId": "", "LifeCycleState": "available"})
    mode = params.get("throughput_mode") or DEFAULT_MODE
    return {
        **empty,
        "throughput_mode": mode,
        "provisioned_throughput": params["provisioned_throughput"] if mode == "provisioned" else 0,
        "encrypted": True,
        "kms_key_id": params.get("kms_key_id") or "",
        "mount_targets": new,
        "tags": wanted_tags(params),
    }


def lasting(file_system: Mapping[str, Any]) -> dict[str, Any]:
    """Without what comes and goes by itself, or is known only afterwards, which is no difference that a run made."""
    targets = [
        {key: one[key] for key in ("availability_zone", "subnet_id", "security_groups")}
        for one in file_system.get("mount_targets", ())
    ]
    shown = {key: value for key, value in file_system.items() if key != "lifecycle"}
    return {**shown, "mount_targets": targets} if file_system else {}
