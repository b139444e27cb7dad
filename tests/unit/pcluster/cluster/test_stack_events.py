"""What the events of a stack say."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import stack_events as planner


def event(name: str, status: str, reason: str = "", kind: str = "AWS::EC2::Instance") -> dict[str, str]:
    physical = "arn:stack" if kind == planner.STACK_TYPE and name == "tc" else f"p-{name}"
    return {
        "StackId": "arn:stack",
        "LogicalResourceId": name,
        "PhysicalResourceId": physical,
        "ResourceType": kind,
        "ResourceStatus": status,
        "ResourceStatusReason": reason,
    }


ROOT = planner.STACK_TYPE


def test_progress_counts_each_resource_by_its_newest_event() -> None:
    events = [
        event("HeadNode", "CREATE_IN_PROGRESS"),
        event("Role", "CREATE_COMPLETE"),
        event("Role", "CREATE_IN_PROGRESS"),
        event("tc", "CREATE_IN_PROGRESS", kind=ROOT),
    ]
    assert planner.progress(events) == (1, ["HeadNode"], "HeadNode CREATE_IN_PROGRESS")
    assert planner.progress([]) == (0, [], "no event yet")


def test_where_an_operation_begins() -> None:
    assert planner.begins(event("tc", "UPDATE_IN_PROGRESS", kind=ROOT))
    assert not planner.begins(event("tc", "UPDATE_ROLLBACK_IN_PROGRESS", kind=ROOT))
    assert not planner.begins(event("Nested", "CREATE_IN_PROGRESS", kind=ROOT))


def test_failures_leave_out_those_who_only_followed() -> None:
    events = [
        event("tc", "ROLLBACK_IN_PROGRESS", "The following resource(s) failed to create: [A].", ROOT),
        event("B", "CREATE_FAILED", "Resource creation cancelled"),
        event("A", "CREATE_FAILED", "Not enough\ncapacity."),
    ]
    assert planner.failures(events) == [
        {"resource": "A", "type": "AWS::EC2::Instance", "reason": "Not enough capacity."}
    ]
    assert planner.failure_text(planner.failures(events), "") == "A (AWS::EC2::Instance): Not enough capacity"
    assert planner.failure_text([], planner.root_reason(events)).startswith("The following")
    assert planner.failure_text([], "") == "CloudFormation gave no reason"


def test_many_failures_are_cut_short() -> None:
    failed = planner.failures([event(str(number), "CREATE_FAILED", "no") for number in range(5)])
    assert planner.failure_text(failed, "").endswith("; 2 more")


def test_log_groups_of_functions_go_by_the_stack() -> None:
    names = ["/aws/lambda/pcluster-CleanupRoute53-1-2", "/aws/lambda/pcluster-CleanupRoute53-3"]
    assert planner.function_log_groups(names, ["arn:aws:cloudformation:us-west-2:1:stack/tc/1-2"]) == names[:1]
    assert planner.function_log_groups(names, []) == []


def test_log_groups_of_a_cluster_are_not_those_of_its_namesakes() -> None:
    mine = ["/aws/parallelcluster/tc-202601010000", "/aws/parallelcluster/tc-202701010000"]
    other = ["/aws/parallelcluster/tc-2-202601010000", "/aws/parallelcluster/tc-x"]
    assert planner.log_groups_of("tc", [*mine, *other]) == mine[::-1]
