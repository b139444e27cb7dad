"""kubernetes_job and kubernetes_job_info in this process, and what a site says of all pods of a training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import plan, tensorboard
from ansible_collections.trainium.cluster.plugins.modules import kubernetes_job, kubernetes_job_info

from tests.contract.kubernetes.api import Cluster
from tests.in_process import ended
from tests.unit.kubernetes.definitions import SITE, completed

pytest.importorskip("kubernetes")
FILES = {"pod.sh": b"true\n"}
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(module: Any, check: bool = False, **options: Any) -> dict[str, Any]:
        given = {"kubeconfig": str(cluster.kubeconfig), **options, "_ansible_check_mode": check, "_ansible_diff": True}
        return ended(module.main, given, capsys)[0]

    return call


def test_a_training_is_submitted_seen_and_ended(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    job = completed()
    app, objects = job["app"], plan.objects(job, SITE, FILES)
    foreseen = run(kubernetes_job, True, name=app, objects=objects)
    assert (foreseen["changed"], foreseen["state"], cluster.named("jobs")) == (True, "ABSENT", [])
    values = {"token": "QT0xCg=="}
    first = run(kubernetes_job, name=app, objects=objects, secret_data=values)
    assert (first["submitted"], first["changed"], first["state"]) == (True, True, "PENDING")
    made = "".join(f"{one['kind']} {one['metadata']['name']}\n" for one in objects)
    assert first["diff"] == {"before": "ABSENT\n", "after": f"ABSENT\n{made}"}
    assert cluster.objects["api/v1/secrets", "trainium", app]["data"] == values
    again = run(kubernetes_job, name=app, objects=objects, secret_data=values)
    assert (again["changed"], again["state"]) == (False, "PENDING")
    cluster.logs[cluster.pod(f"{app}-0", {"phase": "Running"}, "n")] = "one\n"
    seen = run(kubernetes_job_info, name=app, logs=str(tmp_path / "logs"))
    assert (seen["changed"], seen["job_id"], seen["saved"]) == (False, app, [str(tmp_path / "logs" / "rank-0.log")])
    assert [one["job_id"] for one in run(kubernetes_job_info)["trainings"]] == [app]
    cluster.finish(f"{app}-1", "Failed")
    stopped = run(kubernetes_job, name=app, state="stopped")
    assert stopped["diff"] == {"before": f"Job {app}-0\n", "after": ""}
    assert run(kubernetes_job, name="bert", state="absent", owner="ada")["cancelled"] == [app]
    assert cluster.named("jobs") == []


def test_what_is_wrong_begins_with_the_module(run: Run, tmp_path: Path) -> None:
    said = run(kubernetes_job, name="a", objects=[{"kind": "Secret"}])["msg"]
    assert said.startswith("kubernetes_job: objects has no Job")
    none = tmp_path / "none"
    for module, name, more in (
        (kubernetes_job, "kubernetes_job", {"state": "absent"}),
        (kubernetes_job_info, "kubernetes_job_info", {}),
    ):
        result = run(module, name="a", kubeconfig=str(none), **more)
        assert result["msg"].startswith(f"{name}: the kubeconfig {none} cannot be used (")


def test_pods_of_a_training_have_what_the_site_says_and_those_beside_it_have_not() -> None:
    site = {**SITE, "service_account": "trainer", "priority_class": "high", "pull_secrets": ["own"]}
    site["tolerations"] = [{"key": "team", "operator": "Exists"}]
    job = completed({"tensorboard": "/fsx/tb"}, site)
    pod = plan.objects(job, site, FILES)[-1]["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["priorityClassName"]) == ("trainer", "high")
    beside = tensorboard.deployment(job, site)["spec"]["template"]["spec"]
    assert "serviceAccountName" not in beside
    assert "priorityClassName" not in beside
    for spec in (pod, beside):
        assert spec["imagePullSecrets"] == [{"name": "own"}]
        keys = [one["key"] for one in spec["tolerations"]]
        assert keys[:2] == ["aws.amazon.com/neuron", "vpc.amazonaws.com/efa"]
        assert keys[-1] == "team"
        # A node that does not answer is given up after a minute, not after five.
        lost = {one["key"]: one["tolerationSeconds"] for one in spec["tolerations"] if one.get("effect") == "NoExecute"}
        assert lost == {"node.kubernetes.io/not-ready": 60, "node.kubernetes.io/unreachable": 60}
