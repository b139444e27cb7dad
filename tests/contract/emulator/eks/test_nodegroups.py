"""The emulated EKS's node groups launch real instances through their template, and refuse what EKS refuses."""

from __future__ import annotations

import base64
import email
import json
from typing import Any

import pytest

from tests.contract.emulator.eks.conftest import Item, Kubernetes, scaling

PARAMETERS = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/neuron/recommended"
MIME = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/sh
dnf install -y lustre-client
--B--
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_nodes_are_instances_with_every_interface_and_merged_user_data(kubernetes: Kubernetes) -> None:
    kubernetes.cluster()
    template = kubernetes.template(
        UserData=encoded(MIME), TagSpecifications=[kubernetes.named("instance", **{"trainium:cluster": "c1"})]
    )
    labels, taints = {"team": "speech"}, [{"key": "neuron", "value": "yes", "effect": "NO_SCHEDULE"}]
    asked = kubernetes.group_asked(launchTemplate=template, labels=labels, taints=taints)
    assert kubernetes.eks.create_nodegroup(**asked)["nodegroup"]["status"] == "CREATING"
    shown = kubernetes.until("ACTIVE", kubernetes.nodegroup)
    assert (shown["version"], shown["releaseVersion"], shown["capacityType"]) == (
        "1.34",
        "1.34.9-20260625",
        "ON_DEMAND",
    )
    nodes = kubernetes.shown("running")
    assert [len(node["NetworkInterfaces"]) for node in nodes] == [8, 8]
    tags = {tag["Key"]: tag["Value"] for tag in nodes[0]["Tags"]}
    assert (tags["eks:nodegroup-name"], tags["kubernetes.io/cluster/c1"], tags["trainium:cluster"]) == (
        "trn",
        "owned",
        "c1",
    )
    (image,) = kubernetes.ec2.describe_images(ImageIds=[nodes[0]["ImageId"]])["Images"]
    assert image["Name"] == "amazon-eks-node-al2023-x86_64-neuron-1.34-v20260625"
    host = kubernetes.api.control("GET", "hosts")[0]
    assert (host["efa_interfaces"], host["image_name"]) == (8, image["Name"])
    parts = list(email.message_from_bytes(base64.b64decode(host["user_data"])).walk())[1:]
    assert [part.get_content_type() for part in parts] == ["text/x-shellscript", "application/node.eks.aws"]
    configuration = json.loads(str(parts[1].get_payload()))["spec"]
    assert configuration["cluster"]["name"] == "c1" and configuration["cluster"]["apiServerEndpoint"].startswith(
        "https://"
    )
    flags = " ".join(configuration["kubelet"]["flags"])
    assert "team=speech" in flags and "neuron=yes:NoSchedule" in flags and "eks.amazonaws.com/nodegroup=trn" in flags
    (cluster,) = kubernetes.api.control("GET", "clusters")
    assert sorted(cluster["nodes"]) == sorted(node["InstanceId"] for node in nodes)
    assert "EC2_LINUX" in [entry["type"] for entry in cluster["access_entries"]]


def test_a_group_is_scaled_mended_renewed_and_deleted_before_its_cluster(kubernetes: Kubernetes) -> None:
    eks, named = kubernetes.eks, {"clusterName": "c1", "nodegroupName": "trn"}
    kubernetes.cluster()
    template = kubernetes.template()
    eks.create_nodegroup(**kubernetes.group_asked(launchTemplate=template))
    kubernetes.until("ACTIVE", kubernetes.nodegroup)
    first = {node["InstanceId"] for node in kubernetes.shown("running")}
    kubernetes.updated(eks.update_nodegroup_config(**named, scalingConfig=scaling(3)), nodegroupName="trn")
    # A node that ends is replaced.
    kubernetes.ec2.terminate_instances(InstanceIds=[sorted(first)[0]])
    kubernetes.until("ACTIVE", kubernetes.nodegroup)
    assert len(kubernetes.shown("running", "pending")) == 3
    eks.update_nodegroup_version(**named, releaseVersion="1.34.7-20260505")
    kubernetes.until("ACTIVE", kubernetes.nodegroup)
    alive = kubernetes.shown("running", "pending")
    assert len(alive) == 3 and not first & {node["InstanceId"] for node in alive}
    assert kubernetes.nodegroup()["releaseVersion"] == "1.34.7-20260505"
    assert kubernetes.code_of(lambda: eks.delete_cluster(name="c1")) == "ResourceInUseException"
    eks.delete_nodegroup(**named)
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        kubernetes.until("", kubernetes.nodegroup)
    assert not kubernetes.shown("running", "pending", "shutting-down")
    eks.delete_cluster(name="c1")


@pytest.mark.parametrize(
    ("data", "changes", "reason"),
    [
        ({"IamInstanceProfile": {"Name": "p"}}, {}, "Instance profile should not be specified"),
        ({"NetworkInterfaces": "subnet"}, {}, "subnets should not be specified"),
        ({"InstanceMarketOptions": {"MarketType": "spot"}}, {}, "Instance market options should not be specified"),
        ({"InstanceInitiatedShutdownBehavior": "stop"}, {}, "shutdown behavior should not be specified"),
        ({"UserData": encoded("#!/bin/sh\ntrue\n")}, {}, "not in the MIME multipart format"),
        ({"ImageId": "image"}, {}, "AMI Type other than CUSTOM"),
        ({"ImageId": "image"}, {"amiType": None}, "version or releaseVersion when specifying an image id"),
        ({}, {"instanceTypes": ["trn1.32xlarge"]}, "not in both"),
        ({}, {"diskSize": 100}, "Disk size must be specified within"),
        ({}, {"remoteAccess": {"ec2SshKey": "k"}}, "Remote access configuration cannot be specified"),
        ({}, {"capacityType": "CAPACITY_BLOCK"}, "needs the market type capacity-block"),
        ({}, {"releaseVersion": "1.34.9-20200101"}, "is not valid for kubernetes version 1.34"),
        ({}, {"version": "1.35", "releaseVersion": None}, "does not fit the cluster's"),
        ({}, {"scalingConfig": {"minSize": 0, "desiredSize": 3, "maxSize": 2}}, "greater than max size"),
        ({}, {"nodeRole": "arn:aws:iam::123456789012:role/cluster"}, "were not found in the trust relationships"),
        (
            {"InstanceType": "m5.large", "NetworkInterfaces": None},
            {},
            "not a valid instance type for requested amiType",
        ),
    ],
)
def test_what_eks_refuses(kubernetes: Kubernetes, data: dict[str, Any], changes: dict[str, Any], reason: str) -> None:
    kubernetes.cluster()
    if data.get("NetworkInterfaces") == "subnet":
        data = {"NetworkInterfaces": kubernetes.nics()}
    if "ImageId" in data:
        data = {"ImageId": kubernetes.image}
    template = kubernetes.template(**data)
    refusals = kubernetes.eks.exceptions.InvalidParameterException, kubernetes.eks.exceptions.InvalidRequestException
    with pytest.raises(refusals, match=reason):
        kubernetes.eks.create_nodegroup(**kubernetes.group_asked(launchTemplate=template, **changes))
    assert kubernetes.shown() == []


def test_nodes_that_cannot_be_had_or_cannot_join_fail_the_group(kubernetes: Kubernetes) -> None:
    kubernetes.cluster()
    kubernetes.api.capacity("trn1.32xlarge", kubernetes.zones[0], 1)
    template = kubernetes.template()
    kubernetes.eks.create_nodegroup(**kubernetes.group_asked(launchTemplate=template))
    (issue,) = kubernetes.until("CREATE_FAILED", kubernetes.nodegroup)["health"]["issues"]
    assert issue["code"] == "AsgInstanceLaunchFailures" and "InsufficientInstanceCapacity" in issue["message"]
    bare = kubernetes.make_role("bare", "ec2.amazonaws.com")
    other = kubernetes.group_asked(nodegroupName="other", nodeRole=bare, amiType=None, releaseVersion=None)
    kubernetes.eks.create_nodegroup(**other)

    def look() -> dict[str, Any]:
        found: dict[str, Any] = kubernetes.eks.describe_nodegroup(clusterName="c1", nodegroupName="other")["nodegroup"]
        return found

    assert kubernetes.until("CREATE_FAILED", look)["health"]["issues"][0]["code"] == "NodeCreationFailure"


def test_the_recommended_image_is_named_by_parameters(kubernetes: Kubernetes) -> None:
    ssm = kubernetes.client("ssm")
    found = ssm.get_parameters_by_path(Path=PARAMETERS)["Parameters"]
    values = {one["Name"].rpartition("/")[2]: one["Value"] for one in found}
    assert values["release_version"] == "1.34.9-20260714"
    (image,) = kubernetes.ec2.describe_images(ImageIds=[values["image_id"]])["Images"]
    assert image["Name"] == "amazon-eks-node-al2023-x86_64-neuron-1.34-v20260714"


def test_a_template_is_made_once_for_a_token_and_keeps_its_tags_to_itself(kubernetes: Kubernetes) -> None:
    ec2 = kubernetes.ec2
    asked: Item = {"LaunchTemplateName": "trn", "ClientToken": "t1", "LaunchTemplateData": {"InstanceType": "m5.large"}}
    asked["TagSpecifications"] = [kubernetes.named("launch-template", a="b")]
    identity = ec2.create_launch_template(**asked)["LaunchTemplate"]["LaunchTemplateId"]
    assert ec2.create_launch_template(**asked)["LaunchTemplate"]["LaunchTemplateId"] == identity
    again = {**asked, "LaunchTemplateData": {"InstanceType": "m5.xlarge"}}
    assert kubernetes.code_of(lambda: ec2.create_launch_template(**again)) == "IdempotentParameterMismatch"
    (version,) = ec2.describe_launch_template_versions(LaunchTemplateId=identity)["LaunchTemplateVersions"]
    assert not version["LaunchTemplateData"].get("TagSpecifications")
    ec2.create_launch_template_version(LaunchTemplateId=identity, LaunchTemplateData={"UserData": encoded(MIME)})
    shown = ec2.describe_launch_template_versions(LaunchTemplateId=identity, Versions=["2"])["LaunchTemplateVersions"]
    assert shown[0]["LaunchTemplateData"]["UserData"] == encoded(MIME)
