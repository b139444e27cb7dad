"""What is to be done with a cluster in each state."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import plan as planner
from hypothesis import given
from hypothesis import strategies as st

STATUSES = [
    None,
    "CREATE_IN_PROGRESS",
    "CREATE_COMPLETE",
    "CREATE_FAILED",
    "ROLLBACK_IN_PROGRESS",
    "ROLLBACK_COMPLETE",
    "ROLLBACK_FAILED",
    "UPDATE_IN_PROGRESS",
    "UPDATE_COMPLETE",
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
    "UPDATE_FAILED",
    "UPDATE_ROLLBACK_IN_PROGRESS",
    "UPDATE_ROLLBACK_COMPLETE",
    "UPDATE_ROLLBACK_FAILED",
    "DELETE_IN_PROGRESS",
    "DELETE_FAILED",
]


ME, THEM = "arn:aws:sts::1:assumed-role/ops/me", "arn:aws:iam::1:user/ann"


@pytest.mark.parametrize(
    ("tags", "owner", "sentence"),
    [
        ({}, ME, "carries no tag trainium:cluster"),
        ({"trainium:cluster": "other", "trainium:owner": ME}, ME, "belongs to the cluster other"),
        ({"trainium:cluster": "bert", "trainium:owner": THEM}, ME, f"belongs to {THEM}, and you are"),
        ({"trainium:cluster": "bert", "trainium:owner": THEM}, None, f"belongs to {THEM}; take another name, or give"),
    ],
)
def test_the_cluster_of_somebody_else_is_refused(tags: dict[str, str], owner: str | None, sentence: str) -> None:
    stack = {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
    with pytest.raises(TrainiumError, match=sentence):
        planner.check_owner(stack, "bert", owner)


@pytest.mark.parametrize(
    ("tags", "owner"),
    [
        (None, ME),
        ({}, None),
        ({"trainium:cluster": "bert"}, ME),
        ({"trainium:cluster": "bert", "trainium:owner": ME.replace("/me", "")}, ME),
    ],
)
def test_our_own_cluster_is_taken(tags: dict[str, str] | None, owner: str | None) -> None:
    stack = None if tags is None else {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
    planner.check_owner(stack, "bert", owner)


def test_a_cluster_with_an_owner_is_made_with_its_tags() -> None:
    given = {"Region": "us-west-2", "Tags": [{"Key": "team", "Value": "speech"}]}
    made = planner.with_owner(given, "bert", ME)
    assert {one["Key"]: one["Value"] for one in made["Tags"]} == {
        "team": "speech",
        "trainium:cluster": "bert",
        "trainium:owner": ME,
    }
    assert planner.with_owner(made, "bert", ME) == made
    assert planner.with_owner(given, "bert", None) is given


@pytest.mark.parametrize(
    ("version", "has", "gets"),
    [
        ("3.14.2", {"trainium:cluster": "bert"}, {"team": "speech", "trainium:cluster": "bert"}),
        ("3.9.0", {}, {"team": "speech", "trainium:cluster": "bert"}),
        ("3.14.2", {"trainium:owner": ME}, {"team": "speech", "trainium:cluster": "bert", "trainium:owner": ME}),
        ("3.15.0", {}, {"team": "speech", "trainium:cluster": "bert", "trainium:owner": ME}),
        ("3.16.1", {}, {"team": "speech", "trainium:cluster": "bert", "trainium:owner": ME}),
    ],
)
def test_a_cluster_that_cannot_be_given_an_owner_stays_without(
    version: str, has: dict[str, str], gets: dict[str, str]
) -> None:
    wanted = planner.with_owner({"Tags": [{"Key": "team", "Value": "speech"}]}, "bert", ME)
    current = {"Tags": [{"Key": key, "Value": value} for key, value in has.items()]}
    tags = planner.without_new_owner(wanted, current, version)["Tags"]
    assert {one["Key"]: one["Value"] for one in tags} == gets
    assert planner.without_new_owner({}, None, version) == {}


@pytest.mark.parametrize(
    ("status", "same", "action"),
    [
        (None, False, "create"),
        ("CREATE_IN_PROGRESS", True, "wait_create"),
        ("CREATE_IN_PROGRESS", False, "wait_create"),
        ("CREATE_COMPLETE", True, "nothing"),
        ("CREATE_COMPLETE", False, "update"),
        ("CREATE_FAILED", True, "refuse"),
        ("ROLLBACK_IN_PROGRESS", True, "refuse"),
        ("ROLLBACK_COMPLETE", True, "refuse"),
        ("UPDATE_IN_PROGRESS", False, "wait_update"),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", True, "wait_update"),
        ("UPDATE_COMPLETE", False, "update"),
        ("UPDATE_ROLLBACK_COMPLETE", False, "update"),
        ("UPDATE_ROLLBACK_COMPLETE", True, "nothing"),
        ("UPDATE_ROLLBACK_FAILED", True, "refuse"),
        ("DELETE_IN_PROGRESS", True, "refuse"),
        ("DELETE_FAILED", True, "refuse"),
    ],
)
def test_towards_present(status: str | None, same: bool, action: str) -> None:
    assert planner.next_step("present", status, same, wait=True).action == action


@pytest.mark.parametrize(
    ("status", "action"),
    [
        (None, "nothing"),
        ("CREATE_IN_PROGRESS", "delete"),
        ("CREATE_COMPLETE", "delete"),
        ("ROLLBACK_COMPLETE", "delete"),
        ("UPDATE_IN_PROGRESS", "wait_update"),
        ("UPDATE_ROLLBACK_FAILED", "delete"),
        ("DELETE_IN_PROGRESS", "wait_delete"),
        ("DELETE_FAILED", "delete"),
    ],
)
def test_towards_absent(status: str | None, action: str) -> None:
    assert planner.next_step("absent", status, False, wait=True).action == action


def test_without_waiting_nothing_is_waited_for() -> None:
    assert planner.next_step("present", "CREATE_IN_PROGRESS", True, wait=False).action == "nothing"
    assert "just being created" in planner.next_step("present", "CREATE_IN_PROGRESS", False, wait=False).text
    assert "just being updated" in planner.next_step("absent", "UPDATE_IN_PROGRESS", False, wait=False).text
    assert planner.next_step("absent", "DELETE_IN_PROGRESS", False, wait=False).action == "nothing"


@given(st.sampled_from(["present", "absent"]), st.sampled_from(STATUSES), st.booleans(), st.booleans())
def test_every_state_has_a_step_and_only_refusals_have_a_text(
    wanted: str, status: str | None, same: bool, wait: bool
) -> None:
    step = planner.next_step(wanted, status, same, wait)
    assert (step.action == "refuse") == bool(step.text)
    assert wait or not step.action.startswith("wait")
    assert not (wanted == "absent" and step.action in ("create", "update"))
    assert not (wanted == "present" and step.action in ("delete", "wait_delete"))


def test_another_version_is_named() -> None:
    assert planner.version_refusal("3.16.1", "3.16.1") == ""
    assert "aws-parallelcluster==3.15.0" in planner.version_refusal("3.15.0", "3.16.1")
    assert "was not made by ParallelCluster" in planner.version_refusal(None, "3.16.1")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4))
def test_the_order_of_keys_does_not_count(configuration: dict[str, Any]) -> None:
    turned = dict(reversed(list(configuration.items())))
    assert planner.same_configuration(configuration, turned)
    assert planner.same_configuration(configuration, {**turned, "none": None})
    assert not planner.same_configuration(configuration, {**turned, "more": 1})


def test_what_counts_in_a_configuration() -> None:
    assert not planner.same_configuration({"a": True}, {"a": 1})
    assert not planner.same_configuration({"a": [1, 2]}, {"a": [2, 1]})
    assert not planner.same_configuration({"a": "1"}, {"a": 1})


@pytest.mark.parametrize(
    ("messages", "helps"),
    [
        (
            ["All compute nodes must be stopped. Stop the compute fleet with the pcluster command"],
            True,
        ),
        (
            ["To perform this update action, the head node must be in a stopped state. Stop the compute fleet with"],
            False,
        ),
        (["All compute nodes must be stopped", "Update actions are not currently supported"], False),
        (["Stop the login nodes by setting Count parameter to 0"], False),
        ([], False),
    ],
)
def test_whether_a_stopped_fleet_would_help(messages: list[str], helps: bool) -> None:
    content = {"updateValidationErrors": [{"message": message} for message in messages]}
    assert planner.stop_would_help(content) is helps


def test_the_librarys_answers_get_our_names() -> None:
    content = {
        "changeSet": [{"parameter": "a", "currentValue": "1", "requestedValue": "2"}],
        "validationMessages": [{"level": "WARNING", "type": "X", "message": "hm"}],
    }
    changes = planner.change_set(content)
    assert changes == [{"parameter": "a", "current_value": "1", "requested_value": "2"}]
    assert planner.changes_shown(changes) == {"before": {"a": "1"}, "after": {"a": "2"}}
    assert planner.validation_messages(content) == [{"level": "WARNING", "type": "X", "message": "hm"}]
    assert planner.nothing_to_update("Bad Request: No changes found in your cluster configuration.")


@pytest.mark.parametrize(
    ("name", "good"), [("tc", True), ("1tc", False), ("t_c", False), ("a" * 61, False), ("tc\n", False)]
)
def test_names(name: str, good: bool) -> None:
    assert bool(planner.NAME.match(name)) is good


def test_access_to_a_bucket_that_stays_is_no_change() -> None:
    read, write = {"BucketName": "b"}, {"BucketName": "b", "KeyName": "cache/*", "EnableWriteAccess": True}

    def configuration(head: list[Any], queue: list[Any]) -> dict[str, Any]:
        queues = [{"Name": "q", "Iam": {"S3Access": queue}}]
        return {"HeadNode": {"Iam": {"S3Access": head}}, "Scheduling": {"SlurmQueues": queues}}

    changes = [
        {"parameter": parameter, "current_value": "-", "requested_value": "x"}
        for parameter in (
            "HeadNode.Iam.S3Access[b].KeyName",
            "Scheduling.SlurmQueues[q].Iam.S3Access[b].KeyName",
            "Scheduling.SlurmQueues[q].CapacityType",
        )
    ]
    both = configuration([read, write], [read, write])
    assert planner.real_changes(changes, both, both) == changes[2:]
    assert planner.real_changes(changes, configuration([read], [read, write]), both) == [changes[0], changes[2]]
    assert planner.real_changes(changes, None, both) == changes
