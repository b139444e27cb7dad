# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods of device plugins, storage drivers and Volcano that do not run, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import state as states

Object = Mapping[str, Any]
# Where their pods are; of most users nobody may look there.
NAMESPACES = ("kube-system", "volcano-system")
_OWNERS = ("DaemonSet", "ReplicaSet", "Job")


def _owner(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name") or pod["metadata"]["name"])


def _trouble(pod: Object, events: Sequence[Object]) -> str:
    """Why a pod does not run; '' where it does, or has just begun to start."""
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    found = [one.get("state") or {} for one in containers]
    if status.get("phase") == "Failed":
        codes = [str(one["terminated"].get("exitCode")) for one in found if one.get("terminated")]
        return f"failed with code {', '.join(codes)}" if codes else "failed with code unknown"
    if status.get("phase") == "Running":
        waits = [one["waiting"] for one in found if (one.get("waiting") or {}).get("reason") == "CrashLoopBackOff"]
        return f"CrashLoopBackOff: {states.sentence(waits[0].get('message'))}" if waits else ""
    return states.waiting_for(pod, events)


def pod_lines(namespace: str, pods: Sequence[Object], events: Sequence[Object]) -> list[str]:
    """One line for each owner whose pods do not run, however many these are."""
    owners: dict[str, list[Object]] = {}
    for pod in pods:
        owners.setdefault(_owner(pod), []).append(pod)
    lines = []
    for own in owners.values():
        ended = any((pod.get("status") or {}).get("phase") == "Succeeded" for pod in own)
        troubles = [(pod, _trouble(pod, events)) for pod in own]
        troubles = [] if ended else [one for one in troubles if one[1]]
        if troubles:
            more = f" and {len(troubles) - 1} more" if len(troubles) > 1 else ""
            lines.append(f"{namespace}: {troubles[0][0]['metadata']['name']}{more}: {troubles[0][1]}")
    for event in events:
        subject = event["involvedObject"]
        if event.get("reason") == "FailedCreate" and subject.get("kind") in _OWNERS and subject["name"] not in owners:
            why = states.sentence(event.get("message"))
            lines.append(f"{namespace}: {subject['kind']} {subject['name']} cannot make its pods: {why}")
    return [*dict.fromkeys(lines)]
