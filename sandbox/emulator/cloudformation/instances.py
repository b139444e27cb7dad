"""AWS::EC2::Instance by the same path as RunInstances; stock moto wants the image in the template itself."""

from __future__ import annotations

from typing import Any

from moto.ec2.models import ec2_backends

from sandbox.emulator.cloudformation.resource import Properties, Resource
from sandbox.emulator.launch import run_instances

# Properties with another name or form than in RunInstances.
OTHERS = ("AvailabilityZone", "IamInstanceProfile", "LaunchTemplate", "Monitoring", "SecurityGroups", "Tags", "Tenancy")


class ClusterInstance(Resource):
    """An instance, by itself or from a launch template."""

    def create(self) -> None:
        wanted = self.properties
        request = {key: value for key, value in wanted.items() if key not in OTHERS}
        if wanted.get("LaunchTemplate"):
            request["LaunchTemplate"] = dict(wanted["LaunchTemplate"])
        if wanted.get("IamInstanceProfile"):
            request["IamInstanceProfile"] = {"Name": wanted["IamInstanceProfile"]}
        if wanted.get("AvailabilityZone"):
            request["Placement"] = {"AvailabilityZone": wanted["AvailabilityZone"]}
        if wanted.get("Tags"):
            request["TagSpecifications"] = [{"ResourceType": "instance", "Tags": wanted["Tags"]}]
        request |= {"MinCount": 1, "MaxCount": 1}
        self.instance = run_instances.run(self.account, self.region, request).instances[0]
        self.identity = self.instance.id
        tags = {
            "aws:cloudformation:logical-id": self.context["LogicalId"],
            "aws:cloudformation:stack-id": self.context["StackId"],
            "aws:cloudformation:stack-name": self.context["StackId"].split("/")[1],
        }
        ec2_backends[self.account][self.region].tags[self.identity].update(tags)

    def get_cfn_attribute(self, name: str) -> Any:
        found = {
            "AvailabilityZone": self.instance.availability_zone,
            "InstanceId": self.identity,
            "PrivateDnsName": self.instance.private_dns_name,
            "PrivateIp": self.instance.private_ip,
            "PublicDnsName": self.instance.public_dns_name,
            "PublicIp": self.instance.public_ip,
            "VpcId": self.instance.vpc_id,
        }
        return found.get(name) or ""

    def update(self, properties: Properties) -> None:
        tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])}
        ec2_backends[self.account][self.region].tags[self.identity].update(tags)

    def remove(self) -> None:
        """What hangs on the instance is free only when it is terminated."""
        if self.instance._state.name not in ("shutting-down", "terminated"):
            self.instance.terminate()
        if self.instance._state.name != "terminated":
            raise RuntimeError(f"The instance {self.identity} is shutting down.")
