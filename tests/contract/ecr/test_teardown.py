"""Teardown deletes the repositories of the owner, and lets no other and no missing right keep it from the rest."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._ecr.run import REPOSITORIES, RepositoriesOf

from tests.contract.conftest import Account

TAGS = [{"Key": "trainium:cluster", "Value": "bert"}]
MINE = [*TAGS, {"Key": "trainium:owner", "Value": "me"}]


def test_those_of_others_are_passed_over(cloud: Account) -> None:
    ecr = cloud.client("ecr")
    for name, tags in (("mine", MINE), ("theirs", [*TAGS, {"Key": "trainium:owner", "Value": "you"}]), ("free", TAGS)):
        ecr.create_repository(repositoryName=f"trainium/bert/{name}", tags=tags)
    ecr.create_repository(repositoryName="elsewhere", tags=MINE)
    found = RepositoriesOf(ecr, "bert", "me")
    assert found.look() == {REPOSITORIES: ["trainium/bert/mine"]}
    assert sorted(found.foreign) == ["trainium/bert/free", "trainium/bert/theirs"] and found.unseen == ""
    found.delete()
    left = {one["repositoryName"] for one in ecr.describe_repositories()["repositories"]}
    assert left == {"elsewhere", "trainium/bert/free", "trainium/bert/theirs"}


def test_where_ecr_may_not_be_asked_it_is_said(cloud: Account) -> None:
    cloud.api.fault("DescribeRepositories", "AccessDeniedException", count=1)
    found = RepositoriesOf(cloud.client("ecr"), "bert", "me")
    assert found.look() == {REPOSITORIES: []}
    assert "AWS would not list the repositories of images" in found.unseen
    cloud.api.fault("DescribeRepositories", "ValidationException", count=1)
    with pytest.raises(AwsCallError, match="AWS would not list the repositories of images"):
        found.look()
