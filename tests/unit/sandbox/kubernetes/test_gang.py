"""Volcano's stand-in: which Pods a Job has, whether they fit, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.kubernetes.inside import gang


def job(tasks: int = 2, phase: str = "", tries: int = 0, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {"aws.amazon.com/neuron": "16", "cpu": "500m", "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "metadata": {"name": "bert", "namespace": "default", "uid": "u"},
        "spec": {"tasks": [{"name": f"role1-{n}", "replicas": 1, "template": template} for n in range(tasks)], **spec},
        "status": {"state": {"phase": phase}, "retryCount": tries},
    }


def live(*phases: str) -> list[dict[str, Any]]:
    return [
        {
            "metadata": {"name": f"bert-role1-{n}-0", "labels": {"volcano.sh/task-spec": f"role1-{n}"}},
            "status": {"phase": phase},
        }
        for n, phase in enumerate(phases)
    ]


def node(neuron: str = "16", ready: str = "True", **spec: Any) -> dict[str, Any]:
    allocatable = {"aws.amazon.com/neuron": neuron, "cpu": "128", "memory": "512Gi", "pods": "58"}
    conditions = [{"type": "Ready", "status": ready}]
    metadata = {"name": f"n{neuron}{ready}", "labels": {"type": "trn1"}}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable, "conditions": conditions}}


def test_pods_have_volcanos_names_and_what_the_plugins_add() -> None:
    found = gang.pods(job(plugins={"svc": ["--publish-not-ready-addresses"], "env": []}))
    assert [pod["metadata"]["name"] for pod in found] == ["bert-role1-0-0", "bert-role1-1-0"]
    spec = found[1]["spec"]
    assert (spec["hostname"], spec["subdomain"], spec["schedulerName"]) == ("bert-role1-1-0", "bert", "volcano")
    environment = {one["name"]: one["value"] for one in spec["containers"][0]["env"]}
    assert environment["VC_ROLE1_0_HOSTS"] == "bert-role1-0-0.bert"
    assert environment["VC_TASK_INDEX"] == environment["VK_TASK_INDEX"] == "0"
    assert found[0]["metadata"]["labels"]["a"] == "b"
    service, names = gang.service(job(plugins={"svc": ["--publish-not-ready-addresses"]}))
    assert service["spec"]["publishNotReadyAddresses"]
    assert names["data"] == {"role1-0.host": "bert-role1-0-0.bert", "role1-1.host": "bert-role1-1-0.bert"}


def test_a_template_serves_for_every_pod() -> None:
    first = job(plugins={"svc": []})
    one, other = gang.pods(first)
    one["spec"]["containers"][0]["image"] = one["metadata"]["labels"]["a"] = "another"
    assert [pod["metadata"]["name"] for pod in gang.pods(first)] == ["bert-role1-0-0", "bert-role1-1-0"]
    for pod in (other, *gang.pods(first)):
        assert "another" not in (pod["spec"]["containers"][0].get("image"), pod["metadata"]["labels"]["a"])
        assert len(pod["spec"]["volumes"]) == 1


def test_all_or_none_fit() -> None:
    specs = [pod["spec"] for pod in gang.pods(job())]
    two = [node(), node("017")]
    assert gang.fit(specs, gang.free(two, []))
    assert not gang.fit([*specs, specs[0]], gang.free(two, []))
    busy = {"spec": {**specs[0], "nodeName": "n16True"}, "status": {"phase": "Running"}}
    assert not gang.fit(specs, gang.free(two, [busy]))
    assert gang.fit(specs, gang.free(two, [{**busy, "status": {"phase": "Succeeded"}}]))
    assert not gang.fit(specs, gang.free([node(), node("017", unschedulable=True)], []))
    assert not gang.fit(specs, gang.free([node(), node(ready="Unknown")], []))


RESTART = [{"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "RestartJob"}]


@pytest.mark.parametrize(
    ("phases", "more", "expected"),
    [
        (("Pending", "Pending"), {}, ("Pending", 0, False)),
        (("Running", "Pending"), {}, ("Pending", 0, False)),
        (("Running", "Running"), {}, ("Running", 0, False)),
        (("Running", "Pending"), {"minAvailable": 1}, ("Running", 0, False)),
        (("Succeeded", "Succeeded"), {"phase": "Running"}, ("Completed", 0, False)),
        (("Failed", "Running"), {"phase": "Running", "policies": RESTART}, ("Restarting", 1, True)),
        (("Failed", "Running"), {"phase": "Running", "policies": RESTART, "tries": 2}, ("Failed", 3, True)),
        (("Failed", "Failed"), {"phase": "Running"}, ("Failed", 0, False)),
        (("Running",), {"phase": "Running", "policies": RESTART}, ("Restarting", 1, True)),
        (
            ("Failed", "Running"),
            {"phase": "Running", "policies": [{"events": ["PodFailed"], "action": "AbortJob"}]},
            ("Aborted", 0, True),
        ),
    ],
)
def test_the_next_phase(phases: tuple[str, ...], more: dict[str, Any], expected: tuple[str, int, bool]) -> None:
    step = gang.step(job(**more), live(*phases))
    assert (step.phase, step.retries, step.delete) == expected


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_pod_that_was_deleted_restarts_the_job_by_its_own_tasks_policy(phase: str) -> None:
    """As TorchX writes them; also where the other pod has done its work meanwhile."""
    ours = job(phase="Running")
    ours["spec"]["tasks"][1]["policies"] = RESTART
    assert gang.step(ours, live(phase))[:3] == ("Restarting", "PodEvicted", 1)


@pytest.mark.parametrize(("text", "number"), [("500m", 0.5), ("1Gi", 2**30), ("16", 16), (3, 3), ("2k", 2000)])
def test_quantities(text: str | int, number: float) -> None:
    assert gang.quantity(text) == number
