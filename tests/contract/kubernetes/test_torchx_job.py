"""A job of TorchX, from its parts to its end, over HTTP."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import volcano

from tests.contract.kubernetes.api import Cluster, RefusalError
from tests.contract.kubernetes.conftest import Run
from tests.contract.kubernetes.test_kubernetes_job import LOG, RUNNING, pending
from tests.contract.kubernetes.test_training_play import Controllers
from tests.unit.kubernetes.definitions import SITE, completed

DONE = {"phase": "Succeeded"}


def parts(**definition: Any) -> dict[str, list[dict[str, Any]]]:
    site = {**SITE, "queue": "trainium"}
    return volcano.parts(completed({"compile": {"enabled": True}, **definition}, site, "torchx"), site, {"pod.sh": b""})


def submit(run: Run, objects: list[dict[str, Any]], **arguments: Any) -> dict[str, Any]:
    return run("kubernetes_job", name=objects[-1]["metadata"]["name"], objects=objects, **arguments)


def test_a_job_of_volcano_is_followed_by_rank_0(cluster: Cluster, run: Run) -> None:
    (job,) = parts()["train"]
    name = job["metadata"]["name"]
    assert submit(run, [job])["submitted"] is True
    assert submit(run, [job])["changed"] is False
    waits = run("kubernetes_job_info", name=name)
    assert (waits["state"], waits["reason"]) == ("PENDING", "its pods are not made yet")
    cluster.event("PodGroup", f"{name}-0123", "Unschedulable", "2/2 tasks in gang unschedulable: 2 Insufficient neuron")
    waits = run("kubernetes_job_info", name=name)
    assert "2/2 tasks in gang unschedulable" in waits["reason"]
    assert "trainium_node_count" in waits["remedy"]
    cluster.volcano(name, "Running", RUNNING, retryCount=1)
    cluster.logs[f"{name}-role1-0-0"] = LOG.replace("LOG", "[default0]:LOG")
    seen = run("kubernetes_job_info", name=name, steps=28)
    assert (seen["state"], seen["nodes"], seen["restarts"]) == ("RUNNING", "node-0,node-1", 1)
    assert (seen["progress"]["step"], seen["progress"]["seconds_left"]) == (14, 14)
    cluster.volcano(name, "Completed", DONE)
    seen = run("kubernetes_job_info", name=name)
    assert (seen["succeeded"], seen["ended_at"]) == (True, 1795417740)


def test_a_compilation_counts_where_every_rank_says_so(cluster: Cluster, run: Run) -> None:
    (job,) = parts()["compile"]
    name = job["metadata"]["name"]
    submit(run, [job])
    cluster.volcano(name, "Completed", DONE)
    cluster.logs = {f"{name}-role1-{rank}-0": f"Total failed compilations: {rank}" for rank in (0, 1)}
    seen = run("kubernetes_job_info", name=name, success="Total failed compilations: 0")
    assert (seen["ended"], seen["succeeded"]) == (True, False)
    assert "the log of rank 1 has nothing like 'Total failed compilations: 0'" in seen["reason"]
    # So it is compiled anew.
    again = submit(run, [job], success="Total failed compilations: 0")
    assert (again["submitted"], "status" in cluster.job(name)) == (True, False)
    cluster.volcano(name, "Completed", DONE)
    cluster.logs = {f"{name}-role1-{rank}-0": "Total failed compilations: 0" for rank in (0, 1)}
    assert submit(run, [job], success="Total failed compilations: 0")["changed"] is False


def test_a_second_job_on_a_cacheset_is_refused_whoever_has_submitted_the_first(cluster: Cluster, run: Run) -> None:
    (theirs,) = parts(name="bert")["train"]
    # As torchx run does it, without our labels.
    theirs["metadata"] = {"name": "someone-x7f"}
    cluster.namespaces.add("trainium")
    cluster.route("POST", "/apis/batch.volcano.sh/v1alpha1/namespaces/trainium/jobs", theirs)
    result = submit(run, parts()["compile"])
    assert "job someone-x7f is PENDING with the compile cache 'bert'" in result["msg"]


def test_what_others_have_submitted_makes_no_room_though_it_can_never_start(cluster: Cluster, run: Run) -> None:
    (theirs,) = parts(name="bert")["train"]
    theirs["metadata"] = {"name": "someone-x7f"}
    cluster.namespaces.add("trainium")
    cluster.route("POST", "/apis/batch.volcano.sh/v1alpha1/namespaces/trainium/jobs", theirs)
    cluster.volcano("someone-x7f", "Pending", pending("InvalidImageName", "a b"))
    result = submit(run, parts()["compile"])
    assert "job someone-x7f is PENDING with the compile cache 'bert'" in result["msg"]
    assert cluster.named("jobs") == ["someone-x7f"]


def test_secret_values_leave_the_shared_storage_before_the_job_is_gone(cluster: Cluster, run: Run) -> None:
    made = parts(env={"HF_TOKEN": "hf_x"})
    submit(run, made["stage"])
    cluster.calls.clear()
    controllers = Controllers(cluster)
    controllers.start()
    result = run("kubernetes_job", name="bert", state="absent")
    controllers.stopped.set()
    controllers.join()
    assert (result.get("warnings") or [], cluster.named("jobs"), cluster.named("secrets")) == ([], [], [])
    # Ansible warns of modules that give warnings as a result.
    assert not result.get("deprecations")
    jobs = [(verb, path.rpartition("/")[2]) for verb, path in cluster.writes() if "/jobs" in path]
    stage, cleaning = (made[part][-1]["metadata"]["name"] for part in ("stage", "clean"))
    assert jobs == [("POST", "jobs"), ("DELETE", cleaning), ("DELETE", stage)]


def test_a_closed_queue_and_an_admission_that_is_not_ready_are_told(cluster: Cluster, run: Run) -> None:
    said = "admission webhook denied the request: can only submit job to queue with state `Open`, "
    cluster.refusals["POST", "jobs"] = RefusalError(400, "BadRequest", said + "queue `trainium` status is `Closed`;")
    assert "status is `Closed`; Open it (vcctl queue operate" in submit(run, parts()["train"])["msg"]
    said = 'Internal error occurred: failed calling webhook "mutatejob.volcano.sh": connection refused'
    cluster.refusals["POST", "jobs"] = RefusalError(500, "InternalError", said)
    result = submit(run, parts()["train"])
    # It is asked again by the action.
    assert ("volcano-admission-init" in result["msg"], result["transient"]) == (True, True)


def test_a_cluster_without_volcano_says_so(cluster: Cluster, run: Run) -> None:
    cluster.has_volcano = False
    assert "could not find the requested resource" in submit(run, parts()["train"])["msg"]
