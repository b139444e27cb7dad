"""Resources that a cluster's stacks need and stock moto lacks in CloudFormation, each by the service's own backend."""

from __future__ import annotations

import contextlib
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.fsx.models import fsx_backends
from moto.moto_api._internal import mock_random

from sandbox.emulator.cloudformation.resource import Properties, Resource
from sandbox.emulator.ec2.placement import GROUPS
from sandbox.emulator.errors import refuse
from sandbox.emulator.records import store


def _pairs(tags: list[dict[str, str]]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags}


class Alarm(Resource):
    """CloudWatch alarms: only their names."""

    def get_cfn_attribute(self, name: str) -> Any:
        return f"arn:aws:cloudwatch:{self.region}:{self.account}:alarm:{self.identity}"


class AddressAssociation(Resource):
    """AWS::EC2::EIPAssociation."""

    def create(self) -> None:
        backend, wanted = ec2_backends[self.account][self.region], self.properties
        found = backend.associate_address(
            eni=backend.get_network_interface(wanted["NetworkInterfaceId"]), allocation_id=wanted["AllocationId"]
        )
        self.identity = str(found.association_id)

    def remove(self) -> None:
        backend = ec2_backends[self.account][self.region]
        if any(address.association_id == self.identity for address in backend.addresses):
            backend.disassociate_address(association_id=self.identity)


class PlacementGroup(Resource):
    """AWS::EC2::PlacementGroup."""

    def create(self) -> None:
        backend = ec2_backends[self.account][self.region]
        identity = f"pg-{mock_random.get_random_hex(17)}"
        store(backend, GROUPS)[self.name] = {
            "GroupName": self.name,
            "GroupId": identity,
            "GroupArn": f"arn:aws:ec2:{self.region}:{self.account}:placement-group/{self.name}",
            "State": "available",
            "Strategy": self.properties.get("Strategy", "cluster"),
            "PartitionCount": self.properties.get("PartitionCount"),
        }
        backend.create_tags([identity], _pairs(self.properties.get("Tags", [])))

    def get_cfn_attribute(self, name: str) -> Any:
        return self.name

    def remove(self) -> None:
        backend = ec2_backends[self.account][self.region]
        for reservation in backend.reservations.values():
            for instance in reservation.instances:
                if instance._placement.group_name == self.name and instance._state.name != "terminated":
                    refuse("InvalidPlacementGroup.InUse", f"The placement group {self.name} is in use.")
        record = store(backend, GROUPS).pop(self.name, None)
        if record:
            backend.tags.pop(record["GroupId"], None)


class FileSystem(Resource):
    """AWS::FSx::FileSystem."""

    def create(self) -> None:
        wanted = self.properties
        self.made = fsx_backends[self.account][self.region].create_file_system(
            client_request_token="",
            file_system_type=wanted["FileSystemType"],
            storage_capacity=int(wanted.get("StorageCapacity", 1200)),
            storage_type=wanted.get("StorageType", "SSD"),
            subnet_ids=wanted.get("SubnetIds", []),
            security_group_ids=wanted.get("SecurityGroupIds", []),
            tags=wanted.get("Tags"),
            kms_key_id=wanted.get("KmsKeyId"),
            windows_configuration=None,
            lustre_configuration=wanted.get("LustreConfiguration"),
            ontap_configuration=None,
            file_system_type_version=wanted.get("FileSystemTypeVersion"),
            open_zfs_configuration=wanted.get("OpenZFSConfiguration"),
        )
        self.identity = self.made.file_system_id

    def get_cfn_attribute(self, name: str) -> Any:
        found = {
            "LustreMountName": (self.made.lustre_configuration or {}).get("MountName", ""),
            "DNSName": self.made.dns_name,
            "ResourceARN": self.made.resource_arn,
        }
        return found.get(name, "")

    def remove(self) -> None:
        backend = fsx_backends[self.account][self.region]
        with contextlib.suppress(JsonRESTError):
            # It may be gone since the last look.
            backend.delete_file_system(self.identity)
        if self.identity in backend.file_systems:
            raise RuntimeError(f"The file system {self.identity} is being deleted.")


class _Rule(Resource):
    """A rule of a security group; the group named as the other side must exist as long as the rule does."""

    peer_group, peer_list = "", ""

    def create(self) -> None:
        self.identity = f"sgr-{mock_random.get_random_hex(17)}"
        self._change("authorize")

    def update(self, properties: Properties) -> None:
        self._change("revoke")
        self.properties = properties
        self._change("authorize")

    def remove(self) -> None:
        self._change("revoke")

    def _change(self, verb: str) -> None:
        backend, wanted = ec2_backends[self.account][self.region], self.properties
        if verb == "revoke" and backend.get_security_group_from_id(wanted["GroupId"]) is None:
            return
        peer = wanted.get(self.peer_group)
        ranges = [{"CidrIp": wanted["CidrIp"]}] if wanted.get("CidrIp") else []
        arguments: dict[str, Any] = {
            "group_name_or_id": wanted["GroupId"],
            "ip_protocol": str(wanted["IpProtocol"]),
            "from_port": wanted.get("FromPort"),
            "to_port": wanted.get("ToPort"),
            "ip_ranges": ranges,
            "source_groups": [{"GroupId": peer}] if peer else [],
            "prefix_list_ids": [{"PrefixListId": wanted[self.peer_list]}] if wanted.get(self.peer_list) else [],
        }
        try:
            getattr(backend, f"{verb}_security_group_{self.direction()}")(**arguments)
        except EC2ClientError as error:
            # CloudFormation takes a rule that is there for made (a new group lets everything out), and the other way.
            if error.code not in ("InvalidPermission.Duplicate", "InvalidPermission.NotFound"):
                raise

    def direction(self) -> str:
        return "ingress" if isinstance(self, Ingress) else "egress"


class Ingress(_Rule):
    """AWS::EC2::SecurityGroupIngress."""

    peer_group, peer_list = "SourceSecurityGroupId", "SourcePrefixListId"


class Egress(_Rule):
    """AWS::EC2::SecurityGroupEgress."""

    peer_group, peer_list = "DestinationSecurityGroupId", "DestinationPrefixListId"
