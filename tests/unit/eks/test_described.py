"""What is taken from the answers of DescribeCluster and DescribeNodegroup, and what counts as a change of it."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan as clusters
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan_nodegroup as groups

CLUSTER: dict[str, Any] = {
    "name": "bert",
    "arn": "arn:aws:eks:us-west-2:123456789012:cluster/bert",
    "status": "ACTIVE",
    "version": "1.34",
    "endpoint": "https://a.eks.example",
    "certificateAuthority": {"data": "Q0E="},
    "identity": {"oidc": {"issuer": "https://oidc.example"}},
    "roleArn": "arn:aws:iam::123456789012:role/r",
    "resourcesVpcConfig": {
        "vpcId": "vpc-1",
        "subnetIds": ["subnet-2", "subnet-1"],
        "securityGroupIds": ["sg-2", "sg-1"],
        "clusterSecurityGroupId": "sg-9",
        "endpointPublicAccess": True,
        "endpointPrivateAccess": False,
        "publicAccessCidrs": ["192.0.2.0/24", "10.0.0.0/8"],
    },
    "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"},
    "logging": {
        "clusterLogging": [{"types": ["scheduler", "api"], "enabled": True}, {"types": ["audit"], "enabled": False}]
    },
    "accessConfig": {"authenticationMode": "API"},
    "upgradePolicy": {"supportType": "STANDARD"},
    "deletionProtection": True,
    "tags": {"trainium:cluster": "bert"},
    "health": {"issues": [{"code": "Other", "message": "no"}]},
}
GROUP: dict[str, Any] = {
    "nodegroupName": "trn",
    "nodegroupArn": "arn:aws:eks:us-west-2:123456789012:nodegroup/bert/trn/1",
    "status": "ACTIVE",
    "version": "1.34",
    "releaseVersion": "1.34.9-20260625",
    "nodeRole": "arn:aws:iam::123456789012:role/node",
    "amiType": "AL2023_x86_64_NEURON",
    "capacityType": "SPOT",
    "instanceTypes": ["trn1.32xlarge"],
    "subnets": ["subnet-2", "subnet-1"],
    "launchTemplate": {"id": "lt-1", "name": "a", "version": "3"},
    "scalingConfig": {"minSize": 1, "desiredSize": 2, "maxSize": 3},
    "labels": {"team": "speech"},
    "taints": [{"key": "neuron", "effect": "NO_SCHEDULE"}],
    "updateConfig": {"maxUnavailable": 2, "updateStrategy": "MINIMAL"},
    "nodeRepairConfig": {"enabled": True},
    "resources": {"autoScalingGroups": [{"name": "eks-1"}, {"name": "eks-2"}]},
    "tags": {"trainium:cluster": "bert"},
    "health": {"issues": [{"code": "AsgInstanceLaunchFailures", "message": "no"}]},
}


def test_a_cluster_is_described_by_our_names() -> None:
    assert clusters.cluster_of(CLUSTER) == {
        "name": "bert",
        "arn": "arn:aws:eks:us-west-2:123456789012:cluster/bert",
        "status": "ACTIVE",
        "version": "1.34",
        "endpoint": "https://a.eks.example",
        "certificate_authority": "Q0E=",
        "oidc_issuer": "https://oidc.example",
        "role_arn": "arn:aws:iam::123456789012:role/r",
        "vpc_id": "vpc-1",
        "subnets": ["subnet-1", "subnet-2"],
        "security_groups": ["sg-1", "sg-2"],
        "cluster_security_group": "sg-9",
        "public_access": True,
        "private_access": False,
        "public_access_cidrs": ["10.0.0.0/8", "192.0.2.0/24"],
        "service_cidr": "172.20.0.0/16",
        "logging": ["api", "scheduler"],
        "authentication_mode": "API",
        "support": "STANDARD",
        "deletion_protection": True,
        "tags": {"trainium:cluster": "bert"},
        "issues": ["Other: no"],
    }
    # What an old cluster does not say.
    old = clusters.cluster_of({"name": "old"})
    assert (old["authentication_mode"], old["support"], old["logging"]) == ("CONFIG_MAP", "EXTENDED", [])
    # What comes and goes by itself is no difference that a run makes.
    moving = {"status", "issues", "endpoint", "certificate_authority", "oidc_issuer"}
    assert set(clusters.cluster_of(CLUSTER)) - set(clusters.lasting(clusters.cluster_of(CLUSTER))) == moving


def test_a_node_group_is_described_by_our_names() -> None:
    assert groups.group_of(GROUP) == {
        "name": "trn",
        "arn": "arn:aws:eks:us-west-2:123456789012:nodegroup/bert/trn/1",
        "status": "ACTIVE",
        "version": "1.34",
        "release_version": "1.34.9-20260625",
        "node_role_arn": "arn:aws:iam::123456789012:role/node",
        "ami_type": "AL2023_x86_64_NEURON",
        "capacity_type": "SPOT",
        "instance_types": ["trn1.32xlarge"],
        "subnets": ["subnet-1", "subnet-2"],
        "launch_template": {"id": "lt-1", "name": "a", "version": "3"},
        "count": 2,
        "min_size": 1,
        "max_size": 3,
        "labels": {"team": "speech"},
        "taints": [{"key": "neuron", "value": "", "effect": "NO_SCHEDULE"}],
        "max_unavailable": 2,
        "update_strategy": "MINIMAL",
        "node_repair": True,
        "autoscaling_group": "eks-1",
        "tags": {"trainium:cluster": "bert"},
        "issues": ["AsgInstanceLaunchFailures: no"],
    }
    assert groups.group_of({"nodegroupName": "old"})["update_strategy"] == "DEFAULT"
    moving = {"status", "issues", "autoscaling_group"}
    assert set(groups.group_of(GROUP)) - set(groups.lasting(groups.group_of(GROUP))) == moving
