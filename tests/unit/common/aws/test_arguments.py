"""What the modules that make things in AWS ask of the arguments that all of them take."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import arguments
from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import GROUP, SUBNET
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError


@pytest.mark.parametrize(("cluster", "found"), [("bert", "bert"), (None, "workers"), ("", "workers")])
def test_a_set_without_a_cluster_is_one(cluster: str | None, found: str) -> None:
    params = {"name": "workers", "cluster_name": cluster, "owner": "", "keep": False, "wait": True}
    given = arguments.given(params, ["owner", "vpc_id"])
    assert given == {**params, "cluster_name": found, "owner": None, "vpc_id": None}


def test_a_text_that_is_given_stays() -> None:
    assert arguments.given({"name": "a", "owner": "ada"}, ["owner"])["owner"] == "ada"


@pytest.mark.parametrize("name", ["a", "7", "a.b_c-D", "a" * 100])
def test_a_name_that_a_tag_may_have(name: str) -> None:
    arguments.check_names({"name": name}, ["name"], required=True)


@pytest.mark.parametrize("name", ["-a", ".a", "a b", "a*", "a" * 101, "a\n", "é"])
def test_another_name_is_refused_and_told(name: str) -> None:
    with pytest.raises(TrainiumError) as found:
        arguments.check_names({"cluster_name": "fine", "name": name}, ["cluster_name", "name"])
    assert str(found.value).startswith(f"name is {name!r}; use 1 to 100 letters")


def test_only_a_required_name_may_not_be_empty() -> None:
    arguments.check_names({"name": ""}, ["name", "other"])
    with pytest.raises(TrainiumError, match="name is ''"):
        arguments.check_names({"name": ""}, ["name"], required=True)


@pytest.mark.parametrize("tags", [None, {}, {"k" * 128: "v" * 256}, {"team": 3}, {"k": ""}, {"name": "x"}])
def test_tags_that_aws_takes(tags: dict[str, Any] | None) -> None:
    arguments.check_tags(tags, "EC2")


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({"aws:x": "a"}, "tags holds aws:x, which is reserved; remove it"),
        ({"fine": "a", "trainium:set": "a"}, "tags holds trainium:set, which is reserved; remove it"),
        ({"Name": "a"}, "tags holds Name, which is reserved; remove it"),
        ({"": "a"}, "tag '' is too long for EFS"),
        ({"k" * 129: "a"}, "is too long for EFS; a key has at most 128 characters, a value 256"),
        ({"k": "v" * 257}, "tag 'k' is too long for EFS"),
    ],
)
def test_tags_that_are_ours_or_too_long(tags: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainiumError) as found:
        arguments.check_tags(tags, "EFS", ["Name"])
    assert said in str(found.value)


def test_all_that_they_share_is_looked_at() -> None:
    good = {"name": "a", "tags": {"team": "ml"}, "wait_timeout": 1}
    arguments.check_shared(good, ["name"], "EC2")
    for wrong, said in (
        ({"name": "a b"}, "name is 'a b'"),
        ({"tags": {"aws:a": "b"}}, "tags holds aws:a"),
        ({"tags": {"Name": "b"}}, "tags holds Name"),
        ({"tags": {"k" * 129: "b"}}, "too long for EC2"),
        ({"wait_timeout": 0}, "wait_timeout is 0; give a number of seconds, 1 or more"),
    ):
        with pytest.raises(TrainiumError, match=said):
            arguments.check_shared({**good, **wrong}, ["name"], "EC2", ["Name"])


def test_lists_of_ids() -> None:
    fine = {"subnets": ["subnet-0a1b", "subnet-0123456789abcdef0"], "groups": None}
    arguments.check_ids(fine, subnets=SUBNET, groups=GROUP, others=GROUP)
    for option, pattern, value, example in (
        ("subnets", SUBNET, "sg-0a1b", "subnet-0a1b2c3d4e5f60001"),
        ("groups", GROUP, "subnet-0a1b", "sg-0a1b2c3d4e5f60003"),
        ("groups", GROUP, "sg-0A1B", "sg-0a1b2c3d4e5f60003"),
    ):
        with pytest.raises(TrainiumError) as found:
            arguments.check_ids({option: [example, value]}, **{option: pattern})
        assert str(found.value) == f"{option} holds {value!r}, which is no id such as {example}"
