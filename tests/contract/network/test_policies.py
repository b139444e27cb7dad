"""The playbooks with the policies in docs/iam: what a user has who was given these, and nothing else."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._lease import calls
from ansible_collections.trainium.cluster.plugins.module_utils._lease.plan import FREE, parameter_name

from sandbox.emulator.access.statements import allowed
from tests.contract.conftest import REPOSITORY, actions, idle, policy
from tests.contract.network.conftest import Controller


def statement(name: str, sid: str) -> set[str]:
    (found,) = [set(one["Action"]) for one in policy(name) if one["Sid"] == sid]
    return found


@pytest.mark.parametrize("name", ["network", "nodes"])
def test_only_what_is_a_cluster_s_gets_other_tags(name: str) -> None:
    given = {"aws:RequestTag/trainium:cluster": ["bert"], "aws:TagKeys": ["trainium:cluster"]}
    for tags, may in (({}, False), ({"Name": "theirs"}, False), ({"trainium:cluster": "bert"}, True)):
        there = [("arn:aws:ec2:us-west-2:123456789012:instance/i-0123456789abcdef0", tags)]
        assert allowed(policy(name), {"action": "ec2:CreateTags", "resources": there, "context": given}) == may


def test_a_network_comes_and_goes_with_its_policies(controller: Controller) -> None:
    controller.variables.update(
        trainium_cluster_name="bert",
        trainium_backend="pcluster",
        trainium_public_ip="primary",
        network_address_service=f"{controller.api.url}/sandbox-api/address",
        network_instance_profile="bert-nodes",
    )
    sessions: set[str] = set()
    ssm = controller.client("ssm")
    options = ["-e", json.dumps(controller.variables)]
    for name, unneeded, seldom in (
        (
            "network",
            ["ChangeTags", "ChangeIt"],
            # Zones and the type are looked for where EC2 names none with it, or EKS needs more than have it.
            statement("network", "ChangeIt") | {"ec2:DescribeAvailabilityZones", "ec2:DescribeInstanceTypes"},
        ),
        # There is no more than a network to delete, no file system that was retained, no bucket that could be a
        # cluster's, and a lease already.
        (
            "teardown",
            [
                *("EndInstances", "DeleteInterfacesOfPods", "DeleteWhatServicesMade", "DeleteWhatIngressesMade"),
                *("DeleteTheClusterOfEks", "LookAtItsLogs", "DeleteItsLogs"),
                *("LookAtItsImages", "DeleteItsImages", "GiveItsKeysBack"),
            ],
            {"ec2:TerminateInstances", "ec2:DeleteNetworkInterface", "ec2:DeletePlacementGroup", "ec2:DeleteVolume"}
            | {"s3:GetBucketTagging", "ssm:AddTagsToResource", "ec2:DeleteLaunchTemplate"}
            | {"elasticfilesystem:DescribeMountTargets", "elasticloadbalancing:DescribeTags"}
            | {"ecr:DeleteRepository", "ecr:ListTagsForResource", "kms:RetireGrant"}
            | {"elasticloadbalancing:DeleteLoadBalancer", "elasticloadbalancing:DeleteTargetGroup"}
            | {"eks:DescribeCluster", "eks:DescribeNodegroup", "eks:ListNodegroups"}
            | statement("teardown", "DeleteTheClusterOfEks")
            | (statement("teardown", "DeleteItsRoles") - actions("sessions") - {"iam:ListRolePolicies"})
            | statement("teardown", "LookAtItsLogs")
            | statement("teardown", "DeleteItsLogs"),
        ),
    ):
        controller.limit(name)
        controller.api.limit(name, [name, "sessions"])
        done = controller.run(REPOSITORY / "playbooks" / f"{name}.yml", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        # The lease is given back when the run has ended, and goes with the cluster.
        deadline = time.monotonic() + 300
        while (calls.read(ssm, parameter_name("bert")) or (FREE, 0))[0] != FREE:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert (calls.read(ssm, parameter_name("bert")) is None) == (name == "teardown")
        used = controller.api.used(name) - {"sts:GetCallerIdentity"}
        sessions |= used & actions("sessions")
        assert used - (actions("sessions") - actions(name)) == actions(name) - seldom
        needs = [need for need in controller.api.needs(name) if need["action"] != "sts:GetCallerIdentity"]
        found = idle(needs, name, "sessions")
        assert [sid for sid in found if sid in {one["Sid"] for one in policy(name)}] == unneeded
    # The rest is for nodes.
    assert actions("sessions") - sessions == {
        *("ssm:DescribeInstanceInformation", "ssm:StartSession", "ssm:TerminateSession"),
        "ssmmessages:OpenDataChannel",
    }
