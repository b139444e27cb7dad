"""The instance profile of a cluster: which steps make it, which delete it, and whose role is not taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._iam import calls
from ansible_collections.trainium.cluster.plugins.module_utils._iam.plan import TRUST
from ansible_collections.trainium.cluster.plugins.module_utils._iam.run import NodeProfile
from botocore.stub import Stubber

Item = dict[str, Any]
KEYS: Any = {"region_name": "us-west-2", "aws_access_key_id": "id", "aws_secret_access_key": "secret"}
PATH, NAME = "/trainium/us-west-2/bert/", "bert-nodes"
POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
TAGS = [{"Key": "trainium:cluster", "Value": "bert"}]
WHEN = datetime(2026, 11, 26, tzinfo=timezone.utc)


class Iam:
    """What IAM shows, and a profile that looks at it."""

    def __init__(self, region: str = "us-west-2") -> None:
        self.client = boto3.client("iam", **{**KEYS, "region_name": region})
        self.stub = Stubber(self.client)
        self.profile = NodeProfile(self.client, region, "bert")

    def shows(self, roles: list[Item] | None = None, profiles: list[Item] | None = None) -> None:
        if profiles is not None:
            asked = {"PathPrefix": PATH}
            self.stub.add_response(
                "list_instance_profiles", {"InstanceProfiles": profiles, "IsTruncated": False}, asked
            )
        if roles is not None:
            self.stub.add_response("list_roles", {"Roles": roles, "IsTruncated": False}, {"PathPrefix": PATH})

    def policies(self, *arns: str) -> None:
        found = [{"PolicyArn": arn, "PolicyName": arn.rpartition("/")[2]} for arn in arns]
        answer = {"AttachedPolicies": found, "IsTruncated": False}
        self.stub.add_response("list_attached_role_policies", answer, {"RoleName": NAME})

    def takes(self, operation: str, answer: Item | None = None, **asked: Any) -> None:
        self.stub.add_response(operation, answer or {}, asked)


@pytest.fixture
def iam() -> Iterator[Iam]:
    made = Iam()
    with made.stub:
        yield made
        made.stub.assert_no_pending_responses()


def role(name: str = NAME, path: str = PATH, trust: str = TRUST) -> Item:
    arn = f"arn:aws:iam::123456789012:role{path}{name}"
    document = quote(trust)
    fixed = {"RoleId": "AROA0123456789ABCDEF", "CreateDate": WHEN}
    return {"RoleName": name, "Path": path, "Arn": arn, "AssumeRolePolicyDocument": document, **fixed}


def profile(*roles: Item, name: str = NAME, path: str = PATH) -> Item:
    arn = f"arn:aws:iam::123456789012:instance-profile{path}{name}"
    fixed = {"InstanceProfileId": "AIPA0123456789ABCDEF", "CreateDate": WHEN}
    return {"InstanceProfileName": name, "Path": path, "Arn": arn, "Roles": list(roles), **fixed}


def made(iam: Iam, check: bool = False) -> bool:
    return iam.profile.make(NAME, {"trainium:cluster": "bert"}, check)


def test_all_of_it_is_made_in_order_at_the_cluster_s_path(iam: Iam) -> None:
    iam.shows([], [])
    tagged: Item = {"Path": PATH, "Tags": TAGS}
    iam.takes("create_role", {"Role": role()}, RoleName=NAME, AssumeRolePolicyDocument=TRUST, **tagged)
    iam.takes("attach_role_policy", RoleName=NAME, PolicyArn=POLICY)
    iam.takes("create_instance_profile", {"InstanceProfile": profile()}, InstanceProfileName=NAME, **tagged)
    iam.takes("add_role_to_instance_profile", InstanceProfileName=NAME, RoleName=NAME)
    assert made(iam)


def test_ec2_alone_is_trusted() -> None:
    (statement,) = json.loads(TRUST)["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Principal": {"Service": "ec2.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }


def test_check_mode_says_that_something_is_missing(iam: Iam) -> None:
    iam.shows([], [])
    assert made(iam, check=True)


def test_what_is_whole_is_left_alone(iam: Iam) -> None:
    iam.shows([role()], [profile(role())])
    iam.policies("arn:aws:iam::aws:policy/Other", POLICY)
    assert not made(iam)


@pytest.mark.parametrize("missing", ["policy", "profile", "in it"])
def test_only_what_is_missing_is_made(iam: Iam, missing: str) -> None:
    iam.shows([role()], [] if missing == "profile" else [profile(*([] if missing == "in it" else [role()]))])
    iam.policies(*([] if missing == "policy" else [POLICY]))
    if missing == "policy":
        iam.takes("attach_role_policy", RoleName=NAME, PolicyArn=POLICY)
    if missing == "profile":
        answer = {"InstanceProfile": profile()}
        iam.takes("create_instance_profile", answer, InstanceProfileName=NAME, Path=PATH, Tags=TAGS)
    if missing != "policy":
        iam.takes("add_role_to_instance_profile", InstanceProfileName=NAME, RoleName=NAME)
    assert made(iam)


def test_a_role_that_others_may_take_on_is_refused(iam: Iam) -> None:
    iam.shows([role(trust='{"Statement": []}')], [])
    with pytest.raises(
        TrainiumError, match=rf"the IAM role {NAME} does not trust EC2 alone, .*delete it and run again"
    ):
        made(iam)


def test_in_another_partition_the_policy_has_another_name() -> None:
    iam = Iam("us-gov-west-1")
    path = "/trainium/us-gov-west-1/bert/"
    with iam.stub as stub:
        for operation, field in (("list_instance_profiles", "InstanceProfiles"), ("list_roles", "Roles")):
            found = {"InstanceProfiles": [profile(role(), path=path)], "Roles": [role(path=path)]}
            stub.add_response(operation, {field: found[field], "IsTruncated": False}, {"PathPrefix": path})
        iam.policies("arn:aws-us-gov:iam::aws:policy/AmazonSSMManagedInstanceCore")
        assert not made(iam)


def test_what_lies_deeper_is_another_s(iam: Iam) -> None:
    deeper = f"{PATH}more/"
    iam.shows(profiles=[profile(), profile(name="other", path=deeper), profile(name="a")])
    assert iam.profile.profiles() == ["a", NAME]
    iam.shows(roles=[role(), role("other", deeper), role("a")])
    assert iam.profile.roles() == ["a", NAME]


def test_a_profile_is_deleted_once_it_is_empty_and_what_is_gone_is_no_failure(iam: Iam) -> None:
    iam.shows(profiles=[profile(role()), profile(name="a")])
    iam.takes("remove_role_from_instance_profile", InstanceProfileName=NAME, RoleName=NAME)
    iam.takes("delete_instance_profile", InstanceProfileName=NAME)
    iam.stub.add_client_error("delete_instance_profile", "NoSuchEntity", expected_params={"InstanceProfileName": "a"})
    iam.profile.delete_profiles()


def test_a_role_is_deleted_without_its_policies(iam: Iam) -> None:
    iam.shows(roles=[role()])
    iam.takes("list_role_policies", {"PolicyNames": ["own"], "IsTruncated": False}, RoleName=NAME)
    iam.takes("delete_role_policy", RoleName=NAME, PolicyName="own")
    iam.policies(POLICY)
    iam.takes("detach_role_policy", RoleName=NAME, PolicyArn=POLICY)
    iam.takes("delete_role", RoleName=NAME)
    iam.profile.delete_roles()


def test_a_step_of_a_deletion_that_is_refused_is_told(iam: Iam) -> None:
    iam.stub.add_client_error("delete_role", "DeleteConflict", "it is in use")
    with pytest.raises(AwsCallError, match="AWS would not delete role: it is in use"):
        calls.delete(iam.client, "delete_role", RoleName=NAME)


def test_a_role_that_is_gone_meanwhile_has_no_policies(iam: Iam) -> None:
    for operation in ("list_role_policies", "list_attached_role_policies", "delete_role"):
        iam.stub.add_client_error(operation, "NoSuchEntity", expected_params={"RoleName": NAME})
    calls.delete_role(iam.client, NAME)
