"""What the module pcluster asks of the library and of AWS, in which order, and what it says at the end."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.calls import BROKEN, PclusterError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run import Pcluster
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_stack import Stack

from tests.unit.pcluster.pcluster_stand_ins import (
    ARN,
    DRY_RUN,
    Item,
    ToldAccount,
    ToldError,
    ToldLibrary,
    event,
    groups,
)

GONE = ToldError("ValidationError", "Stack with id bert does not exist")
LOGS = "/aws/parallelcluster/bert-202601010000"
OLD, NEW = (
    {"Region": "us-west-2", "Image": {"Os": "ubuntu2204"}},
    {"Region": "us-west-2", "Image": {"Os": "ubuntu2404"}},
)
CHANGE = {"parameter": "Image.Os", "currentValue": "ubuntu2204", "requestedValue": "ubuntu2404"}
SHOWN = {"parameter": "Image.Os", "current_value": "ubuntu2204", "requested_value": "ubuntu2404"}
REMARK = {"level": "WARNING", "type": "KeyPairValidator", "message": "no key"}
REHEARSED = PclusterError(DRY_RUN, "would have succeeded", {"changeSet": [CHANGE], "validationMessages": [REMARK]})
DESCRIBED = {"clusterName": "bert", "clusterStatus": "X", "tags": [], "clusterConfiguration": {"url": "https://x"}}
MADE = {"cluster": {"cloudformationStackArn": ARN}}


def there(*statuses: str) -> list[Any]:
    """The stack in these states one after another."""
    tags = [{"Key": "parallelcluster:version", "Value": "3.15.0"}]
    named = {"StackName": "bert", "StackId": ARN, "Tags": tags}
    return [{"Stacks": [{**named, "StackStatus": status}]} if status else GONE for status in statuses]


def state(configuration: Item | None = None, fleet: str = "RUNNING", version: str = "3.16.1") -> Item:
    cluster = {**DESCRIBED, "computeFleetStatus": fleet}
    known = OLD if configuration is None else configuration
    return {"installed": "3.16.1", "version": version, "cluster": cluster, "configuration": known}


class Run:
    """The module once: its result or its error, and what was asked."""

    def __init__(self, stacks: list[Any], library: Item | None = None, check: bool = False, **params: Any) -> None:
        params.setdefault("configuration", NEW)
        aws = params.pop("aws", {})
        given = {
            "name": "bert",
            "owner": None,
            "state": "present",
            "suppress_validators": [],
            "validation_failure_level": "ERROR",
            "rollback_on_failure": True,
            "fleet_policy": "fail",
            "keep_logs": True,
            "wait": True,
            "wait_timeout": 60,
            **params,
        }
        self.library = ToldLibrary(
            **{"cluster_state": state(), "describe_cluster": DESCRIBED, "create_cluster": MADE, **(library or {})}
        )
        events = {"StackEvents": [event("HeadNode", "CREATE_FAILED", "It broke."), event("bert", "CREATE_IN_PROGRESS")]}
        told = {"DescribeStacks": stacks, "DescribeStackEvents": events, "DescribeLogGroups": groups(LOGS)}
        self.aws = ToldAccount(
            **{**told, "ListStacks": {"StackSummaries": []}, "GetTemplate": {"TemplateBody": {}}, **aws}
        )
        cloudwatch = self.aws.client("logs")
        stack = Stack(self.aws.client("cloudformation"), cloudwatch, given["name"])
        self.warned: list[str] = []
        wanted = given["configuration"] if given["state"] == "present" else None
        cluster = Pcluster(self.library, stack, cloudwatch, given, wanted, check, self.warned.append)
        self.result: Item = {}
        self.error: TrainiumError | None = None
        try:
            self.result = cluster.run()
        except TrainiumError as error:
            self.error = error

    @property
    def operations(self) -> list[str]:
        return self.library.operations

    @property
    def deleted(self) -> list[str]:
        return [request["logGroupName"] for request in self.aws.requests("DeleteLogGroup")]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"name": "1bert"}, "name must begin with a letter"),
        ({"configuration": {}}, "state=present needs configuration"),
    ],
)
def test_nothing_is_asked_with_bad_input(params: Item, sentence: str) -> None:
    done = Run(there(""), **params)
    assert sentence in str(done.error)
    assert (done.operations, done.aws.asked) == ([], [])


def test_a_stack_of_another_program_is_left_alone() -> None:
    foreign = [{"Stacks": [{"StackName": "bert", "StackStatus": "CREATE_COMPLETE", "Tags": []}]}]
    for wanted in ("present", "absent"):
        done = Run(foreign, state=wanted)
        assert "that ParallelCluster did not make" in str(done.error)
        assert done.operations == []


def test_the_cluster_of_somebody_else_is_left_alone() -> None:
    done = Run(there("CREATE_COMPLETE"), state="absent", owner="arn:aws:iam::1:user/me")
    assert "carries no tag trainium:cluster" in str(done.error)
    assert done.operations == []


def test_a_cluster_is_rehearsed_made_awaited_and_described() -> None:
    done = Run(
        there("", "CREATE_IN_PROGRESS", "CREATE_COMPLETE"),
        {"dry_create_cluster": PclusterError(DRY_RUN, "ok", {"validationMessages": [REMARK]})},
        suppress_validators=["ALL"],
        validation_failure_level="WARNING",
        rollback_on_failure=False,
    )
    assert done.operations == ["dry_create_cluster", "create_cluster", "describe_cluster"]
    asked = {
        "cluster_name": "bert",
        "cluster_configuration": NEW,
        "suppress_validators": ["ALL"],
        "validation_failure_level": "WARNING",
    }
    assert done.library.arguments("dry_create_cluster") == asked
    assert done.library.arguments("create_cluster") == {**asked, "rollback_on_failure": False}
    assert done.aws.requests("DescribeStacks")[1:] == [{"StackName": ARN}] * 2
    assert done.result == {
        "changed": True,
        "operation": "create",
        "cluster": {"cluster_name": "bert", "cluster_status": "X", "tags": {}},
        "change_set": [],
        "validation_messages": [REMARK],
        "fleet_stopped": False,
        "deleted_log_groups": [],
        "diff": {"before": {}, "after": NEW},
    }


def test_without_waiting_a_creation_is_only_begun() -> None:
    done = Run(there(""), wait=False)
    assert done.operations == ["dry_create_cluster", "create_cluster", "describe_cluster"]
    assert done.library.arguments("create_cluster") == {
        "cluster_name": "bert",
        "cluster_configuration": NEW,
        "validation_failure_level": "ERROR",
        "rollback_on_failure": True,
    }
    assert len(done.aws.requests("DescribeStacks")) == 1


def test_an_owner_is_in_the_tags_of_what_is_made() -> None:
    done = Run(there(""), owner="arn:aws:iam::1:user/me", wait=False)
    tags = done.library.arguments("create_cluster")["cluster_configuration"]["Tags"]
    assert {"Key": "trainium:owner", "Value": "arn:aws:iam::1:user/me"} in tags


def test_a_check_of_a_creation_stops_after_the_rehearsal() -> None:
    done = Run(there(""), check=True)
    assert done.operations == ["dry_create_cluster"]
    assert (done.result["changed"], done.result["operation"]) == (True, "create")
    assert done.result["diff"] == {"before": {}, "after": NEW}


@pytest.mark.parametrize(
    ("described", "code"),
    [
        ({"failures": [{"failureCode": "HeadNodeBootstrapFailure"}]}, ", HeadNodeBootstrapFailure"),
        ({"failures": [{}]}, ""),
        ({}, ""),
        (PclusterError(BROKEN, "it is being taken back"), ""),
    ],
)
def test_a_creation_that_fails_is_explained(described: Any, code: str) -> None:
    explained = (
        f"the creation of the cluster failed (ROLLBACK_IN_PROGRESS{code}): HeadNode (AWS::EC2::Instance): It broke"
    )
    done = Run(there("", "ROLLBACK_IN_PROGRESS"), {"describe_cluster": described})
    assert str(done.error).startswith(explained)
    assert str(done.error).endswith(f"{LOGS}; delete the cluster with state=absent before the next try")
    assert done.error and done.error.details["failure_code"] == code[2:]
    # So is one that a run before this has begun.
    again = Run(there("ROLLBACK_IN_PROGRESS"), {"describe_cluster": described})
    assert str(again.error).startswith(explained)
    assert str(again.error).endswith("; delete it with state=absent, then create it again")


def test_a_cluster_that_cannot_be_used_is_refused_without_a_search_for_the_reason() -> None:
    done = Run(there("DELETE_IN_PROGRESS"))
    assert "the cluster is being deleted; wait" in str(done.error)
    assert done.operations == ["cluster_state"]
    assert done.aws.requests("DescribeStackEvents") == []


def test_a_cluster_that_is_as_wanted_is_described_and_left_alone() -> None:
    done = Run(there("UPDATE_COMPLETE"), {"cluster_state": state(NEW)})
    assert done.operations == ["cluster_state"]
    assert (done.result["changed"], done.result["operation"]) == (False, "none")
    assert done.result["cluster"]["compute_fleet_status"] == "RUNNING"


@pytest.mark.parametrize(
    ("under_way", "ended"), [("CREATE_IN_PROGRESS", "CREATE_COMPLETE"), ("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE")]
)
def test_what_is_under_way_is_awaited_and_judged_again(under_way: str, ended: str) -> None:
    done = Run(there(under_way, under_way, ended), {"cluster_state": [state(OLD), state(NEW)]})
    assert done.operations == ["cluster_state", "cluster_state"]
    assert not done.result["changed"]


def test_neither_a_check_nor_a_run_that_shall_not_wait_waits_for_what_is_under_way() -> None:
    every: list[Item] = [{"check": True}, {"wait": False}]
    for options in every:
        done = Run(there("UPDATE_IN_PROGRESS"), **options)
        assert "just being updated with another configuration" in str(done.error)
        assert len(done.aws.requests("DescribeStacks")) == 1


def test_an_update_is_rehearsed_made_awaited_and_described() -> None:
    done = Run(there("CREATE_COMPLETE", "UPDATE_COMPLETE"), {"dry_update_cluster": REHEARSED})
    assert done.operations == ["cluster_state", "dry_update_cluster", "update_cluster", "describe_cluster"]
    asked = {"cluster_name": "bert", "cluster_configuration": NEW, "validation_failure_level": "ERROR"}
    assert done.library.arguments("dry_update_cluster") == done.library.arguments("update_cluster") == asked
    assert done.aws.requests("DescribeStacks")[1:] == [{"StackName": ARN}]
    assert done.result == {
        "changed": True,
        "operation": "update",
        "cluster": {"cluster_name": "bert", "cluster_status": "X", "tags": {}},
        "change_set": [SHOWN],
        "validation_messages": [REMARK],
        "fleet_stopped": False,
        "deleted_log_groups": [],
        "diff": {"before": {"Image.Os": "ubuntu2204"}, "after": {"Image.Os": "ubuntu2404"}},
    }


@pytest.mark.parametrize(("options", "ends"), [({"check": True}, 2), ({"wait": False}, 4)])
def test_a_check_of_an_update_and_one_without_waiting(options: Item, ends: int) -> None:
    done = Run(there("CREATE_COMPLETE"), {"dry_update_cluster": REHEARSED}, **options)
    assert done.operations == ["cluster_state", "dry_update_cluster", "update_cluster", "describe_cluster"][:ends]
    assert done.result["changed"] and done.result["cluster"]["cluster_name"] == "bert"
    assert len(done.aws.requests("DescribeStacks")) == 1


def test_what_the_library_ignores_is_said_and_changes_nothing() -> None:
    nothing = PclusterError(400, "Bad Request: No changes found in your cluster configuration.")
    done = Run(there("CREATE_COMPLETE"), {"dry_update_cluster": nothing})
    assert (done.result["changed"], done.result["operation"]) == (False, "none")
    assert done.result["cluster"]["compute_fleet_status"] == "RUNNING"
    assert len(done.warned) == 1 and done.warned[0].startswith("The configuration of bert differs")


def test_another_version_is_refused_before_the_rehearsal() -> None:
    done = Run(there("CREATE_COMPLETE"), {"cluster_state": state(version="3.15.0")})
    assert "made by ParallelCluster 3.15.0 and 3.16.1 is installed" in str(done.error)
    assert done.operations == ["cluster_state"]


def test_an_update_that_fails_says_that_the_former_configuration_is_back() -> None:
    done = Run(there("CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"), {"dry_update_cluster": REHEARSED})
    assert re.match(r"the update of the cluster failed \(UPDATE_ROLLBACK_COMPLETE\): ", str(done.error))
    assert str(done.error).endswith("; the cluster has its former configuration")


def test_an_error_of_the_library_is_no_dry_run_that_passed() -> None:
    broken = PclusterError(BROKEN, "the library broke")
    done = Run(there(""), {"dry_create_cluster": broken})
    assert done.error is broken and done.operations == ["dry_create_cluster"]
    assert Run(there("CREATE_COMPLETE"), {"dry_update_cluster": broken}).error is broken
