"""The policy of EKS: with it the modules make, change and delete a cluster and its nodes, and nothing of others.

What role eks_cluster needs of it besides is shown in test_role.py.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import REGION, REPOSITORY, actions, idle, policy
from tests.contract.eks.conftest import CALLER, Eks

ADMIN = "arn:aws:iam::123456789012:role/ml"
# The role makes roles of IAM and a log group, and looks at the quota.
ALL = ("network", "eks", "eks-iam")
OF_THE_ROLE = {
    *(
        "LookAtTheQuota",
        "MakeTheRoles",
        "TagThem",
        "OnlyWithThesePolicies",
        "KeepTheLogsOfItsControlPlane",
        "LookForLogs",
    ),
}


@pytest.fixture
def user(eks: Eks) -> Eks:
    """Somebody with the policies of the network and of EKS."""
    eks.iam.create_role(RoleName="ml", AssumeRolePolicyDocument="{}")
    eks.cloud.environment["AWS_ACCESS_KEY_ID"] = "eks"
    eks.cloud.api.limit("eks", list(ALL))
    return eks


def client(service: str, user: Eks) -> Any:
    make: Any = boto3.client
    keys = {"aws_access_key_id": "eks", "aws_secret_access_key": "x", "region_name": REGION}
    return make(service, endpoint_url=user.cloud.api.url, **keys)


def good(result: dict[str, Any]) -> dict[str, Any]:
    assert result.get("changed") and not result.get("failed"), result
    return result


def test_a_cluster_and_its_nodes_come_and_go(user: Eks) -> None:
    api = user.cloud.api
    good(user.cluster(security_groups=[user.cloud.group], admins=[ADMIN]))
    good(user.group(launch_template=user.template()))
    good(user.cluster(version="1.35", admins=[], logging=["api"], tags={"team": "speech"}))
    newer = user.template(tags={"team": "speech"})
    good(user.group(launch_template=newer, count=1, allow_shrink=True, replace_nodes=True, tags={"team": "speech"}))
    good(user.group(state="absent"))
    good(user._run("efa_launch_template", {"name": "bert-trn", "cluster_name": "bert", "state": "absent"}, False))
    good(user.cluster(state="absent"))
    # As role eks_cluster has it done where trainium_tags change.
    user.iam.tag_role(RoleName="bert-eks-node", Tags=[{"Key": "trainium:cluster", "Value": "bert"}])
    iam = client("iam", user)
    iam.tag_role(RoleName="bert-eks-node", Tags=[{"Key": "team", "Value": "speech"}])
    with pytest.raises(ClientError, match="not authorized to perform: iam:TagRole"):
        iam.tag_role(RoleName="bert-eks-node", Tags=[{"Key": "trainium:cluster", "Value": "another"}])
    with pytest.raises(ClientError, match="not authorized to perform: iam:TagRole"):
        iam.tag_role(RoleName="bert-eks-cluster", Tags=[{"Key": "team", "Value": "speech"}])
    cost = user._run("internal.cluster_cost", {"instance_type": "trn1.32xlarge", "count": 2}, False)["sentence"]
    assert cost.startswith("2 trn1.32xlarge in us-west-2 cost 43.00 USD an hour on demand")
    of_eks = {one["Sid"] for one in [*policy("eks"), *policy("eks-iam")]}
    assert set(idle(api.needs("eks"), *ALL)) & of_eks == OF_THE_ROLE
    ours = {action for action in actions("eks") if action.startswith("eks:")}
    assert ours - api.used("eks") == set()


def test_what_carries_no_tag_stays_as_it_is(user: Eks) -> None:
    """Also a role that is not for EKS, another service, another policy, and instances without a template."""
    network = {"subnetIds": user.subnets}
    user.client.create_cluster(name="theirs", version="1.34", roleArn=user.role, resourcesVpcConfig=network)
    other = user.make_role("somebody", "eks.amazonaws.com")
    made = {"version": "1.34", "resourcesVpcConfig": network, "tags": {"trainium:cluster": "bert"}}
    entry = {"clusterName": "theirs", "principalArn": CALLER}
    eks, iam, ec2 = client("eks", user), client("iam", user), client("ec2", user)
    refused: dict[str, Callable[[], Any]] = {
        "eks:DeleteCluster": lambda: eks.delete_cluster(name="theirs"),
        "eks:CreateAccessEntry": lambda: eks.create_access_entry(clusterName="theirs", principalArn=ADMIN),
        "eks:CreateCluster": lambda: eks.create_cluster(name="a", roleArn=user.role, **{**made, "tags": {}}),
        "iam:PassRole": lambda: eks.create_cluster(name="a", roleArn=other, **made),
        "eks:AssociateAccessPolicy": lambda: eks.associate_access_policy(
            **entry,
            policyArn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSAdminPolicy",
            accessScope={"type": "cluster"},
        ),
        # Their entry has no tag.
        "eks:AssociateAccessPolic[y]": lambda: eks.associate_access_policy(
            **entry,
            policyArn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
            accessScope={"type": "cluster"},
        ),
        "iam:AttachRolePolicy": lambda: iam.attach_role_policy(
            RoleName="bert-eks-node", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess"
        ),
        "iam:CreateRole": lambda: iam.create_role(RoleName="bert-eks-other", AssumeRolePolicyDocument="{}"),
        "ec2:RunInstances": lambda: ec2.run_instances(ImageId=user.cloud.image, MinCount=1, MaxCount=1),
    }
    for action, call in refused.items():
        with pytest.raises(ClientError, match=f"not authorized to perform: {action}"):
            call()


def test_nobody_s_template_makes_another_cluster_s_node(user: Eks) -> None:
    """With the policies bound to their own cluster: neither by the template's tags, nor by those of the launch."""
    good(user.cluster(security_groups=[user.cloud.group]))
    ours, theirs = user.template(), user.template(name="theirs", cluster_name="bert-2")
    bound = runpy.run_path(str(REPOSITORY / "docs" / "tools" / "bind_policy.py"))["bound"]
    statements = [bound(one, "bert") for name in ALL for one in policy(name)]
    user.cloud.api.control("POST", "policies", {"access_key": "eks", "statements": statements})
    head = [{"Key": "trainium:cluster", "Value": "bert-2"}, {"Key": "trainium:role", "Value": "head"}]
    launch = {
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": user.cloud.image,
        "SubnetId": user.subnets[0],
        "LaunchTemplate": {"LaunchTemplateId": ours["id"]},
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": head} for kind in ("instance", "network-interface", "volume")
        ],
    }
    with pytest.raises(ClientError, match="not authorized to perform: ec2:RunInstances"):
        client("ec2", user).run_instances(**launch)
    refused = user.group(launch_template=theirs)
    assert "not authorized to perform: ec2:RunInstances" in refused["msg"]
    assert user.cloud.instances() == []
    good(user.group(launch_template=ours))
