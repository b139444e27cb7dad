"""Whoever may run pods in the namespace of trainings is not root on the nodes: its label asks for baseline.

What that forbids is held here against all that we run there, since the apiserver of the sandbox is older than it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kubernetes.test_plan import device_plugins, jobs, objects
from tests.unit.kubernetes.test_volcano import parts

LABEL = {"pod-security.kubernetes.io/enforce": "baseline"}
Object = dict[str, Any]
# "Pod Security Standards", baseline.
HOST = ("hostNetwork", "hostPID", "hostIPC")
CONTEXT = (
    "windowsOptions",
    "seLinuxOptions",
    "seccompProfile",
    "appArmorProfile",
    "sysctls",
    "procMount",
    "capabilities",
)


def forbidden(pod: Object) -> list[str]:
    """What of a pod baseline may forbid; of a context's fields some values are allowed, and we use none."""
    found = [name for name in HOST if pod.get(name)]
    found += ["hostPath" for volume in pod.get("volumes", []) if "hostPath" in volume]
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        context = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
        found += ["privileged"] if context.get("privileged") else []
        found += [name for name in CONTEXT if context.get(name)]
        found += ["hostPort" for port in container.get("ports", []) if port.get("hostPort")]
        found += [
            name for name in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle") if name in container
        ]
    return found


def pods_of(found: list[Object]) -> list[Object]:
    templates = [job["spec"]["template"] for job in jobs(found) if "template" in job["spec"]]
    templates += [task["template"] for job in jobs(found) for task in job["spec"].get("tasks", [])]
    return [template["spec"] for template in templates]


@pytest.mark.parametrize(
    "site", [{}, {"service_account": "trainer", "pull_secrets": ["a"], "priority_class": "high", "owner": "me"}]
)
def test_what_we_run_keeps_to_the_standard(site: Object) -> None:
    definition = {"env": {"A": 1}, "compile": {"enabled": True}}
    of_kubernetes = pods_of(objects(definition, **site))
    of_torchx = [pod for each in parts(definition, **site).values() for pod in pods_of(each)]
    assert len(of_kubernetes) == 2 and len(of_torchx) > 4
    assert [forbidden(pod) for pod in of_kubernetes + of_torchx] == [[]] * len(of_kubernetes + of_torchx)


def test_the_namespace_asks_for_it_and_the_plugins_which_may_not_keep_to_it_are_elsewhere() -> None:
    found = device_plugins()
    (namespace,) = [one["metadata"] for one in found if one["kind"] == "Namespace"]
    assert (namespace["name"], namespace["labels"]) == ("trainium", LABEL)
    plugins = [one for one in found if one["kind"] == "DaemonSet"]
    assert {one["metadata"]["namespace"] for one in plugins} == {"kube-system"}
    assert all("hostPath" in forbidden(one["spec"]["template"]["spec"]) for one in plugins)
