"""Trainings over an API server in memory: what is made, followed, refused and ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, plan, run
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.calls import Api, KubernetesError

from tests.contract.kubernetes.api import Cluster, RefusalError
from tests.unit.kubernetes.definitions import SITE, completed

pytest.importorskip("kubernetes")
FILES = {"pod.sh": b"true\n"}
RUNNING = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
Made = tuple[str, list[dict[str, Any]]]


def objects(site: dict[str, Any] | None = None, **definition: Any) -> Made:
    job = completed(definition, site)
    return job["app"], plan.objects(job, {**SITE, **(site or {})}, FILES)


def submit(api: Api, made: Made, resubmit: str = "failed", check: bool = False) -> dict[str, Any]:
    return run.present(api, made[0], made[1], resubmit, check)


def held(reason: str, message: str = "") -> dict[str, Any]:
    return {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


SHARED = {"cacheset": "shared"}


@pytest.fixture
def bert(api: Api) -> Made:
    made = objects(SHARED)
    assert submit(api, made)["submitted"]
    return made


def test_without_a_job_there_is_nothing_to_submit(api: Api) -> None:
    with pytest.raises(ValueError, match="objects has no Job"):
        run.present(api, "a", [], "failed", False)


@pytest.mark.parametrize(
    ("ended", "resubmit", "submitted"),
    [
        ("Complete", "failed", False),
        ("Complete", "never", False),
        ("Complete", "always", True),
        ("Failed", "failed", True),
        ("Failed", "never", False),
        ("Failed", "always", True),
        ("", "always", False),
    ],
)
def test_what_is_submitted_again(
    cluster: Cluster, api: Api, bert: Made, ended: str, resubmit: str, submitted: bool
) -> None:
    for rank in (0, 1):
        if ended:
            cluster.finish(f"{bert[0]}-{rank}", ended)
    done = submit(api, bert, resubmit)
    assert (done["submitted"], done["changed"]) == (submitted, submitted)
    if not submitted:
        assert done["made"] == []
        assert done["ended_others"] == []


def test_where_there_is_no_namespace_all_is_foreseen(cluster: Cluster, api: Api) -> None:
    cluster.namespaces.discard("trainium")
    made = objects()
    done = submit(api, made, check=True)
    assert done["submitted"]
    assert done["made"] == [f"{one['kind']} {one['metadata']['name']}" for one in made[1]]
    assert "trainium" not in cluster.namespaces


def test_who_may_not_look_for_the_namespace_has_one(cluster: Cluster, api: Api) -> None:
    cluster.refusals["GET", "namespaces"] = RefusalError(403, "Forbidden", "may not")
    assert submit(api, objects())["submitted"]
    cluster.refusals["GET", "namespaces"] = RefusalError(404, "NotFound", "no")
    cluster.refusals["POST", "namespaces"] = RefusalError(403, "Forbidden", "may not")
    with pytest.raises(KubernetesError):
        submit(api, objects(name="other"))


def test_a_second_job_on_a_cache_is_refused_while_the_first_goes_on(cluster: Cluster, api: Api, bert: Made) -> None:
    other = objects(SHARED, name="other")
    with pytest.raises(TrainiumError, match=f"^job {bert[0]} is PENDING with the compile cache 'shared'"):
        submit(api, other)
    for rank in (0, 1):
        cluster.finish(f"{bert[0]}-{rank}")
    assert submit(api, other)["submitted"]


def test_one_that_can_never_start_makes_room(cluster: Cluster, api: Api, bert: Made) -> None:
    cluster.pod(f"{bert[0]}-0", held("InvalidImageName"))
    done = submit(api, objects(SHARED, name="other"), check=True)
    assert done["ended_others"] == [bert[0]]
    assert len(cluster.named("jobs")) == 2
    assert submit(api, objects(SHARED, name="other"))["ended_others"] == [bert[0]]
    assert not [name for name in cluster.named("jobs") if name.startswith(bert[0])]


def test_one_of_somebody_else_s_makes_no_room(cluster: Cluster, api: Api, bert: Made) -> None:
    cluster.pod(f"{bert[0]}-0", held("InvalidImageName"))
    del cluster.job(f"{bert[0]}-1")["metadata"]["labels"][names.MANAGED_BY]
    with pytest.raises(TrainiumError, match="which two jobs at once would spoil"):
        submit(api, objects(SHARED, name="other"))


def test_of_two_that_are_submitted_at_once_the_later_goes(cluster: Cluster, api: Api) -> None:
    """Neither has seen the other before."""
    first, second = objects(SHARED), objects(SHARED, name="other")

    def meanwhile() -> None:
        for one in first[1]:
            if one["kind"] == "Job":
                made = {**one, "metadata": {**one["metadata"], "creationTimestamp": "2026-11-23T06:00:00Z"}}
                cluster.objects["apis/batch/v1/jobs", "trainium", one["metadata"]["name"]] = made

    cluster.then = meanwhile
    with pytest.raises(TrainiumError, match=f"^job {first[0]} is PENDING with the compile cache 'shared'"):
        submit(api, second)
    assert cluster.named("jobs") == [f"{first[0]}-0", f"{first[0]}-1"]


@pytest.mark.parametrize(("one", "other", "same"), [("a", "a-c", True), ("a-s", "a-c", True), ("a", "b", False)])
def test_parts_of_one_training_follow_each_other(one: str, other: str, same: bool) -> None:
    assert run._same(one, other) is same


def test_a_pod_that_was_pending_has_no_log(cluster: Cluster, api: Api, bert: Made) -> None:
    cluster.pod(f"{bert[0]}-0", held("ContainerCreating"))
    cluster.calls.clear()
    run.look(api, bert[0])
    assert not [path for _verb, path in cluster.calls if path.endswith("/log")]
    name = cluster.pod(f"{bert[0]}-0", RUNNING, "n", 1)
    cluster.logs[name] = "JOB starts again: it stopped.\n"
    assert run.look(api, bert[0])["requeue_reason"] == "it stopped"


def test_each_rank_has_to_have_said_it(cluster: Cluster, api: Api, bert: Made) -> None:
    for rank in (0, 1):
        name = cluster.pod(f"{bert[0]}-{rank}", {"phase": "Succeeded"}, "n")
        cluster.logs[name] = "compiled 7\n" if rank == 0 else "nothing\n"
        cluster.finish(f"{bert[0]}-{rank}")
    assert run.look(api, bert[0])["succeeded"]
    seen = run.look(api, bert[0], success="compiled [0-9]")
    assert (seen["state"], seen["succeeded"]) == ("FAILED", False)
    assert seen["reason"] == "its code was 0, but the log of rank 1 has nothing like 'compiled [0-9]'"
    assert run.look(api, bert[0], success="i")["succeeded"]


def test_all_trainings_are_told_the_newest_first(cluster: Cluster, api: Api, bert: Made) -> None:
    other = objects(name="other")
    for rank in (0, 1):
        cluster.finish(f"{bert[0]}-{rank}")
    submit(api, other)
    cluster.job(f"{other[0]}-1")["metadata"]["creationTimestamp"] = "2026-11-23T08:00:00Z"
    cluster.logs[cluster.pod(f"{other[0]}-0", RUNNING, "n")] = "JOB starts again: it stopped.\n"
    cluster.pod(f"{other[0]}-1", RUNNING, "n")
    cluster.event("Pod", "x", "Failed", "it failed")
    told = run.look_at_all(api)
    assert [one["job_id"] for one in told["trainings"]] == [other[0], bert[0]]
    assert [one["state"] for one in told["trainings"]] == ["RUNNING", "COMPLETED"]
    assert told["trainings"][0]["requeue_reason"] == "it stopped"
    assert told["trainings"][0]["made_at"] - told["trainings"][1]["made_at"] == 3600
    assert [one["message"] for one in told["warned"]] == ["Pod x: Failed: it failed"]
    assert told["cluster_nodes"] == []


def test_logs_are_saved_by_rank(cluster: Cluster, api: Api, bert: Made, tmp_path: Path) -> None:
    for rank in (0, 1):
        cluster.logs[cluster.pod(f"{bert[0]}-{rank}", RUNNING, "n")] = f"I am {rank}\n"
    folder = tmp_path / "a" / "logs"
    assert run.save_logs(api, bert[0], str(folder), False) == [str(folder / "rank-0.log")]
    saved = run.save_logs(api, bert[0], str(folder), True)
    assert saved == [str(folder / "rank-0.log"), str(folder / "rank-1.log")]
    assert (folder / "rank-1.log").read_text(encoding="utf-8") == "I am 1\n"
    assert run.save_logs(api, "unknown", str(folder), True) == []
    with pytest.raises(TrainiumError, match=r"rank-0\.log cannot be written"):
        run.save_logs(api, bert[0], str(folder / "rank-0.log"), True)


def test_what_a_failed_training_holds_is_given_back(cluster: Cluster, api: Api, bert: Made) -> None:
    assert run.stop(api, bert[0], False) == {"cancelled": [], "changed": False, "made": [], "gone": []}
    cluster.finish(f"{bert[0]}-0", "Failed")
    assert run.stop(api, bert[0], True)["gone"] == [f"Job {bert[0]}-1"]
    assert len(cluster.named("jobs")) == 2
    done = run.stop(api, bert[0], False)
    assert done == {"cancelled": [bert[0]], "changed": True, "made": [], "gone": [f"Job {bert[0]}-1"]}
    assert cluster.named("jobs") == [f"{bert[0]}-0"]
    assert run.stop(api, bert[0], False)["changed"] is False


def test_what_has_ended_well_is_not_stopped(cluster: Cluster, api: Api, bert: Made) -> None:
    cluster.finish(f"{bert[0]}-0")
    assert run.stop(api, bert[0], False)["changed"] is False
    assert run.stop(api, "unknown", False)["changed"] is False


def test_all_of_what_can_never_start_is_stopped(cluster: Cluster, api: Api, bert: Made) -> None:
    cluster.pod(f"{bert[0]}-0", held("InvalidImageName"))
    assert len(run.stop(api, bert[0], False)["gone"]) == 2
    assert cluster.named("jobs") == []


def test_pods_that_stay_are_told(cluster: Cluster, api: Api, bert: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "looks", lambda _timeout: iter([0.0, 1.0]))
    pod = cluster.pod(f"{bert[0]}-0", RUNNING, "n")
    cluster.objects["api/v1/pods", "trainium", pod]["metadata"]["ownerReferences"] = [{"name": "a node that is silent"}]
    jobs = run.workloads(api, names.APP, bert[0])
    with pytest.raises(TrainiumError, match=f"^job {bert[0]} is not gone after 300 s; see kubectl get pods"):
        run.end(api, bert[0], jobs, False)
    assert cluster.named("jobs") == []


def test_all_of_a_training_goes_and_nothing_of_another(cluster: Cluster, api: Api, bert: Made) -> None:
    before = {kind: cluster.named(kind) for kind in ("jobs", "configmaps", "secrets", "services")}
    done = run.absent(api, "bert", "", True)
    assert {kind: cluster.named(kind) for kind in before} == before
    assert done["changed"]
    assert done["cancelled"] == [bert[0]]
    assert run.absent(api, "ber", "", False) == {
        "cancelled": [],
        "changed": False,
        "made": [],
        "gone": [],
        "warnings": [],
    }
    assert sorted(run.absent(api, "bert", "", False)["gone"]) == sorted(done["gone"])
    assert [cluster.named(kind) for kind in before] == [[], [], [], []]


def test_secrets_of_a_training_that_runs_are_brought_up_to_date_and_nothing_else(
    cluster: Cluster, api: Api, bert: Made
) -> None:
    changed = [
        {**one, "data": {**one.get("data", {}), "more": "eA=="}} if one["kind"] in ("Secret", "ConfigMap") else one
        for one in bert[1]
    ]
    done = submit(api, (bert[0], changed))
    assert done["made"] == [f"Secret {bert[0]}"]
    assert (done["submitted"], done["changed"]) == (False, True)
    assert submit(api, (bert[0], changed))["changed"] is False
