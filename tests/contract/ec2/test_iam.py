"""The policies in docs/iam, with the modules of nodes: they allow what is needed and nothing else."""

from __future__ import annotations

import os
from typing import Any

import boto3
from ansible_collections.trainium.cluster.plugins.module_utils._lease.run import Lease, this_run

from tests.contract.conftest import REGION, actions, idle, policy

Account = Any
# What the role efa_nodes does beside the modules.
GROUPS = {"ec2:CreatePlacementGroup", "ec2:DeletePlacementGroup", "ec2:DescribePlacementGroups"}


def test_nodes_come_and_go_with_their_policy(cloud: Account) -> None:
    cloud.environment["AWS_ACCESS_KEY_ID"] = "nodes"
    cloud.ec2.create_key_pair(KeyName="key")
    cloud.api.limit("nodes", ["nodes"])
    (identity,) = cloud.efa(count=1, key_name="key", public_ip="primary")["instance_ids"]
    arguments = {"cluster_name": "bert", "path": "/nonexistent/pins", "timeout": 0}
    assert cloud.run("internal.host_keys", arguments)["unknown"] == [identity]
    cloud.efa(count=1, state="stopped")
    cloud.efa(count=1, key_name="key", public_ip="primary", tags={"team": "speech"})
    assert {"Key": "team", "Value": "speech"} in cloud.instances()[0]["Tags"]
    assert cloud.efa(state="absent")["changed"]
    ssm: Any = boto3.client(
        "ssm", REGION, endpoint_url=cloud.api.url, aws_access_key_id="nodes", aws_secret_access_key="x"
    )
    lease = Lease(ssm, "bert", this_run("arn:aws:iam::123456789012:user/ada", os.getpid()))
    assert lease.take(False, {"trainium:cluster": "bert"})
    lease.free()
    used = cloud.api.used("nodes")
    # Volumes are only looked at where some are wanted.
    quota = {"servicequotas:ListServiceQuotas", "servicequotas:ListAWSDefaultServiceQuotas"}
    assert actions("nodes") - used == {
        *GROUPS,
        *quota,
        "ec2:DescribeVpcs",
        "ec2:DescribeVpcAttribute",
        "ec2:DescribeVolumes",
    }
    assert used <= actions("nodes")
    # Those are for the role efa_nodes: tests/contract/network/test_head_node.py.
    of_the_role = {"PlaceThemTogether", "ReadTheNameOfTheImage", "LookAtTheQuota"}
    assert set(idle(cloud.api.needs("nodes"), "nodes")) == of_the_role


def test_a_call_without_its_statement_is_refused_in_one_sentence(cloud: Account) -> None:
    cloud.environment["AWS_ACCESS_KEY_ID"] = "nodes"
    rest = [one for one in policy("nodes") if one["Sid"] != "Launch"]
    cloud.api.control("POST", "policies", {"access_key": "nodes", "statements": rest})
    assert "UnauthorizedOperation" in cloud.refused(count=1)
    assert cloud.instances() == []


def test_without_the_permission_for_consoles_a_warning_says_so(cloud: Account) -> None:
    cloud.environment["AWS_ACCESS_KEY_ID"] = "nodes"
    rest = [one for one in policy("nodes") if one["Sid"] != "ReadHostKeys"]
    cloud.api.control("POST", "policies", {"access_key": "nodes", "statements": rest})
    (identity,) = cloud.efa(count=1)["instance_ids"]
    found = cloud.run("internal.host_keys", {"cluster_name": "bert", "path": "/nonexistent/pins"})
    assert (found["unknown"], found["changed"]) == ([identity], False)
    assert "ec2:GetConsoleOutput" in str(found["warnings"])
