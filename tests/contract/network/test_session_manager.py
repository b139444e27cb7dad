"""Nodes for Session Manager: their instance profile, the wait for their registration, and that nothing is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contract.conftest import Account, idle, policy

PATH = "/trainium/us-west-2/bert/"
PROFILE = {"cluster_name": "bert", "name": "bert-nodes", "tags": {"trainium:cluster": "bert"}}
CLUSTER = {"cluster_name": "bert"}


@pytest.fixture
def account(cloud: Account) -> Account:
    """Somebody who may do what the policies say, and nothing else; another cluster has a profile as well."""
    cloud.run("internal.node_profile", {"cluster_name": "bert-2", "name": "bert-2-nodes"})
    cloud.environment["AWS_ACCESS_KEY_ID"] = "sessions"
    cloud.api.limit("sessions", ["sessions", "nodes", "teardown"])
    return cloud


def names(account: Account) -> list[str]:
    """The names of all roles and instance profiles of clusters."""
    iam = account.client("iam")
    profiles = iam.list_instance_profiles(PathPrefix="/trainium/")["InstanceProfiles"]
    roles = iam.list_roles(PathPrefix="/trainium/")["Roles"]
    return sorted([item["InstanceProfileName"] for item in profiles] + [item["RoleName"] for item in roles])


def test_a_profile_is_made_once_and_mended(account: Account) -> None:
    iam, before = account.client("iam"), names(account)
    assert account.run("internal.node_profile", PROFILE, check=True)["changed"]
    assert names(account) == before
    assert account.run("internal.node_profile", PROFILE)["changed"]
    assert not account.run("internal.node_profile", PROFILE)["changed"]
    profile = iam.get_instance_profile(InstanceProfileName="bert-nodes")["InstanceProfile"]
    assert (profile["Path"], [role["Path"] for role in profile["Roles"]]) == (PATH, [PATH])
    iam.detach_role_policy(RoleName="bert-nodes", PolicyArn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
    iam.remove_role_from_instance_profile(InstanceProfileName="bert-nodes", RoleName="bert-nodes")
    assert account.run("internal.node_profile", PROFILE)["changed"]
    assert not account.run("internal.node_profile", PROFILE)["changed"]


def test_a_role_of_somebody_else_is_not_taken(account: Account) -> None:
    account.client("iam").create_role(RoleName="bert-nodes", AssumeRolePolicyDocument=json.dumps({}))
    said = account.run("internal.node_profile", PROFILE)["msg"]
    assert said.startswith("node_profile bert-nodes: AWS would not make the IAM role of the nodes:")
    assert said.endswith("(EntityAlreadyExists).")


def test_a_role_that_others_may_take_on_is_refused(cloud: Account) -> None:
    cloud.run("internal.node_profile", PROFILE)
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    cloud.client("iam").update_assume_role_policy(RoleName="bert-nodes", PolicyDocument=document)
    said = cloud.run("internal.node_profile", PROFILE)["msg"]
    assert "the IAM role bert-nodes does not trust EC2 alone" in said


def test_nodes_register_and_leave_nothing(account: Account, tmp_path: Path) -> None:
    """EC2 does not see the profile at once, and the agents come later than the nodes."""
    account.run("internal.node_profile", PROFILE)
    sentence = "Value (bert-nodes) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
    account.api.fault("RunInstances", "InvalidParameterValue", message=sentence)
    (node,) = account.efa(count=1, cluster_name="bert", instance_profile="bert-nodes")["instance_ids"]
    assert len(account.api.calls("RunInstances")) > 1
    said = account.run("internal.session_ready", {**CLUSTER, "timeout": 0})["msg"]
    assert f"{node} did not register with Systems Manager within 0 s; see that the image has the SSM agent" in said
    for service in ("ssm", "ssmmessages"):
        account.ec2.create_vpc_endpoint(
            VpcId=account.vpc, ServiceName=f"com.amazonaws.us-west-2.{service}", VpcEndpointType="Interface"
        )
    progress = tmp_path / "progress"
    account.environment["TRAINIUM_PROGRESS_FILE"] = str(progress)
    assert account.run("internal.session_ready", CLUSTER)["online"] == [node]
    # Whoever needs one node waits for no other.
    only = account.run("internal.session_ready", {**CLUSTER, "timeout": 0, "instance_ids": [node]})
    assert only["online"] == [node]
    (last,) = [json.loads(line) for line in progress.read_text().splitlines()][-1:]
    assert (last["what"], last["done"], last["total"]) == ("registered with Session Manager", 1, 1)
    idling = set(idle(account.api.needs("sessions"), "sessions", "nodes"))
    assert idling & {one["Sid"] for one in policy("sessions")} == {"LogIn", "OnlyForSsh", "OwnSessions"}
    found = account.run("internal.cluster_resources", CLUSTER)["found"]
    assert (found["instance profiles"], found["IAM roles"]) == (["bert-nodes"], ["bert-nodes"])
    done = account.run("internal.cluster_resources", {**CLUSTER, "state": "absent"})
    assert done["left"] == {}
    assert names(account) == ["bert-2-nodes", "bert-2-nodes"]
