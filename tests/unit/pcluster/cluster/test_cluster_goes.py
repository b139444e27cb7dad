"""The end of a cluster, and an update that needs its fleet stopped."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.calls import PclusterError

from tests.unit.pcluster.cluster.test_cluster_steps import CHANGE, LOGS, SHOWN, Run, state, there
from tests.unit.pcluster.pcluster_stand_ins import ACCEPTED, ARN, Item, ToldError, groups

REFUSED = PclusterError(
    400,
    "Update failure",
    {"updateValidationErrors": [{"message": "All compute nodes must be stopped."}], "changeSet": [CHANGE]},
)
STOPPING: list[Any] = [{"status": "STOPPING"}, {"status": "STOPPED"}]


def fleet_steps(done: Run) -> list[str]:
    """What was asked, fleets by what was asked of them."""
    return [
        arguments.get("status", operation) if "fleet" in operation else operation
        for operation, arguments in done.library.asked
    ]


def test_without_the_policy_a_running_fleet_is_not_stopped() -> None:
    done = Run(there("CREATE_COMPLETE"), {"dry_update_cluster": REFUSED})
    assert str(done.error).endswith("stop the compute fleet first, or set fleet_policy=stop_and_start")
    assert done.error and done.error.details == {"change_set": [SHOWN]}
    assert done.operations == ["cluster_state", "dry_update_cluster"]


def test_what_a_stopped_fleet_does_not_cure_is_refused_with_the_policy_as_well() -> None:
    other = PclusterError(400, "Update failure", {"updateValidationErrors": [{"message": "not supported"}]})
    done = Run(there("CREATE_COMPLETE"), {"dry_update_cluster": other}, fleet_policy="stop_and_start")
    assert done.error is other


def test_the_fleet_is_stopped_rehearsed_again_and_started() -> None:
    told = {
        "dry_update_cluster": [REFUSED, ACCEPTED],
        "describe_compute_fleet": [*STOPPING, {"status": "RUNNING"}],
    }
    done = Run(there("CREATE_COMPLETE", "UPDATE_COMPLETE"), told, fleet_policy="stop_and_start")
    assert fleet_steps(done) == [
        *("cluster_state", "dry_update_cluster", "STOP_REQUESTED", "describe_compute_fleet", "describe_compute_fleet"),
        *("dry_update_cluster", "update_cluster", "START_REQUESTED", "describe_compute_fleet", "describe_cluster"),
    ]
    assert (done.result["fleet_stopped"], done.result["change_set"]) == (True, [SHOWN])


def test_without_waiting_the_update_is_awaited_and_the_start_is_not() -> None:
    told = {"dry_update_cluster": [REFUSED, ACCEPTED], "describe_compute_fleet": {"status": "STOPPED"}}
    done = Run(there("CREATE_COMPLETE", "UPDATE_COMPLETE"), told, fleet_policy="stop_and_start", wait=False)
    assert fleet_steps(done)[-2:] == ["START_REQUESTED", "describe_cluster"]
    assert len(done.aws.requests("DescribeStacks")) == 2


def test_a_check_stops_nothing() -> None:
    done = Run(there("CREATE_COMPLETE"), {"dry_update_cluster": REFUSED}, check=True, fleet_policy="stop_and_start")
    assert done.operations == ["cluster_state", "dry_update_cluster"]
    assert (done.result["changed"], done.result["fleet_stopped"]) == (True, True)


@pytest.mark.parametrize("fleet", ["STOPPED", "STOPPING", None])
def test_a_fleet_that_did_not_run_is_not_started(fleet: str | None) -> None:
    told = {
        "cluster_state": state(fleet=fleet or ""),
        "dry_update_cluster": [REFUSED, ACCEPTED],
        "describe_compute_fleet": {"status": "STOPPED"},
    }
    done = Run(there("CREATE_COMPLETE", "UPDATE_COMPLETE"), told, fleet_policy="stop_and_start")
    # Of one whose state is not known it is asked all the same.
    assert [step for step in fleet_steps(done) if step.endswith("REQUESTED")] == ([] if fleet else ["STOP_REQUESTED"])
    told["dry_update_cluster"] = [REFUSED, PclusterError(400, "no")]
    failed = Run(there("CREATE_COMPLETE"), told, fleet_policy="stop_and_start")
    assert (str(failed.error), "START_REQUESTED" in fleet_steps(failed)) == ("no", False)


def test_after_a_failure_the_fleet_is_started_again() -> None:
    fleet = [{"status": "STOPPED"}, {"status": "STOPPED"}, {"status": "RUNNING"}]
    told = {"dry_update_cluster": [REFUSED, ACCEPTED], "describe_compute_fleet": fleet}
    done = Run(there("CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"), told, fleet_policy="stop_and_start")
    assert str(done.error).endswith("has its former configuration; the compute fleet was started again")
    assert done.error and done.error.details["stack_status"] == "UPDATE_ROLLBACK_COMPLETE"
    assert fleet_steps(done)[-2:] == ["START_REQUESTED", "describe_compute_fleet"]


def test_a_fleet_that_cannot_be_started_again_is_told_beside_the_failure() -> None:
    told = {
        "dry_update_cluster": [REFUSED, PclusterError(400, "no such subnet")],
        "describe_compute_fleet": [{"status": "STOPPED"}, TrainiumError("the table is gone")],
    }
    done = Run(there("CREATE_COMPLETE"), told, fleet_policy="stop_and_start")
    assert str(done.error) == (
        "no such subnet; the compute fleet was stopped for it and could not be started again: the table is gone; "
        "start it with pcluster_compute_fleet"
    )


def test_nothing_is_done_for_a_cluster_that_is_gone() -> None:
    done = Run(there(""), state="absent")
    assert (done.operations, done.result["changed"], done.result["operation"]) == ([], False, "none")
    assert done.aws.requests("DescribeLogGroups") == []


@pytest.mark.parametrize(
    ("status", "keep", "operation"),
    [
        ("CREATE_COMPLETE", True, "delete_cluster_keep_logs"),
        ("UPDATE_ROLLBACK_COMPLETE", True, "delete_cluster_keep_logs"),
        # Keeping logs updates the stack first, which one that failed does not take.
        ("ROLLBACK_COMPLETE", True, "delete_cluster"),
        ("UPDATE_COMPLETE", False, "delete_cluster"),
    ],
)
def test_a_cluster_is_deleted_and_awaited(status: str, keep: bool, operation: str) -> None:
    done = Run(there(status, "DELETE_IN_PROGRESS", ""), state="absent", keep_logs=keep)
    assert done.library.asked == [(operation, {"cluster_name": "bert"})]
    assert done.aws.requests("DescribeStacks")[1:] == [{"StackName": ARN}] * 2
    assert (done.result["changed"], done.result["operation"]) == (True, "delete")
    before = {"cluster": "bert", "status": status}
    assert done.result["diff"] == {"before": before if keep else {**before, "log_groups": [LOGS]}, "after": {}}
    assert done.deleted == done.result["deleted_log_groups"] == ([] if keep else [LOGS])


def test_a_deletion_that_fails_is_explained() -> None:
    done = Run(there("CREATE_COMPLETE", "DELETE_FAILED"), state="absent", keep_logs=False)
    assert str(done.error).startswith("the deletion of the cluster failed (DELETE_FAILED): HeadNode")
    assert done.deleted == []


def test_a_deletion_that_is_under_way_is_awaited() -> None:
    done = Run(there("DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"), state="absent", keep_logs=False)
    assert (done.operations, done.result["operation"], done.deleted) == ([], "none", [LOGS])
    failed = Run(there("DELETE_IN_PROGRESS", "DELETE_FAILED"), state="absent")
    assert str(failed.error).startswith("the deletion of the cluster failed (DELETE_FAILED)")


def test_an_update_that_is_under_way_is_awaited_before_the_deletion() -> None:
    done = Run(there("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_COMPLETE", ""), state="absent")
    assert done.operations == ["delete_cluster_keep_logs"]


def test_a_check_of_a_deletion_promises_the_logs_and_deletes_nothing() -> None:
    done = Run(there("CREATE_COMPLETE"), state="absent", keep_logs=False, check=True)
    assert (done.operations, done.deleted) == ([], [])
    assert (done.result["changed"], done.result["deleted_log_groups"]) == (True, [LOGS])


def test_without_waiting_logs_are_left_to_the_next_run() -> None:
    done = Run(there("CREATE_COMPLETE"), state="absent", keep_logs=False, wait=False)
    assert (done.deleted, done.result["deleted_log_groups"]) == ([], [])
    assert done.warned == ["The log groups of bert are deleted by the next run, when the cluster is gone."]
    going = Run(there("DELETE_IN_PROGRESS"), state="absent", keep_logs=False, wait=False)
    assert (going.deleted, going.result["changed"], len(going.warned)) == ([], False, 1)
    none = Run(
        there("CREATE_COMPLETE"), state="absent", keep_logs=False, wait=False, aws={"DescribeLogGroups": groups()}
    )
    assert (none.warned, none.result["diff"]["before"]["status"]) == ([], "CREATE_COMPLETE")


def test_logs_of_a_cluster_that_is_gone_are_a_change() -> None:
    done = Run(there(""), state="absent", keep_logs=False)
    assert (done.result["changed"], done.deleted, done.result["diff"]["before"]) == (
        True,
        [LOGS],
        {"log_groups": [LOGS]},
    )
    none: Item = {"DescribeLogGroups": groups()}
    again = Run(there(""), state="absent", keep_logs=False, aws=none)
    assert (again.result["changed"], again.deleted) == (False, [])
    meanwhile = {"DeleteLogGroup": ToldError("ResourceNotFoundException")}
    assert Run(there(""), state="absent", keep_logs=False, aws=meanwhile).error is None


def test_a_cluster_of_a_newer_version_names_what_can_delete_it() -> None:
    told = {"delete_cluster_keep_logs": PclusterError(400, "cluster 'bert' is incompatible with this version")}
    done = Run(there("CREATE_COMPLETE"), told, state="absent")
    assert "made by ParallelCluster 3.15.0, which the installed one cannot delete" in str(done.error)
    assert "aws-parallelcluster==3.15.0" in str(done.error)
    other = PclusterError(500, "it broke")
    assert Run(there("CREATE_COMPLETE"), {"delete_cluster_keep_logs": other}, state="absent").error is other
