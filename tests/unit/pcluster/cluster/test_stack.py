"""Waiting for a cluster's stack, and what is said of one that failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import PROGRESS_FILE
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls_stack
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_stack import Stack
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.stack_events import STACK_TYPE

from tests.unit.pcluster.pcluster_stand_ins import ARN, Item, ToldAccount, ToldError, event, groups

GONE = ToldError("ValidationError", "Stack with id bert does not exist")
BEGUN = event("bert", "CREATE_IN_PROGRESS")
UNDER_WAY = [event("HeadNode", "CREATE_IN_PROGRESS"), event("Role", "CREATE_COMPLETE"), BEGUN]
TEMPLATE: Item = {"TemplateBody": {"Resources": {"HeadNode": {}, "Role": {}, "Table": {}}}}


def states(*statuses: str) -> list[Item]:
    return [{"Stacks": [{"StackName": "bert", "StackId": ARN, "StackStatus": status}]} for status in statuses]


def stack(**told: Any) -> tuple[Stack, ToldAccount]:
    account = ToldAccount(**told)
    return Stack(account.client("cloudformation"), account.client("logs"), "bert"), account


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (states("CREATE_COMPLETE")[0], "CREATE_COMPLETE"),
        (states("DELETE_COMPLETE")[0], None),
        ({"Stacks": []}, None),
        (GONE, None),
    ],
)
def test_a_stack_that_is_gone_is_none(answer: Any, status: str | None) -> None:
    made, account = stack(DescribeStacks=answer)
    found = made.look()
    assert (found and found["StackStatus"]) == status
    assert account.requests("DescribeStacks") == [{"StackName": "bert"}]


@pytest.mark.parametrize(
    "error", [ToldError("AccessDenied", "x does not exist"), ToldError("ValidationError", "a bad name")]
)
def test_a_stack_that_cannot_be_seen_is_not_taken_for_gone(error: ToldError) -> None:
    made, _account = stack(DescribeStacks=error, DescribeStackEvents=error)
    with pytest.raises(TrainiumError, match="AWS would not describe the stack"):
        made.look()
    with pytest.raises(TrainiumError, match="AWS would not list the stack's events"):
        made.failure("the creation", "CREATE_FAILED", ARN)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("create", "CREATE_COMPLETE"),
        ("create", "ROLLBACK_IN_PROGRESS"),
        ("update", "UPDATE_ROLLBACK_COMPLETE"),
        ("delete", "DELETE_FAILED"),
    ],
)
def test_the_wait_ends_with_the_operation(kind: str, status: str) -> None:
    made, account = stack(
        DescribeStacks=states("REVIEW_IN_PROGRESS", status),
        DescribeStackEvents={"StackEvents": UNDER_WAY},
        GetTemplate=TEMPLATE,
    )
    assert made.wait(kind, ARN, 60) == status
    assert account.requests("DescribeStacks") == [{"StackName": ARN}] * 2


def test_the_first_looks_are_close_together_and_later_ones_are_not(clock: Any) -> None:
    made, account = stack(
        DescribeStacks=states("X_IN_PROGRESS"), DescribeStackEvents={"StackEvents": []}, GetTemplate=TEMPLATE
    )
    with pytest.raises(TrainiumError, match="still X_IN_PROGRESS after 3600 s"):
        made.wait("create", ARN, 3600)
    assert clock.now == 3600
    assert 360 <= len(account.requests("DescribeStacks")) < 375


def test_a_stack_that_is_not_there_any_more_is_deleted() -> None:
    made, _account = stack(DescribeStacks=GONE, GetTemplate=TEMPLATE)
    assert made.wait("delete", ARN, 0) == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    ("kind", "template", "known"),
    [
        ("create", TEMPLATE, 3),
        ("delete", {"TemplateBody": "Resources:\n  A: {}\n  B: {}\n  C: {}\n  D: {}\n"}, 4),
        # What it cannot be known from is no reason to stop.
        ("create", {"TemplateBody": "Resources: ["}, 2),
        ("create", {"TemplateBody": "no template"}, 2),
        # Of the resources in the template an update touches some.
        ("update", TEMPLATE, 2),
    ],
)
def test_how_far_it_is_counts_the_resources_of_the_template(
    kind: str, template: Item, known: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRESS_FILE, str(tmp_path / "progress"))
    verb = {"create": "created", "update": "updated", "delete": "deleted"}[kind]
    made, _account = stack(
        DescribeStacks=states("X_IN_PROGRESS"), DescribeStackEvents={"StackEvents": UNDER_WAY}, GetTemplate=template
    )
    with pytest.raises(TrainiumError, match=f"the stack is still X_IN_PROGRESS after 0 s, with 1 of {known}") as caught:
        made.wait(kind, ARN, 0)
    assert f"resources {verb}, last HeadNode CREATE_IN_PROGRESS; run again to wait on" in str(caught.value)
    assert caught.value.details == {"stack_status": "X_IN_PROGRESS"}
    told = json.loads((tmp_path / "progress").read_text())
    assert told["what"] == f"resources of bert {verb}"
    assert (told["done"], told["total"], told["missing"]) == (1, known, ["HeadNode"])
    assert told["note"] == "0 s, last HeadNode CREATE_IN_PROGRESS"


def test_events_are_those_of_the_newest_operation() -> None:
    older = [event("Role", "CREATE_FAILED", "long ago"), event("bert", "CREATE_IN_PROGRESS")]
    newest = [event("HeadNode", "UPDATE_FAILED", "no"), event("bert", "UPDATE_IN_PROGRESS")]
    pages = [
        {"StackEvents": newest[:1], "NextToken": "more"},
        {"StackEvents": [*newest[1:], older[0]], "NextToken": "last"},
        {"StackEvents": older[1:]},
    ]
    account = ToldAccount(DescribeStackEvents=list(pages))
    assert calls_stack.stack_events(account.client("cloudformation"), "bert") == newest
    assert account.requests("DescribeStackEvents") == [
        {"StackName": "bert"},
        {"StackName": "bert", "NextToken": "more"},
    ]
    account = ToldAccount(DescribeStackEvents=list(pages))
    assert calls_stack.stack_events(account.client("cloudformation"), "bert", whole=True) == [*newest, *older]
    assert calls_stack.stack_events(ToldAccount(DescribeStackEvents=GONE).client("cloudformation"), "bert") == []


def test_a_failure_names_resources_also_of_nested_stacks_and_the_logs() -> None:
    nested = event("Storage", "CREATE_FAILED", "Embedded stack failed", STACK_TYPE, PhysicalResourceId="arn:nested")
    never_made = event("Other", "CREATE_FAILED", "Resource creation cancelled", STACK_TYPE, PhysicalResourceId="")
    whole = event("Fine", "CREATE_COMPLETE", "", STACK_TYPE, PhysicalResourceId="arn:fine")
    root = event("bert", "CREATE_FAILED", "The following resource(s) failed to create: [Storage].")
    inside = {**event("Volume", "CREATE_FAILED", "Not enough space."), "StackId": "arn:nested"}
    events = {ARN: [root, never_made, whole, nested, BEGUN], "arn:nested": [inside]}
    made, account = stack(
        DescribeStackEvents=lambda request: {"StackEvents": events[request["StackName"]]},
        DescribeLogGroups=groups("/aws/parallelcluster/bert-202601010000", "/aws/parallelcluster/bert-202602010000"),
    )
    error = made.failure("the creation of the cluster", "CREATE_FAILED", ARN, "HeadNodeBootstrapFailure", "; try again")
    assert str(error) == (
        "the creation of the cluster failed (CREATE_FAILED, HeadNodeBootstrapFailure): "
        "Storage (AWS::CloudFormation::Stack): Embedded stack failed; Volume (AWS::EC2::Instance): Not enough space; "
        "its logs are in the log group /aws/parallelcluster/bert-202602010000; try again"
    )
    assert [item["resource"] for item in error.details["failed_resources"]] == ["Storage", "Volume"]
    assert (error.details["failure_code"], error.details["stack_status"]) == (
        "HeadNodeBootstrapFailure",
        "CREATE_FAILED",
    )
    assert [name[-12:] for name in error.details["log_groups"]] == ["202602010000", "202601010000"]
    assert [request["StackName"] for request in account.requests("DescribeStackEvents")] == [ARN, "arn:nested"]


def test_a_failure_without_a_code_and_without_logs() -> None:
    root = event("bert", "ROLLBACK_IN_PROGRESS", "Not authorized.")
    made, _account = stack(DescribeStackEvents={"StackEvents": [root, BEGUN]}, DescribeLogGroups=groups())
    error = made.failure("the update", "ROLLBACK_IN_PROGRESS", ARN)
    assert str(error) == "the update failed (ROLLBACK_IN_PROGRESS): Not authorized; no log was written"
    assert error.details["failed_resources"] == error.details["log_groups"] == []


def test_log_groups_are_those_of_the_clusters_and_of_their_functions() -> None:
    names = ("/aws/parallelcluster/bert-202601010000", "/aws/lambda/pcluster-CleanupRoutes-0a1b2c3d")
    others = ("/aws/parallelcluster/bert-2-202601010000", "/aws/lambda/pcluster-CleanupRoutes-ffff")
    summaries = [{"StackName": "bert", "StackId": ARN}, {"StackName": "other", "StackId": "arn:x/other/ffff"}]
    made, account = stack(ListStacks={"StackSummaries": summaries}, DescribeLogGroups=groups(*names, *others))
    assert made.all_log_groups() == list(names)
    prefixes = {request["logGroupNamePrefix"] for request in account.requests("DescribeLogGroups")}
    assert prefixes == {"/aws/parallelcluster/bert-", "/aws/lambda/pcluster-"}
