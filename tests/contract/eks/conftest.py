"""An account with the roles of a cluster, for the modules of EKS over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

Account = Any
Result = dict[str, Any]
CALLER = "arn:aws:iam::123456789012:user/moto"


class Eks:
    """The modules with their usual arguments, and what the API shows."""

    def __init__(self, cloud: Account) -> None:
        self.cloud = cloud
        self.client, self.iam = cloud.client("eks"), cloud.client("iam")
        self.role = self.make_role("bert-eks-cluster", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
        needed = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
        self.node_role = self.make_role("bert-eks-node", "ec2.amazonaws.com", *needed)
        other = next(zone for zone in ("us-west-2a", "us-west-2b", "us-west-2c") if zone not in cloud.zones)
        self.subnets = [*cloud.subnets, cloud.subnet(other, 15)]
        cloud.api.clear_calls()

    def make_role(self, name: str, service: str, *policies: str) -> str:
        statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        arn = self.iam.create_role(RoleName=name, Path="/trainium/us-west-2/bert/", AssumeRolePolicyDocument=document)[
            "Role"
        ]["Arn"]
        for policy in policies:
            self.iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
        return str(arn)

    def _run(self, module: str, arguments: Result, check: bool) -> Result:
        given = {key: value for key, value in arguments.items() if value is not None}
        result: Result = self.cloud.run(module, given, check)
        return result

    def cluster(self, check: bool = False, **changes: Any) -> Result:
        base = {"name": "bert", "version": "1.34", "role_arn": self.role, "subnets": self.subnets}
        return self._run("eks_cluster", {**base, "public_access_cidrs": ["192.0.2.0/24"], **changes}, check)

    def template(self, **changes: Any) -> Result:
        base = {"name": "bert-trn", "cluster_name": "bert", "instance_type": "trn1.32xlarge"}
        made = self._run("efa_launch_template", {**base, "security_groups": [self.cloud.group], **changes}, False)
        return {"id": made["launch_template_id"], "version": str(made["version"])}

    def group(self, check: bool = False, **changes: Any) -> Result:
        base = {"cluster": "bert", "name": "trn", "count": 2, "node_role_arn": self.node_role, "single_zone": True}
        base.update(subnets=self.subnets, ami_type="AL2023_x86_64_NEURON", release_version="1.34.9-20260625")
        return self._run("eks_nodegroup", {**base, **changes}, check)


@pytest.fixture
def eks(cloud: Account) -> Eks:
    return Eks(cloud)
