"""kubernetes_job and kubernetes_job_info over HTTP."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, plan

from tests.contract.kubernetes.api import Cluster, RefusalError
from tests.contract.kubernetes.conftest import Run
from tests.unit.kubernetes.definitions import SITE, completed
from tests.unit.kubernetes.test_nodes import node

FILES = {"pod.sh": b"true\n"}
LOG = "".join(
    f"LOG Wed Dec 21 00:00:{step:02} 2022 - (0, {step}) step_loss : {9 - step / 10:.2f} learning_rate : 2.80e-06 "
    f"throughput : 100.00\n"
    for step in range(1, 15)
)
RUNNING = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}


def objects(**definition: Any) -> tuple[str, list[dict[str, Any]]]:
    job = completed(definition)
    return job["app"], plan.objects(job, SITE, FILES)


def plan_of(name: str = "bert", **site: Any) -> tuple[str, list[dict[str, Any]]]:
    job = completed({"name": name}, site)
    return job["app"], plan.objects(job, {**SITE, **site}, FILES)


def submitted(run: Run, **definition: Any) -> str:
    app, made = objects(**definition)
    result = run("kubernetes_job", name=app, objects=made)
    assert (result.get("msg"), result["submitted"]) == (None, True)
    return app


def pending(reason: str, message: str) -> dict[str, Any]:
    return {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


def test_a_training_is_submitted_once_and_the_second_run_writes_nothing(cluster: Cluster, run: Run) -> None:
    app, made = objects()
    foreseen = run("kubernetes_job", check=True, name=app, objects=made)
    assert (foreseen["changed"], cluster.writes()) == (True, [("POST dry", "/api/v1/namespaces")])
    first = run("kubernetes_job", name=app, objects=made)
    assert (first["changed"], first["submitted"], first["state"]) == (True, True, "PENDING")
    assert first["made"] == [f"ConfigMap {app}", f"Secret {app}", f"Service {app}", f"Job {app}-0", f"Job {app}-1"]
    assert f"Job {app}-1" in first["diff"]["after"]
    # Where nobody made the namespace before.
    assert cluster.labels["trainium"] == {"pod-security.kubernetes.io/enforce": "baseline"}
    assert cluster.named("jobs") == [f"{app}-0", f"{app}-1"]
    # Each submission has a number of its own, by which pods know the signs of their own kind.
    assert len(cluster.objects["api/v1/configmaps", "trainium", app]["data"]["submission"]) == 16
    cluster.calls.clear()
    second = run("kubernetes_job", name=app, objects=made)
    assert (second["changed"], second["submitted"], cluster.writes()) == (False, False, [])


def test_what_a_killed_run_has_left_out_is_made_by_the_next(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    number = cluster.objects["api/v1/configmaps", "trainium", app]["data"]["submission"]
    del cluster.objects["apis/batch/v1/jobs", "trainium", f"{app}-1"]
    result = run("kubernetes_job", name=app, objects=objects()[1])
    assert (result["made"], result["submitted"]) == ([f"Job {app}-1"], True)
    assert cluster.objects["api/v1/configmaps", "trainium", app]["data"]["submission"] == number


def test_progress_comes_from_the_pod_of_rank_0(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    for rank in (0, 1):
        cluster.pod(f"{app}-{rank}", RUNNING, f"node-{rank}")
    cluster.logs[f"{app}-0-a"] = "JOB starts again: it stopped in time.\n" + LOG
    seen = run("kubernetes_job_info", name=app, steps=100)
    assert (seen["state"], seen["nodes"], seen["restarts"]) == ("RUNNING", "node-0,node-1", 1)
    assert (seen["progress"]["step"], seen["progress"]["loss"], seen["progress"]["seconds_left"]) == (14, 7.6, 86)
    assert [pod["rank"] for pod in seen["pods"]] == [0, 1]


def test_logs_of_all_ranks_are_brought_at_the_end(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    app = submitted(run)
    for rank in (0, 1):
        cluster.pod(f"{app}-{rank}", {"phase": "Succeeded"}, f"node-{rank}")
        cluster.logs[f"{app}-{rank}-a"] = f"{rank}\n" * 1000
        cluster.finish(f"{app}-{rank}")
    seen = run("kubernetes_job_info", name=app, logs=str(tmp_path / "logs"))
    assert (seen["state"], seen["succeeded"], seen["ended_at"]) == ("COMPLETED", True, 1795417740)
    assert [Path(path).name for path in seen["saved"]] == ["rank-0.log", "rank-1.log"]
    assert (tmp_path / "logs/rank-1.log").read_text() == "1\n" * 1000
    assert run("kubernetes_job", name=app, objects=objects()[1])["changed"] is False


def test_one_that_failed_is_submitted_anew(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    terminated = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}
    cluster.pod(f"{app}-0", RUNNING, "node-0")
    cluster.pod(f"{app}-1", terminated, "node-1")
    # Its Job waits before it makes another.
    seen = run("kubernetes_job_info", name=app)
    assert (seen["state"], seen["ended"]) == ("PENDING", False)
    assert seen["reason"] == f"{app}-1-a failed, and is to be made anew"
    cluster.finish(f"{app}-1", "Failed", "Job has reached the specified backoff limit")
    seen = run("kubernetes_job_info", name=app)
    assert (seen["state"], seen["reason"]) == ("FAILED", "Job has reached the specified backoff limit")
    assert seen["node_exit_codes"] == [{"node": "node-1", "task": 1, "exit_code": 3}]
    assert run("kubernetes_job", name=app, objects=objects()[1], resubmit="never")["submitted"] is False
    before = cluster.job(f"{app}-0")["metadata"]["uid"]
    assert run("kubernetes_job", name=app, objects=objects()[1])["submitted"] is True
    assert cluster.job(f"{app}-0")["metadata"]["uid"] != before
    assert cluster.named("pods") == []


def test_the_scheduler_says_what_is_missing(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    sentence = "0/2 nodes are available: 2 Insufficient aws.amazon.com/neuron."
    held = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": sentence}
    cluster.pod(f"{app}-0", RUNNING, "node-0")
    cluster.pod(f"{app}-1", {"phase": "Pending", "conditions": [held]})
    seen = run("kubernetes_job_info", name=app)
    assert (seen["state"], seen["ended"]) == ("PENDING", False)
    assert seen["reason"] == f"{app}-1-a: {sentence[:-1]}"
    assert "Wait until another job ends" in seen["remedy"]


def test_a_node_that_does_not_answer_is_told_until_it_does(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    ready = {**RUNNING, "conditions": [{"type": "Ready", "status": "False"}]}
    cluster.pod(f"{app}-0", RUNNING, "node-0")
    pod = cluster.pod(f"{app}-1", ready, "node-1")
    # So is one that ends by itself.
    assert run("kubernetes_job_info", name=app)["state"] == "RUNNING"
    cluster.event("Pod", pod, "NodeNotReady", "Node is not ready")
    seen = run("kubernetes_job_info", name=app)
    assert (seen["state"], seen["ended"], seen["cannot_start"]) == ("PENDING", False, False)
    assert seen["reason"] == f"{pod}: its node node-1 does not answer"
    assert "kubectl get nodes" in seen["remedy"]
    cluster.pod(f"{app}-1", RUNNING, "node-1")
    assert run("kubernetes_job_info", name=app)["state"] == "RUNNING"


def test_nodes_and_queues_are_told_from_one_call_each_as_far_as_they_may_be_seen(cluster: Cluster, run: Run) -> None:
    for number in range(100):
        name = f"node-{number}"
        cluster.objects["api/v1/nodes", "", name] = node(name, ready="Unknown" if number == 7 else "True")
    queue = {"metadata": {"name": "trainium"}, "status": {"state": "Closed"}}
    cluster.objects["apis/scheduling.volcano.sh/v1beta1/queues", "", "trainium"] = queue
    submitted(run)
    seen = run("kubernetes_job_info")
    assert (seen["cluster_nodes"], seen["told"], len(seen["trainings"])) == ([], [], 1)
    cluster.admin = True
    cluster.calls.clear()
    plugin = {"metadata": {"name": "efa-x"}, "status": pending("CreateContainerConfigError", "has runAsNonRoot")}
    cluster.objects["api/v1/pods", "kube-system", "efa-x"] = plugin
    seen = run("kubernetes_job_info")
    assert len(cluster.calls) == len({path for _verb, path in cluster.calls}) <= 10
    assert len(seen["cluster_nodes"]) == 100
    lines = [one["line"] for one in seen["told"]]
    assert lines[0].startswith("100 trn1.32xlarge, of which 99 can take pods")
    assert lines[1:] == [
        "Nodes of Kubernetes do not answer: node-7",
        "Volcano's queue `trainium` status is `Closed`",
        "kube-system: efa-x: CreateContainerConfigError: has runAsNonRoot",
    ]
    assert all(one["remedy"] for one in seen["told"][1:])


def test_an_image_that_does_not_exist_never_starts(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    pod = cluster.pod(f"{app}-0", pending("ImagePullBackOff", 'Back-off pulling image "registry.example/bert:1"'))
    seen = run("kubernetes_job_info", name=app)
    assert (seen["cannot_start"], seen["ended"]) == (False, False)
    cluster.event("Pod", pod, "Failed", 'Failed to pull image "registry.example/bert:1": not found')
    seen = run("kubernetes_job_info", name=app)
    assert (seen["cannot_start"], seen["ended"], seen["succeeded"]) == (True, True, False)
    assert 'Failed to pull image "registry.example/bert:1": not found' in seen["reason"]
    assert "Correct image in trainium_training" in seen["remedy"]
    # The same training with another image takes its place.
    again = run("kubernetes_job", **dict(zip(("name", "objects"), objects(image="registry.example/bert:2"))))
    assert (again["submitted"], again["ended_others"]) == (True, [app])
    assert not [name for name in cluster.named("jobs") if name.startswith(app)]


def test_what_can_never_start_gives_its_nodes_back(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    cluster.pod(f"{app}-0", pending("ContainerCreating", ""), "node-0")
    assert run("kubernetes_job", name=app, state="stopped")["changed"] is False
    cluster.pod(f"{app}-1", pending("InvalidImageName", "a b"), "node-1")
    assert run("kubernetes_job", True, name=app, state="stopped")["gone"] == [f"Job {app}-0", f"Job {app}-1"]
    assert run("kubernetes_job", name=app, state="stopped")["gone"] == [f"Job {app}-0", f"Job {app}-1"]
    assert (cluster.named("jobs"), cluster.named("pods"), cluster.named("configmaps")) == ([], [], [app])
    assert run("kubernetes_job", name=app, objects=objects()[1])["submitted"] is True


GONE = 'Failed to pull image "registry.example/bert:1": not found'
RAN = [
    pytest.param(0, RUNNING, {}, id="one runs"),
    pytest.param(1, {"phase": "Failed"}, {}, id="one ran before"),
    pytest.param(1, None, {"failed": 1}, id="one ran and is gone"),
]


@pytest.mark.parametrize(("rank", "status", "counted"), RAN)
def test_what_runs_or_ran_is_not_ended_for_an_image_that_is_gone(
    cluster: Cluster, run: Run, rank: int, status: dict[str, Any] | None, counted: dict[str, Any]
) -> None:
    """A training of days whose one node was lost, and whose image has been deleted meanwhile."""
    app = submitted(run)
    if status:
        cluster.pod(f"{app}-{rank}", status, f"node-{rank}")
    cluster.job(f"{app}-1")["status"] = counted
    pod = cluster.pod(f"{app}-1", pending("ErrImagePull", GONE), "node-1", age=1)
    seen = run("kubernetes_job_info", name=app)
    assert (seen["cannot_start"], seen["ended"], seen["stuck"]) == (False, False, True)
    assert seen["reason"].startswith(f"{pod}: ErrImagePull")
    assert run("kubernetes_job", name=app, state="stopped")["gone"] == []
    # Nor by a second run of the playbook, or of another training on its compile cache.
    assert run("kubernetes_job", name=app, objects=objects()[1])["submitted"] is False
    other, made = objects(steps=7)
    assert f"job {app} is PENDING with the compile cache" in run("kubernetes_job", name=other, objects=made)["msg"]
    assert cluster.named("jobs") == [f"{app}-0", f"{app}-1"]


def test_what_a_failed_training_still_holds_is_given_back(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    for rank in (0, 1):
        cluster.pod(f"{app}-{rank}", RUNNING, f"node-{rank}")
    assert run("kubernetes_job", name=app, state="stopped")["changed"] is False
    cluster.finish(f"{app}-1", "Failed", "Job has reached the specified backoff limit")
    assert run("kubernetes_job", name=app, state="stopped")["gone"] == [f"Job {app}-0"]
    assert (cluster.named("jobs"), cluster.named("pods")) == ([f"{app}-1"], [f"{app}-1-a"])
    assert run("kubernetes_job_info", name=app)["state"] == "FAILED"
    # The next run makes all of it anew.
    assert run("kubernetes_job", name=app, objects=objects()[1])["submitted"] is True
    assert cluster.named("jobs") == [f"{app}-0", f"{app}-1"]


def test_a_missing_configuration_and_a_pending_claim_are_told(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    cluster.pod(f"{app}-0", pending("CreateContainerConfigError", 'secret "x" not found'))
    seen = run("kubernetes_job_info", name=app)
    assert (seen["reason"], seen["cannot_start"]) == (
        f'{app}-0-a: CreateContainerConfigError: secret "x" not found',
        True,
    )
    sentence = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    held = {"type": "PodScheduled", "status": "False", "message": sentence}
    cluster.pod(f"{app}-0", {"phase": "Pending", "conditions": [held]}, age=1)
    assert "training_job_claim" in run("kubernetes_job_info", name=app)["remedy"]


def test_a_quota_is_told_by_the_events_of_the_job(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    sentence = f'Error creating: pods "{app}-0-x" is forbidden: exceeded quota: small, requested: cpu=1'
    cluster.event("Job", f"{app}-0", "FailedCreate", sentence)
    seen = run("kubernetes_job_info", name=app)
    assert (seen["state"], seen["reason"]) == ("PENDING", sentence)
    assert "quota raised" in seen["remedy"]


def test_a_user_who_may_not_is_told_so_in_one_sentence(cluster: Cluster, run: Run) -> None:
    cluster.namespaces.add("trainium")
    app, made = objects()
    said = 'jobs.batch is forbidden: User "ann" cannot create resource "jobs" in API group "batch"'
    cluster.refusals["POST", "jobs"] = RefusalError(403, "Forbidden", said)
    # A user without rights of the whole cluster may not look at namespaces.
    cluster.refusals["GET", "namespaces"] = RefusalError(
        403, "Forbidden", 'User "ann" cannot get resource "namespaces"'
    )
    result = run("kubernetes_job", name=app, objects=made)
    assert result["failed"]
    assert f"Kubernetes does not take jobs: {said}; Have the role of docs/eks.md" in result["msg"]


def test_two_jobs_on_one_compile_cache_are_refused(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    other, made = objects(steps=7)
    result = run("kubernetes_job", name=other, objects=made)
    assert f"job {app} is PENDING with the compile cache 'bert'" in result["msg"]
    for rank in (0, 1):
        cluster.finish(f"{app}-{rank}")
    assert run("kubernetes_job", name=other, objects=made)["submitted"] is True


@pytest.mark.parametrize(
    ("moment", "later"), [("06:59:59", False), ("07:00:00", False), ("07:00:01", False), ("07:00:02", True)]
)
def test_of_two_jobs_that_are_submitted_at_once_the_later_goes(
    cluster: Cluster, run: Run, moment: str, later: bool
) -> None:
    """Whichever name comes first: the other may have looked already, and seen none."""
    app, made = objects()
    other, theirs = objects(steps=7)

    def somebody() -> None:
        for one in theirs:
            if one["kind"] == "Job":
                cluster._object("POST", ("apis/batch/v1/jobs", "trainium", ""), one, {}, False)
                cluster.job(one["metadata"]["name"])["metadata"]["creationTimestamp"] = f"2026-11-23T{moment}Z"

    cluster.then = somebody
    result = run("kubernetes_job", name=app, objects=made)
    kept = [name.rpartition("-")[0] for name in cluster.named("jobs")]
    if later:
        assert result["submitted"] and kept == sorted([app, app, other, other])
    else:
        assert f"job {other} is PENDING with the compile cache 'bert'" in result["msg"]
        assert kept == [other, other]


def test_all_definitions_of_a_training_are_ended(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    cluster.pod(f"{app}-0", RUNNING, "node-0")
    board = {"metadata": names.metadata("bert-tensorboard", names.labels("bert", "a", "tensorboard"), "bert")}
    cluster.objects["apis/apps/v1/deployments", "trainium", "bert-tensorboard"] = board
    foreseen = run("kubernetes_job", check=True, name="bert", state="absent")
    assert (foreseen["changed"], cluster.named("jobs")) == (True, [f"{app}-0", f"{app}-1"])
    result = run("kubernetes_job", name="bert", state="absent")
    assert (result["cancelled"], result["changed"]) == ([app], True)
    kinds = ("jobs", "pods", "configmaps", "secrets", "services", "deployments")
    assert [cluster.named(kind) for kind in kinds] == [[]] * 6
    assert run("kubernetes_job", name="bert", state="absent")["changed"] is False


def test_a_training_of_another_name_with_the_same_label_stays(cluster: Cluster, run: Run) -> None:
    app, theirs = (plan_of(name, cacheset=name.partition(".")[0]) for name in ("bert.large", "Bert_large"))
    for name, made in (app, theirs):
        assert run("kubernetes_job", name=name, objects=made)["submitted"] is True
    assert run("kubernetes_job", name="bert-large", state="absent")["changed"] is False
    assert run("kubernetes_job", name="bert.large", state="absent")["cancelled"] == [app[0]]
    assert cluster.named("jobs") == [f"{theirs[0]}-0", f"{theirs[0]}-1"]
    assert cluster.named("secrets") == [theirs[0]]


def test_a_training_of_another_owner_is_refused(cluster: Cluster, run: Run) -> None:
    app, made = plan_of(owner="ada")
    run("kubernetes_job", name=app, objects=made)
    result = run("kubernetes_job", name="bert", state="absent", owner="bob")
    assert f"Job {app}-0 belongs to ada" in result["msg"]
    assert cluster.named("jobs") == [f"{app}-0", f"{app}-1"]
    assert run("kubernetes_job", name="bert", state="absent", owner="ada")["cancelled"] == [app]


def test_another_secret_is_no_other_job(cluster: Cluster, run: Run) -> None:
    app = submitted(run)
    job = completed()
    job["env"] = {"HF_TOKEN": "hf_other"}
    made, values = plan.without_values(plan.objects(job, SITE, FILES))
    result = run("kubernetes_job", name=app, objects=made, secret_data=values)
    assert (result["made"], result["submitted"]) == ([f"Secret {app}"], False)
    stored = cluster.objects["api/v1/secrets", "trainium", app]["data"]
    assert json.loads(base64.b64decode(stored["environment.json"])) == {"HF_TOKEN": "hf_other"}
    # Neither as it is nor encoded, not even in what -vvv shows of the arguments.
    assert "hf_other" not in json.dumps(result) and stored["environment.json"] not in json.dumps(result)


def test_a_server_that_does_not_answer_is_told(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    cluster.stop()
    result = run("kubernetes_job_info", name="a")
    assert "Kubernetes does not answer at http://127.0.0.1" in result["msg"]
    assert result["transient"] is True
    result = run("kubernetes_job_info", name="a", kubeconfig=str(tmp_path / "none"))
    assert "cannot be used" in result["msg"]
