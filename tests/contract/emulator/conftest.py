"""An account of the emulated EC2 with a network, by the SDK over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import client, zones_with

TYPE = "trn1.32xlarge"
Item = dict[str, Any]


class Lab:
    """A client of the emulated EC2, an account with a network, and launches in short form."""

    def __init__(self, api: Any) -> None:
        self.api = api
        api.reset()
        self.ec2 = self.client("ec2")
        self.vpc = self.ec2.create_vpc(CidrBlock="10.66.0.0/16")["Vpc"]["VpcId"]
        self.zones = self.offering(TYPE)
        self.subnet = self.make_subnet("10.66.0.0/20", self.zones[0])
        self.group = self.ec2.create_security_group(GroupName="efa", Description="efa", VpcId=self.vpc)["GroupId"]
        parameter = self.client("ssm").get_parameter(Name="/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id")
        self.image = parameter["Parameter"]["Value"]

    def client(self, service: str) -> Any:
        return client(service, self.api.url, retries=0)

    def offering(self, kind: str) -> list[str]:
        return list(zones_with(kind, self.api.url))

    def make_subnet(self, cidr: str, zone: str) -> str:
        made = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=cidr, AvailabilityZone=zone)
        return str(made["Subnet"]["SubnetId"])

    def nics(self, count: int = 8, kind: str = "efa", **more: Any) -> list[Item]:
        base = {"InterfaceType": kind, "SubnetId": self.subnet, "Groups": [self.group], **more}
        return [{"NetworkCardIndex": card, "DeviceIndex": min(card, 1), **base} for card in range(count)]

    def request(self, **changes: Any) -> Item:
        base = {"ImageId": self.image, "InstanceType": TYPE, "MinCount": 1, "MaxCount": 1}
        request = {**base, "NetworkInterfaces": self.nics(), **changes}
        return {key: value for key, value in request.items() if value is not None}

    def run(self, **changes: Any) -> list[Item]:
        return list(self.ec2.run_instances(**self.request(**changes))["Instances"])

    def shown(self, *states: str, **request: Any) -> list[Item]:
        found = self.ec2.describe_instances(**request)["Reservations"]
        every = [instance for reservation in found for instance in reservation["Instances"]]
        return [instance for instance in every if not states or instance["State"]["Name"] in states]

    def wait(self, state: str) -> None:
        deadline = time.monotonic() + 300
        while {instance["State"]["Name"] for instance in self.shown()} != {state}:
            assert time.monotonic() < deadline, self.shown()
            time.sleep(0.05)

    def terminate(self) -> None:
        self.ec2.terminate_instances(InstanceIds=[instance["InstanceId"] for instance in self.shown()])
        self.wait("terminated")

    @staticmethod
    def code_of(call: Callable[[], Any]) -> str:
        """The error code of a call that must fail."""
        with pytest.raises(ClientError) as caught:
            call()
        return str(caught.value.response["Error"]["Code"])

    @staticmethod
    def named(kind: str, /, **tags: str) -> Item:
        """A tag specification."""
        return {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    @staticmethod
    def by(name: str, *values: str) -> list[Item]:
        """A filter."""
        return [{"Name": name, "Values": list(values)}]


@pytest.fixture
def lab(api: Any) -> Iterator[Lab]:
    yield Lab(api)
    api.reset()
