"""What is told of add-ons that do not run."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.nodes import pod_lines


def pod(name: str, owner: str, phase: str = "Pending", **container: Any) -> dict[str, Any]:
    metadata = {"name": name, "ownerReferences": [{"name": owner}], "creationTimestamp": "2026-11-23T07:00:00Z"}
    return {"metadata": metadata, "status": {"phase": phase, "containerStatuses": [container] if container else []}}


def held(reason: str, message: str = "") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def event(kind: str, name: str, reason: str, message: str) -> dict[str, Any]:
    return {"involvedObject": {"kind": kind, "name": name}, "type": "Warning", "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("pods", "events", "lines"),
    [
        ([pod("efa-a", "efa", "Running")], [], []),
        # What just starts is no fault.
        ([pod("efa-a", "efa"), pod("efa-b", "efa", **held("ContainerCreating"))], [], []),
        ([pod("efa-a", "efa")], [event("Pod", "efa-a", "Pulling", "Pulling image") | {"type": "Normal"}], []),
        (
            [pod(f"efa-{one}", "efa", **held("CreateContainerConfigError", "has runAsNonRoot")) for one in "abc"],
            [],
            ["kube-system: efa-a and 2 more: CreateContainerConfigError: has runAsNonRoot"],
        ),
        (
            [pod("csi-a", "csi", "Running", **held("CrashLoopBackOff", "back-off 5m0s"))],
            [],
            ["kube-system: csi-a: CrashLoopBackOff: back-off 5m0s"],
        ),
        (
            [pod("init-a", "init", "Failed", state={"terminated": {"exitCode": 3}})],
            [],
            ["kube-system: init-a: failed with code 3"],
        ),
        # Its Job has made another.
        ([pod("init-a", "init", "Failed"), pod("init-b", "init", "Succeeded")], [], []),
        (
            [pod("csi-a", "csi")],
            [event("Pod", "csi-a", "FailedMount", "MountVolume.SetUp failed.")],
            ["kube-system: csi-a: MountVolume.SetUp failed"],
        ),
        (
            [],
            [event("DaemonSet", "efa", "FailedCreate", "exceeded quota: small")],
            ["kube-system: DaemonSet efa cannot make its pods: exceeded quota: small"],
        ),
        ([pod("efa-a", "efa", "Running")], [event("DaemonSet", "efa", "FailedCreate", "exceeded quota: small")], []),
    ],
)
def test_each_owner_is_told_once(pods: list[Any], events: list[Any], lines: list[str]) -> None:
    assert pod_lines("kube-system", pods, events) == lines
