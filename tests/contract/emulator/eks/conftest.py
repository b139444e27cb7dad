"""An account of the emulated AWS with the roles and subnets of a cluster, by the SDK over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.emulator.conftest import Lab

Item = dict[str, Any]
RELEASE = "1.34.9-20260625"


class Kubernetes(Lab):
    """A lab with EKS: two subnets, and roles for clusters and for nodes."""

    def __init__(self, api: Any) -> None:
        super().__init__(api)
        self.eks, self.iam = self.client("eks"), self.client("iam")
        others = [zone for zone in [*self.zones, "us-west-2a", "us-west-2b"] if zone != self.zones[0]]
        self.subnets = [self.subnet, self.make_subnet("10.66.16.0/20", others[0])]
        self.zones_used = [self.zones[0], others[0]]
        self.role = self.make_role("cluster", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
        needed = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
        self.node_role = self.make_role("node", "ec2.amazonaws.com", *needed)

    def make_role(self, name: str, service: str, *policies: str) -> str:
        statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        arn = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        for policy in policies:
            self.iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
        return str(arn)

    def asked(self, **changes: Any) -> Item:
        base = {"name": "c1", "roleArn": self.role, "version": "1.34", "accessConfig": {"authenticationMode": "API"}}
        base["resourcesVpcConfig"] = {"subnetIds": self.subnets}
        return {key: value for key, value in {**base, **changes}.items() if value is not None}

    def cluster(self, **changes: Any) -> Item:
        """A cluster that is ACTIVE."""
        self.eks.create_cluster(**self.asked(**changes))
        return self.until("ACTIVE", lambda: self.eks.describe_cluster(name="c1")["cluster"])

    def template(self, **data: Any) -> Item:
        nics = [{key: value for key, value in nic.items() if key != "SubnetId"} for nic in self.nics()]
        full = {"InstanceType": "trn1.32xlarge", "NetworkInterfaces": nics, **data}
        full = {key: value for key, value in full.items() if value is not None}
        made = self.ec2.create_launch_template(LaunchTemplateName=f"t{time.monotonic_ns()}", LaunchTemplateData=full)
        return {"id": made["LaunchTemplate"]["LaunchTemplateId"]}

    def group_asked(self, **changes: Any) -> Item:
        base: Item = {"clusterName": "c1", "nodegroupName": "trn", "subnets": [self.subnet], "nodeRole": self.node_role}
        base.update(amiType="AL2023_x86_64_NEURON", releaseVersion=RELEASE, scalingConfig=scaling(2))
        return {key: value for key, value in {**base, **changes}.items() if value is not None}

    def nodegroup(self) -> Item:
        return dict(self.eks.describe_nodegroup(clusterName="c1", nodegroupName="trn")["nodegroup"])

    def until(self, status: str, look: Callable[[], Item]) -> Item:
        deadline = time.monotonic() + 300
        while (seen := look())["status"] != status:
            assert time.monotonic() < deadline, seen
            time.sleep(0.05)
        return seen

    def updated(self, answer: Item, **more: str) -> None:
        """Until an update is over."""
        asked = {"updateId": answer["update"]["id"], "name": "c1", **more}
        self.until("Successful", lambda: self.eks.describe_update(**asked)["update"])


def scaling(desired: int, least: int = 0) -> Item:
    return {"minSize": least, "desiredSize": desired, "maxSize": max(desired, 1)}


@pytest.fixture
def kubernetes(api: Any) -> Iterator[Kubernetes]:
    yield Kubernetes(api)
    api.control("POST", "waiting", {"mode": "succeed"})
    api.reset()


@pytest.fixture
def slow_kubernetes(slow_api: Any) -> Iterator[Kubernetes]:
    """The same, where nothing gets ready."""
    yield Kubernetes(slow_api)
    slow_api.reset()
