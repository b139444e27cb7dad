"""What a pod waits for, and what will never come."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.state import state_of, waiting


@pytest.mark.parametrize(
    ("message", "never"),
    [
        ('0/2 nodes are available: persistentvolumeclaim "fsx-claim" not found.', True),
        ("0/2 nodes are available: 2 Insufficient aws.amazon.com/neuron.", False),
        ("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.", False),
    ],
)
def test_a_claim_that_nobody_has_made_is_not_waited_for(message: str, never: bool) -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    pod = {"metadata": {"name": "a"}, "status": {"phase": "Pending", "conditions": [condition]}}
    assert waiting(pod, []) == (message.rstrip("."), never)


# So the kubelet says it where it had no login for a moment: of ECR, of a role that is new, of a Secret.
DENIED = (
    'failed to pull and unpack image "registry.example/a:1": pull access denied, repository does not exist or may '
    "require authorization: authorization failed: no basic auth credentials"
)


@pytest.mark.parametrize(
    ("message", "minutes", "never"),
    [
        ('failed to pull image "registry.example/a:1": registry.example/a:1: not found', 0, True),
        ("manifest unknown: Requested image not found", 0, True),
        (DENIED, 0, False),
        (DENIED, 9, False),
        (DENIED, 10, True),
        ("unexpected status from HEAD request to https://registry.example/v2/a: 403 Forbidden", 2, False),
        ("unexpected status from HEAD request to https://registry.example/v2/a: 401 Unauthorized", 10, True),
        ("dial tcp: i/o timeout", 59, False),
    ],
)
def test_a_registry_that_refuses_is_asked_for_some_minutes(message: str, minutes: int, never: bool) -> None:
    """By times of the cluster, whose clock is not this machine's."""
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-23T07:00:00Z"}
    held = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": message}}}
    status = {"phase": "Pending", "conditions": [placed], "containerStatuses": [held]}
    pod = {"metadata": {"name": "a"}, "status": status}
    event = {
        "involvedObject": {"kind": "Pod", "name": "a"},
        "type": "Normal",
        "reason": "BackOff",
        "message": "Back-off",
    }
    event["lastTimestamp"] = f"2026-11-23T07:{minutes:02}:00Z"
    assert waiting(pod, [event])[1] is never


@pytest.mark.parametrize("status", [{"running": 1}, {"retryCount": 1}, {"conditions": [{"status": "Running"}]}])
def test_a_job_of_volcano_that_ran_can_start(status: dict[str, object]) -> None:
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": "a"}, "spec": {}}
    held = {"state": {"waiting": {"reason": "InvalidImageName", "message": "a b"}}}
    metadata = {"name": "a-0", "creationTimestamp": "2026-11-23T07:00:00Z"}
    pods = [{"metadata": metadata, "status": {"phase": "Pending", "containerStatuses": [held]}}]
    phase = {"state": {"phase": "Pending"}}
    seen = state_of("a", [{**job, "status": phase}], pods, [])
    assert (seen["cannot_start"], seen["stuck"]) == (True, False)
    seen = state_of("a", [{**job, "status": {**phase, **status}}], pods, [])
    assert (seen["cannot_start"], seen["stuck"]) == (False, True)


GIVEN_UP = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


@pytest.mark.parametrize(
    ("containers", "more", "silent"),
    [
        ("True", [], True),
        ("False", [], False),
        ("False", [GIVEN_UP], True),
        ("False", [{**GIVEN_UP, "reason": "a"}], False),
    ],
)
def test_a_silent_node_is_told_when_its_event_is_gone(
    containers: str, more: list[dict[str, str]], silent: bool
) -> None:
    """The controller of nodes changes Ready alone, and the node's own word of its containers stays."""
    conditions = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": containers}, *more]
    pod = {
        "metadata": {"name": "a"},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running", "conditions": conditions},
    }
    assert waiting(pod, []) == (("its node n does not answer" if silent else ""), False)
