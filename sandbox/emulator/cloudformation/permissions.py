"""Type of a resource -> the actions of IAM that CloudFormation takes in the caller's name.

Each with those for making and those for deleting it. Sources: the handlers' permissions in CloudFormation's resource
schemas (https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html), as far as
ParallelCluster's own policies for its users (cloudformation/policies/parallelcluster-policies.yaml, 3.16) have them.
"""

from __future__ import annotations

from typing import Any

from sandbox.emulator.access.roles import linked
from sandbox.emulator.access.statements import Need

_Pair = tuple[tuple[str, ...], tuple[str, ...]]


def _of(service: str, create: str, delete: str) -> _Pair:
    first, second = ([f"{service}:{name}" for name in names.split()] for names in (create, delete))
    return tuple(first), tuple(second)


_BUILDER = "imagebuilder"
_TABLE: dict[str, _Pair] = {
    "AWS::CloudFormation::Stack": _of("cloudformation", "CreateStack", "DeleteStack"),
    "AWS::CloudWatch::Alarm": _of("cloudwatch", "PutMetricAlarm", "DeleteAlarms"),
    "AWS::CloudWatch::CompositeAlarm": _of("cloudwatch", "PutCompositeAlarm", "DeleteAlarms"),
    "AWS::CloudWatch::Dashboard": _of("cloudwatch", "PutDashboard", "DeleteDashboards"),
    "AWS::DynamoDB::Table": _of("dynamodb", "CreateTable DescribeTable", "DeleteTable DescribeTable"),
    "AWS::EC2::EIP": _of("ec2", "AllocateAddress", "ReleaseAddress"),
    "AWS::EC2::EIPAssociation": _of("ec2", "AssociateAddress", "DisassociateAddress"),
    "AWS::EC2::Instance": _of("ec2", "RunInstances DescribeInstances", "TerminateInstances"),
    "AWS::EC2::LaunchTemplate": _of("ec2", "CreateLaunchTemplate CreateTags", "DeleteLaunchTemplate"),
    "AWS::EC2::NetworkInterface": _of("ec2", "CreateNetworkInterface", "DeleteNetworkInterface"),
    "AWS::EC2::PlacementGroup": _of("ec2", "CreatePlacementGroup", "DeletePlacementGroup"),
    "AWS::EC2::SecurityGroup": _of("ec2", "CreateSecurityGroup", "DeleteSecurityGroup"),
    "AWS::EC2::SecurityGroupEgress": _of("ec2", "AuthorizeSecurityGroupEgress", "RevokeSecurityGroupEgress"),
    "AWS::EC2::SecurityGroupIngress": _of("ec2", "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"),
    "AWS::EC2::Volume": _of("ec2", "CreateVolume", "DeleteVolume"),
    "AWS::EFS::FileSystem": _of("elasticfilesystem", "CreateFileSystem TagResource", "DeleteFileSystem"),
    "AWS::EFS::MountTarget": _of("elasticfilesystem", "CreateMountTarget", "DeleteMountTarget"),
    "AWS::FSx::FileSystem": _of("fsx", "CreateFileSystem TagResource", "DeleteFileSystem"),
    "AWS::IAM::InstanceProfile": _of(
        "iam",
        "CreateInstanceProfile AddRoleToInstanceProfile GetInstanceProfile",
        "RemoveRoleFromInstanceProfile DeleteInstanceProfile",
    ),
    "AWS::IAM::Policy": _of("iam", "PutRolePolicy", "DeleteRolePolicy"),
    "AWS::IAM::Role": _of("iam", "CreateRole", "DeleteRole"),
    "AWS::ImageBuilder::Component": _of(
        _BUILDER, "CreateComponent GetComponent TagResource", "DeleteComponent GetComponent"
    ),
    "AWS::ImageBuilder::DistributionConfiguration": _of(
        _BUILDER,
        "CreateDistributionConfiguration GetDistributionConfiguration TagResource",
        "DeleteDistributionConfiguration GetDistributionConfiguration",
    ),
    "AWS::ImageBuilder::Image": _of(
        _BUILDER,
        "CreateImage GetDistributionConfiguration GetImage GetImageRecipe GetInfrastructureConfiguration GetWorkflow "
        "TagResource",
        "CancelImageCreation DeleteImage GetImage",
    ),
    "AWS::ImageBuilder::ImageRecipe": _of(
        _BUILDER,
        "CreateImageRecipe GetComponent GetImage GetImageRecipe TagResource",
        "DeleteImageRecipe GetImageRecipe",
    ),
    "AWS::ImageBuilder::InfrastructureConfiguration": _of(
        _BUILDER,
        "CreateInfrastructureConfiguration GetInfrastructureConfiguration TagResource",
        "DeleteInfrastructureConfiguration GetInfrastructureConfiguration",
    ),
    "AWS::Lambda::Function": _of("lambda", "CreateFunction GetFunction TagResource", "DeleteFunction"),
    "AWS::Lambda::Permission": _of("lambda", "AddPermission", "RemovePermission"),
    "AWS::Logs::LogGroup": _of("logs", "CreateLogGroup PutRetentionPolicy TagResource", "DeleteLogGroup"),
    "AWS::Logs::MetricFilter": _of("logs", "PutMetricFilter", "DeleteMetricFilter"),
    "AWS::Route53::HostedZone": _of("route53", "CreateHostedZone GetHostedZone", "DeleteHostedZone"),
    "AWS::SNS::Subscription": _of("sns", "Subscribe", "Unsubscribe"),
    "AWS::SNS::Topic": _of("sns", "CreateTopic TagResource", "DeleteTopic"),
}
# Of CloudFormation itself.
_NOTHING = ("AWS::CloudFormation::WaitCondition", "AWS::CloudFormation::WaitConditionHandle", "AWS::CDK::Metadata")
# What passes a role on to its service.
_PASSING = ("AWS::EC2::Instance", "AWS::Lambda::Function", "AWS::IAM::InstanceProfile")


def actions(kind: str, properties: dict[str, Any], delete: bool) -> list[str | Need]:
    """What making or deleting one resource takes. Raises ValueError for a type that nobody has looked up."""
    if kind in _NOTHING:
        return []
    if kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource":
        return ["lambda:InvokeFunction"]
    if kind not in _TABLE:
        raise ValueError(f"sandbox/emulator/cloudformation/permissions.py does not know {kind}")
    found: list[str | Need] = list(_TABLE[kind][delete])
    if not delete and kind in _PASSING:
        found.append("iam:PassRole")
    if not delete and kind.startswith("AWS::ImageBuilder::"):
        # "Using service-linked roles for Image Builder".
        found.append(linked("imagebuilder.amazonaws.com", "AWSServiceRoleForImageBuilder"))
    if kind == "AWS::IAM::Role":
        if properties.get("ManagedPolicyArns"):
            found.append("iam:DetachRolePolicy" if delete else "iam:AttachRolePolicy")
        if properties.get("Policies"):
            found.append("iam:DeleteRolePolicy" if delete else "iam:PutRolePolicy")
        if not delete:
            found.append("iam:TagRole")
    return found
