"""By which tags a resource is known as ours, another's or nobody's."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import tags
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    CLUSTER_TAG,
    KEEP_TAG,
    OWNER_TAG,
    tag_list,
)

ADA = "arn:aws:sts::123456789012:assumed-role/ml/ada"
EVE = "arn:aws:iam::123456789012:user/eve"
ML = "arn:aws:sts::123456789012:assumed-role/ml"
MINE = {"cluster_name": "bert", "owner": ADA}


def test_our_tags_are_over_the_user_s() -> None:
    params = {"cluster_name": "bert", "owner": ADA, "tags": {"team": 7, CLUSTER_TAG: "other"}}
    assert tags.own_tags(params) == {"team": "7", CLUSTER_TAG: "bert", OWNER_TAG: ADA}
    assert tags.own_tags({"cluster_name": "bert", "owner": "", "tags": None}) == {CLUSTER_TAG: "bert"}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, ""),
        ({CLUSTER_TAG: "bert"}, ""),
        ({CLUSTER_TAG: "bert", OWNER_TAG: ADA}, ""),
        # Another session of the same role.
        ({CLUSTER_TAG: "bert", OWNER_TAG: f"{ML}/bob"}, ""),
        ({}, "the table carries no tag trainium:cluster; take another name"),
        ({CLUSTER_TAG: "gpt", OWNER_TAG: ADA}, "the table belongs to the cluster gpt; take another name"),
        (
            {CLUSTER_TAG: "bert", OWNER_TAG: EVE},
            f"the table belongs to {EVE}, and you are {ML}; take another name, or give their owner to act for them",
        ),
    ],
)
def test_what_is_somebody_else_s_is_refused(found: dict[str, str] | None, said: str) -> None:
    if not said:
        tags.check_ours(found, MINE, "the table")
        return
    with pytest.raises(TrainiumError) as error:
        tags.check_ours(found, MINE, "the table")
    assert str(error.value) == said


def test_nobody_is_another_where_no_owner_is_given() -> None:
    tags.check_ours({CLUSTER_TAG: "bert", OWNER_TAG: EVE}, {"cluster_name": "bert"}, "it")
    assert not tags.is_of_another({OWNER_TAG: EVE}, {"owner": None})
    assert tags.is_owner({}, {}) and tags.is_owner({OWNER_TAG: EVE}, {"owner": ""})


def test_what_never_was_without_an_owner_is_trusted_with_that_owner_s_tag_alone() -> None:
    tags.check_owner({CLUSTER_TAG: "bert", OWNER_TAG: ML}, MINE, "it")
    with pytest.raises(TrainiumError, match=f"it carries no tag {OWNER_TAG}, .* with the value {ADA} if you trust"):
        tags.check_owner({CLUSTER_TAG: "bert"}, MINE, "it")
    with pytest.raises(TrainiumError, match="it belongs to the cluster gpt"):
        tags.check_owner({CLUSTER_TAG: "gpt", OWNER_TAG: ADA}, MINE, "it")
    assert not tags.is_owner({OWNER_TAG: EVE}, MINE)


def item(**named: str) -> dict[str, Any]:
    known = {"cluster": CLUSTER_TAG, "owner": OWNER_TAG, "name": "Name"}
    return {"Tags": tag_list({known[key]: value for key, value in named.items()})}


def test_of_a_cluster_and_of_a_name_in_it() -> None:
    both = [item(cluster="bert", name="a"), item(cluster="bert", name="b")]
    others = [item(cluster="gpt", name="a"), item(name="a"), {"Tags": None}, {}]
    assert tags.of_cluster([*both, *others], {"cluster_name": "bert"}) == both
    assert tags.of_cluster([*others, *both], {"cluster_name": "bert", "name": "b"}) == both[1:]


def test_of_the_owner_where_there_are_any() -> None:
    mine, theirs = item(owner=f"{ML}/bob"), item(owner=EVE)
    assert tags.of_owner([theirs, mine, {}], MINE) == [mine]
    assert tags.of_owner([theirs, {}], MINE) == [theirs, {}]


@pytest.mark.parametrize(
    ("found", "keep", "changes", "kept"),
    [
        ({}, None, {}, False),
        ({}, True, {KEEP_TAG: "true"}, True),
        ({}, False, {}, False),
        ({KEEP_TAG: "true"}, None, {}, True),
        ({KEEP_TAG: "true"}, True, {}, True),
        ({KEEP_TAG: "true"}, False, {KEEP_TAG: "false"}, False),
        ({KEEP_TAG: "false"}, None, {}, False),
        ({KEEP_TAG: "false"}, True, {KEEP_TAG: "true"}, True),
        ({KEEP_TAG: "false"}, False, {}, False),
    ],
)
def test_whether_teardown_keeps_it(
    found: dict[str, str], keep: bool | None, changes: dict[str, str], kept: bool
) -> None:
    assert tags.keep_tags(found, keep) == changes
    assert tags.is_kept(found, keep) == kept
    # What the tag says afterwards is what was asked for.
    assert tags.is_kept({**found, **changes}, None) == kept


@pytest.mark.parametrize(
    ("found", "stack"),
    [
        # Both tags as AWS names them: the CloudFormation and the ParallelCluster guide.
        ({"aws:cloudformation:stack-name": "s"}, True),
        ({"parallelcluster:cluster-name": "c"}, True),
        ({"parallelcluster:cluster-name": ""}, False),
        ({"Name": "s"}, False),
    ],
)
def test_what_a_stack_has_made(found: dict[str, str], stack: bool) -> None:
    assert tags.is_of_a_stack(found) == stack


def test_tags_are_a_list_in_one_order_and_back() -> None:
    assert tag_list({"b": "2", "a": "1"}) == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    assert tags.tags_of({"Tags": tag_list({"b": "2", "a": "1"})}) == {"a": "1", "b": "2"}
    assert tags.tags_of({}) == tags.tags_of({"Tags": None}) == {}


def test_the_same_request_has_the_same_token() -> None:
    """EC2: up to 64 ASCII characters."""
    token = tags.client_token({"MinCount": 1, "ImageId": "ami-1"})
    assert token.startswith("trainium-") and token.isascii() and 40 < len(token) <= 64
    assert tags.client_token({"ImageId": "ami-1", "MinCount": 1, "ClientToken": token}) == token
    others: list[dict[str, Any]] = [
        {"MinCount": 2, "ImageId": "ami-1"},
        {"ImageId": "ami-1"},
        {"MinCount": 1, "ImageId": "ami-2"},
    ]
    assert len({token, *map(tags.client_token, others)}) == 4
