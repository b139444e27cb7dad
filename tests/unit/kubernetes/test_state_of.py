"""One state of a training by what the API server says of its Jobs, pods and events."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, state

Object = dict[str, Any]


def job(name: str = "a-0", /, **status: Any) -> Object:
    return {"kind": "Job", "metadata": {"name": name}, "spec": {}, "status": status}


def ended(kind: str, **more: Any) -> Object:
    return {"conditions": [{"type": kind, "status": "True", **more}]}


def volcano(phase: str = "", **more: Any) -> Object:
    status = {"state": {"phase": phase}} if phase else {}
    return {"apiVersion": state.VOLCANO, "kind": "Job", "metadata": {"name": "a"}, "spec": {}, "status": status, **more}


def pod(rank: int = 0, phase: str = "Running", node: str = "", age: int = 0, **status: Any) -> Object:
    return {
        "metadata": {
            "name": f"a-{rank}-{age}",
            "labels": {names.RANK: str(rank)},
            "creationTimestamp": f"2026-11-23T07:0{age}:00Z",
        },
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, **status},
    }


def waits(reason: str, message: str = "", init: bool = False) -> Object:
    held = [{"state": {"waiting": {"reason": reason, "message": message}}}]
    return {"initContainerStatuses" if init else "containerStatuses": held}


def event(kind: str, name: str, message: str, kind_of: str = "Warning", reason: str = "x", at: int = 0) -> Object:
    return {
        "involvedObject": {"kind": kind, "name": name},
        "type": kind_of,
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-11-23T07:0{at}:00Z",
    }


@pytest.mark.parametrize(
    ("jobs", "pods", "count", "phase"),
    [
        ([], [], 0, "ABSENT"),
        ([job()], [], 1, "PENDING"),
        ([job()], [pod()], 1, "RUNNING"),
        ([job(), job("a-1")], [pod(), pod(1, "Succeeded")], 2, "RUNNING"),
        ([job(), job("a-1")], [pod(), pod(1, "Pending")], 2, "PENDING"),
        ([job()], [pod()], 2, "PENDING"),
        ([job(**ended("Complete"))], [], 1, "COMPLETED"),
        # A submission that was killed has not made all.
        ([job(**ended("Complete"))], [], 2, "PENDING"),
        ([job(**ended("Complete")), job("a-1", **ended("Failed"))], [], 2, "FAILED"),
        ([job(conditions=[{"type": "Failed", "status": "False"}])], [], 1, "PENDING"),
        # JobPhase of Volcano's API.
        ([volcano()], [], 1, "PENDING"),
        ([volcano("Inqueue")], [], 1, "PENDING"),
        ([volcano("Running")], [], 1, "RUNNING"),
        ([volcano("Restarting")], [], 1, "RUNNING"),
        ([volcano("Completing")], [], 1, "RUNNING"),
        ([volcano("Completed")], [], 1, "COMPLETED"),
        ([volcano("Aborting")], [], 1, "CANCELLED"),
        ([volcano("Aborted")], [], 1, "CANCELLED"),
        ([volcano("Terminating")], [], 1, "FAILED"),
        ([volcano("Terminated")], [], 1, "FAILED"),
        ([volcano("Failed")], [], 1, "FAILED"),
        ([volcano("New")], [], 1, "PENDING"),
    ],
)
def test_the_phase_of_all_parts(jobs: list[Object], pods: list[Object], count: int, phase: str) -> None:
    assert state.phase_of(jobs, pods, count) == phase


def test_the_rank_is_known_by_our_label_or_torchx_s() -> None:
    assert state.rank_of(pod(3)) == 3
    assert state.rank_of({"metadata": {"labels": {"torchx.pytorch.org/replica-id": "2"}}}) == 2
    assert state.rank_of({"metadata": {"labels": {names.RANK: "x"}}}) == 0
    assert state.rank_of({"metadata": {}}) == 0


def test_the_newest_pod_of_each_rank_counts() -> None:
    pods = [pod(1, age=1), pod(0, age=2), pod(0, age=1), pod(1, age=1)]
    assert [one["metadata"]["name"] for one in state.newest(pods)] == ["a-0-2", "a-1-1"]
    assert state.newest(pods)[1] is pods[3]


@pytest.mark.parametrize(
    ("held", "events", "reason", "never"),
    [
        ({"phase": "Succeeded"}, [], "", False),
        ({"phase": "Failed"}, [event("Pod", "a-0-0", "x")], "", False),
        ({}, [], "it waits for the scheduler", False),
        ({"containerStatuses": [{"state": {}}]}, [], "its container is made", False),
        (waits("ContainerCreating"), [], "its container is made", False),
        (waits("PodInitializing"), [], "its container is made", False),
        (waits("InvalidImageName", "a  b."), [], "InvalidImageName: a b", True),
        (waits("CreateContainerConfigError", "no key", init=True), [], "CreateContainerConfigError: no key", True),
        (waits("CrashLoopBackOff", "back-off"), [], "CrashLoopBackOff: back-off", False),
        (waits("ErrImagePull", "x: not found"), [], "ErrImagePull: x: not found", True),
        (waits("ImagePullBackOff", "Back-off"), [], "ImagePullBackOff: Back-off", False),
        (
            waits("ImagePullBackOff", "Back-off"),
            [event("Pod", "a-0-0", "manifest unknown", reason="Failed")],
            "ImagePullBackOff: manifest unknown",
            True,
        ),
        # Of another pod, and of another kind with its name.
        (
            waits("ImagePullBackOff", "Back-off"),
            [event("Pod", "b", "not found", reason="Failed"), event("Job", "a-0-0", "not found", reason="Failed")],
            "ImagePullBackOff: Back-off",
            False,
        ),
        ({}, [event("Pod", "a-0-0", "FailedMount it is.")], "FailedMount it is", False),
        ({}, [event("Pod", "a-0-0", "Pulling image", "Normal", "Pulling")], "Pulling image", False),
        ({}, [event("Pod", "a-0-0", "Scheduled", "Normal", "Scheduled")], "it waits for the scheduler", False),
        (
            {},
            [event("Pod", "a-0-0", "old", at=1), event("Pod", "a-0-0", "Pulled", "Normal", "Pulled", at=2)],
            "it waits for the scheduler",
            False,
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "False"}]}, [], "it waits for the scheduler", False),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, [], "it waits for the scheduler", False),
    ],
)
def test_what_a_pod_waits_for(held: Object, events: list[Object], reason: str, never: bool) -> None:
    assert state.waiting(pod(**{"phase": "Pending", **held}), events) == (reason, never)


def test_of_a_pod_that_waits_for_its_turn_nothing_is_told() -> None:
    assert state.waiting_for(pod(0, "Pending"), []) == ""
    assert state.waiting_for(pod(0, "Pending", **waits("ErrImagePull", "x")), []) == "ErrImagePull: x"
    assert state.waiting_for(pod(0, "Pending"), [event("Pod", "a-0-0", "Pulling", "Normal", "Pulling")]) == ""


@pytest.mark.parametrize(
    ("jobs", "pods", "has"),
    [
        ([job()], [], False),
        ([job(), {"metadata": {}}], [pod(0, "Pending"), {"status": None}], False),
        ([job()], [pod(0, "Unknown")], True),
        *(
            ([{**job(), "status": {name: 1}}], [], True)
            for name in ("running", "succeeded", "failed", "terminating", "retryCount")
        ),
        ([job(failed=0)], [], False),
        ([volcano(status={"conditions": [{"status": "Running"}]})], [], True),
        ([volcano(status={"conditions": [{"status": "Pending"}]})], [], False),
    ],
)
def test_whether_a_training_ever_ran(jobs: list[Object], pods: list[Object], has: bool) -> None:
    assert state.has_run(jobs, pods) is has


@pytest.mark.parametrize(
    ("jobs", "events", "reason"),
    [
        ([job()], [], "its pods are not made yet"),
        ([job()], [event("Job", "a-0", "exceeded quota.")], "exceeded quota"),
        ([job()], [event("Job", "a-0", "made", "Normal")], "its pods are not made yet"),
        ([job()], [event("Job", "a-1", "exceeded quota")], "its pods are not made yet"),
        ([volcano()], [event("PodGroup", "a", "no queue")], "no queue"),
        ([volcano()], [event("PodGroup", "a-77", "not enough")], "not enough"),
        ([volcano()], [event("Pod", "a-77", "not enough")], "its pods are not made yet"),
        ([volcano(status={"state": {"phase": "Pending", "message": "is closed."}})], [], "is closed"),
    ],
)
def test_why_there_are_no_pods(jobs: list[Object], events: list[Object], reason: str) -> None:
    assert state.state_of("a", jobs, [], events)["reason"] == reason


def test_of_several_pods_what_never_comes_is_told_first() -> None:
    pods = [pod(0, "Pending"), pod(1, "Pending", **waits("InvalidImageName", "x"))]
    seen = state.state_of("a", [job(), job("a-1")], pods, [])
    assert seen["reason"] == "a-1-0: InvalidImageName: x, and 1 more"
    assert (seen["cannot_start"], seen["stuck"], seen["ended"]) == (True, False, True)
    # What others have done is not thrown away.
    seen = state.state_of("a", [job(), job("a-1")], [pod(), pods[1]], [])
    assert (seen["cannot_start"], seen["stuck"], seen["ended"], seen["state"]) == (False, True, False, "PENDING")
    assert seen["reason"] == "a-1-0: InvalidImageName: x"


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([pod(0), pod(1, "Failed")], "a-1-0 failed, and is to be made anew"),
        ([pod(0)], "not all of its pods are made yet"),
    ],
)
def test_why_it_waits_though_no_pod_does(pods: list[Object], reason: str) -> None:
    seen = state.state_of("a", [job(), job("a-1")], pods, [])
    assert (seen["state"], seen["reason"], seen["nodes"]) == ("PENDING", reason, "")


def test_a_job_that_volcano_calls_running_may_be_pending() -> None:
    spec = {"tasks": [{"replicas": 2, "template": {"spec": {"containers": []}}}]}
    pods = [pod(0, node="n-0"), pod(1, "Pending", **waits("CrashLoopBackOff", "x"))]
    seen = state.state_of("a", [volcano("Running", spec=spec)], pods, [])
    assert (seen["state"], seen["node_count"], seen["batch_host"]) == ("PENDING", 2, "n-0")


def test_a_training_that_has_ended() -> None:
    done = {"state": {"terminated": {"exitCode": 7}}}
    pods = [
        pod(0, "Failed", "n-0", containerStatuses=[done], startTime="2026-11-23T07:00:10Z"),
        pod(1, "Failed", containerStatuses=[done, {"state": {"terminated": {"exitCode": 0}}}, {"state": {}}]),
    ]
    failed = ended("Failed", message="Job has reached the limit. ", lastTransitionTime="2026-11-23T07:01:00Z")
    jobs = [job(completionTime="2026-11-23T07:00:30Z"), job("a-1", **failed)]
    log = "JOB starts again: one.\nJOB starts again: two.\nDATASET 1 of 2\nDATASET 2 of 2\n"
    seen = state.state_of("a", jobs, pods, [], log)
    assert (seen["state"], seen["ended"], seen["succeeded"]) == ("FAILED", True, False)
    assert seen["reason"] == "Job has reached the limit"
    assert seen["node_exit_codes"] == [
        {"node": "n-0", "task": 0, "exit_code": 7},
        {"node": "a-1-0", "task": 1, "exit_code": 7},
    ]
    assert (seen["restarts"], seen["requeue_reason"], seen["note"]) == (2, "two", "2 of 2")
    assert seen["ended_at"] - seen["started_at"] == 50
    assert (seen["job_id"], seen["launcher"], seen["node_count"]) == ("a", "kubernetes", 2)
    assert seen["pods"] == [
        {"name": "a-0-0", "rank": 0, "node": "n-0", "phase": "Failed"},
        {"name": "a-1-0", "rank": 1, "node": "", "phase": "Failed"},
    ]


def test_a_training_that_runs_has_no_end_and_no_codes() -> None:
    done = {"state": {"terminated": {"exitCode": 7}}}
    seen = state.state_of("a", [job()], [pod(node="n", containerStatuses=[done])], [])
    assert (seen["state"], seen["ended_at"], seen["node_exit_codes"], seen["nodes"]) == ("RUNNING", None, [], "n")
    assert (seen["reason"], seen["remedy"], seen["restarts"], seen["note"]) == ("", "", 0, "")
    assert seen["started_at"] is None


def test_volcano_counts_its_restarts_and_says_when_it_ended() -> None:
    status = {"state": {"phase": "Aborted", "lastTransitionTime": "1970-01-01T00:01:00Z", "message": "by hand."}}
    seen = state.state_of("a", [volcano(status={**status, "retryCount": 2})], [], [])
    assert (seen["state"], seen["restarts"], seen["ended_at"], seen["reason"]) == ("CANCELLED", 2, 60, "by hand")


def test_the_cache_of_whoever_has_submitted() -> None:
    flags = [{"name": "X"}, {"name": "Y", "value": "--lnc=2 --cache_dir=/fsx/neuron_cache/big-1_0 --x"}]
    task = {"template": {"spec": {"containers": [{}, {"env": flags}]}}}
    assert state.cacheset_of(volcano(spec={"tasks": [task]})) == "big-1"
    assert state.cacheset_of(volcano(spec={})) == ""
    plain = {**job(), "spec": {"tasks": [task]}}
    assert state.cacheset_of(plain) == ""
    plain["metadata"]["labels"] = {names.CACHESET: "own"}
    assert state.cacheset_of(plain) == "own"


def test_what_is_warned_of_is_told_once_the_newest_last() -> None:
    events = [
        event("Pod", "b", "two.", at=3),
        event("Pod", "a", "one", at=1),
        event("Pod", "a", "one", at=2),
        event("Pod", "c", "fine", "Normal", at=4),
    ]
    assert state.warnings(events) == [
        {"time": "2026-11-23T07:02:00Z", "message": "Pod a: x: one"},
        {"time": "2026-11-23T07:03:00Z", "message": "Pod b: x: two"},
    ]


def test_where_all_ranks_said_it_nothing_changes() -> None:
    assert state.without_success([], "x") == {}
