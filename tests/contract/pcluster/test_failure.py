"""A head node that fails: the stack stays for the search for the cause, and the real pcluster names it."""

from __future__ import annotations

from typing import Any

REASON = "Failed to run OnNodeConfigured script s3://scripts/node.sh, return code: 1."


def test_the_reason_of_a_failed_head_node_is_told(site: Any) -> None:
    site.api.control("POST", "waiting", {"mode": "fail", "reason": REASON})
    site.create("demo", "--rollback-on-failure", "false")
    identity = site.wait("demo", "CREATE_FAILED")["StackId"]
    shown = site.pcluster("describe-cluster", "--cluster-name", "demo")
    (failure,) = shown["failures"]
    assert (shown["clusterStatus"], failure["failureCode"]) == ("CREATE_FAILED", "OnNodeConfiguredFailure")
    shown = site.pcluster("get-cluster-stack-events", "--cluster-name", "demo")
    failed = [event for event in shown["events"] if event["resourceStatus"] == "CREATE_FAILED"]
    assert any(REASON in event["resourceStatusReason"] for event in failed)
    assert {event["resourceType"].rsplit("::", 1)[-1] for event in failed} == {"Stack", "WaitCondition"}
    site.pcluster("delete-cluster", "--cluster-name", "demo")
    site.wait(identity, "DELETE_COMPLETE")
    # They are kept where the configuration says nothing.
    assert set(site.left()) == {"log groups"}
