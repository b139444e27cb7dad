"""What EFS and EC2 are asked, and what they answer, call by call."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import boto3
from botocore.stub import ANY, Stubber

from tests.unit.efs import test_plan
from tests.unit.efs.test_plan import item, subnet

MAKE: Any = boto3.client
KEYS = {"aws_access_key_id": "id", "aws_secret_access_key": "secret"}
EFS, EC2 = (MAKE(service, region_name="us-west-2", **KEYS) for service in ("efs", "ec2"))
# What every answer of EFS has, and what nobody looks at.
ALWAYS: dict[str, Any] = {
    "OwnerId": "123456789012",
    "CreationToken": "t",
    "CreationTime": datetime(2026, 11, 21, tzinfo=timezone.utc),
    "NumberOfMountTargets": 0,
    "SizeInBytes": {"Value": 0},
    "PerformanceMode": "generalPurpose",
}


def known(**changes: Any) -> dict[str, Any]:
    """The file system of the other tests, as the API has it; ``more`` are further tags."""
    tags = {"Name": "data", "trainium:cluster": "c1", **changes.pop("more", {})}
    return {**ALWAYS, **item(Tags=[{"Key": key, "Value": value} for key, value in tags.items()], **changes)}


def target(zone: str, **changes: Any) -> dict[str, Any]:
    ids = {"MountTargetId": f"fsmt-0000000{zone}", "SubnetId": f"subnet-0000000{zone}"}
    return test_plan.target(zone, **{**ids, **changes})


class Efs:
    """Answers in order; a call that is not expected, or another than that, fails the test."""

    def __init__(self, efs: Stubber, ec2: Stubber) -> None:
        self._efs, self._ec2, self.client, self.ec2 = efs, ec2, EFS, EC2

    def _says(self, operation: str, answer: Any, **asked: Any) -> None:
        """An answer that is text is the code of an error."""
        if isinstance(answer, str):
            self._efs.add_client_error(operation, answer, "for the test", 400, None, asked)
        else:
            self._efs.add_response(operation, copy.deepcopy(answer), asked)

    def lists(self, *found: dict[str, Any]) -> None:
        self._says("describe_file_systems", {"FileSystems": list(found)})

    def shows(self, found: dict[str, Any]) -> None:
        self._says("describe_file_systems", {"FileSystems": [found]}, FileSystemId=found["FileSystemId"])

    def has_none(self, identity: str = "fs-1") -> None:
        self._says("describe_file_systems", "FileSystemNotFound", FileSystemId=identity)

    def has_of_token(self, token: str, *found: dict[str, Any]) -> None:
        self._says("describe_file_systems", {"FileSystems": list(found)}, CreationToken=token)

    def targets(self, *found: dict[str, Any], of: str = "fs-1", error: str = "") -> None:
        shown = [{"FileSystemId": of, **one} for one in found]
        self._says("describe_mount_targets", error or {"MountTargets": shown}, FileSystemId=of)

    def groups(self, target: str, *groups: str, error: str = "") -> None:
        answer = error or {"SecurityGroups": list(groups)}
        self._says("describe_mount_target_security_groups", answer, MountTargetId=target)

    def makes(self, error: str = "", **asked: Any) -> None:
        usual = {"CreationToken": ANY, "PerformanceMode": "generalPurpose", "Encrypted": True, "Tags": ANY}
        wanted = {**usual, "ThroughputMode": "elastic", **asked}
        self._says("create_file_system", error or known(LifeCycleState="creating"), **wanted)

    def changes(self, error: str = "", **asked: Any) -> None:
        self._says("update_file_system", error or known(), FileSystemId="fs-1", **asked)

    def attaches(self, identity: str, *groups: str, error: str = "") -> None:
        made = {
            "MountTargetId": "fsmt-0000000f",
            "FileSystemId": "fs-1",
            "SubnetId": identity,
            "LifeCycleState": "creating",
        }
        more = {"SecurityGroups": list(groups)} if groups else {}
        self._says("create_mount_target", error or made, FileSystemId="fs-1", SubnetId=identity, **more)

    def regroups(self, target: str, *groups: str) -> None:
        asked = {"MountTargetId": target, "SecurityGroups": list(groups)}
        self._says("modify_mount_target_security_groups", {}, **asked)

    def detaches(self, target: str, error: str = "") -> None:
        self._says("delete_mount_target", error or {}, MountTargetId=target)

    def tags(self, identity: str = "fs-1", **tags: str) -> None:
        asked = [{"Key": key, "Value": tags[key]} for key in sorted(tags)]
        self._says("tag_resource", {}, ResourceId=identity, Tags=asked)

    def deletes(self, identity: str = "fs-1", error: str = "") -> None:
        self._says("delete_file_system", error or {}, FileSystemId=identity)

    def subnets(self, **zones: str) -> None:
        """EC2 has them in an order of its own."""
        found = [subnet(identity, zone) for identity, zone in zones.items()]
        self._ec2.add_response("describe_subnets", {"Subnets": found[::-1]}, {"SubnetIds": list(zones)})


@contextmanager
def answering() -> Iterator[Efs]:
    """Until its end all that was to be answered has been asked."""
    with Stubber(EFS) as efs, Stubber(EC2) as ec2:
        yield Efs(efs, ec2)
        efs.assert_no_pending_responses()
        ec2.assert_no_pending_responses()
