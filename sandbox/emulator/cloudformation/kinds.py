"""Which model makes a type of resource; a type that nobody knows is a resource that only has a name."""

from __future__ import annotations

from typing import Any

from moto.cloudformation import parsing

from sandbox.emulator.cloudformation import changes, cleanup, images, instances, nested, resources, waiting
from sandbox.emulator.cloudformation.resource import Resource

KINDS: dict[str, Any] = {
    "AWS::CloudFormation::CustomResource": cleanup.Custom,
    "AWS::CloudFormation::Stack": nested.Nested,
    "AWS::CloudFormation::WaitCondition": waiting.Condition,
    "AWS::CloudFormation::WaitConditionHandle": waiting.Handle,
    "AWS::CloudWatch::Alarm": resources.Alarm,
    "AWS::CloudWatch::CompositeAlarm": resources.Alarm,
    "AWS::EC2::EIPAssociation": resources.AddressAssociation,
    "AWS::EC2::Instance": instances.ClusterInstance,
    "AWS::EC2::PlacementGroup": resources.PlacementGroup,
    "AWS::EC2::SecurityGroupEgress": resources.Egress,
    "AWS::EC2::SecurityGroupIngress": resources.Ingress,
    "AWS::FSx::FileSystem": resources.FileSystem,
    "AWS::ImageBuilder::Image": images.Image,
}


def model_of(kind: str) -> Any:
    """The model of a type."""
    if kind.startswith("Custom::"):
        return cleanup.Custom
    return KINDS.get(kind) or parsing.get_model_map().get(kind) or Resource


def install() -> None:
    parsing.resource_class_from_type = model_of
    parsing.parse_and_create_resource = changes.create_resource
