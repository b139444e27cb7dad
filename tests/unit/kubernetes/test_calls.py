"""One request of the API server each: what is asked again, what a refusal says, and what counts as not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.calls import Api, KubernetesError

from tests.contract.kubernetes.api import Cluster, RefusalError

pytest.importorskip("kubernetes")
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}}


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_what_only_reads_is_asked_again(cluster: Cluster, api: Api, code: int) -> None:
    cluster.refusals["GET", "configmaps"] = RefusalError(code, "Busy", "busy")
    with pytest.raises(KubernetesError) as error:
        api.listed("ConfigMap")
    assert len(cluster.calls) == 3
    assert error.value.details["transient"] is True
    assert (error.value.code, error.value.reason) == (code, "busy")


def test_what_is_refused_is_asked_once(cluster: Cluster, api: Api) -> None:
    cluster.refusals["GET", "configmaps"] = RefusalError(403, "Forbidden", "may not; ")
    with pytest.raises(KubernetesError) as error:
        api.listed("ConfigMap")
    assert len(cluster.calls) == 1
    assert error.value.details["transient"] is False
    assert str(error.value).startswith("Kubernetes does not tell configmaps: may not; ")
    assert str(error.value).endswith(".")
    assert api.visible("ConfigMap") == []


@pytest.mark.parametrize(
    ("verb", "call", "said"),
    [
        ("POST", lambda api: api.create(MAP, False), "Kubernetes does not take configmaps: no"),
        ("PATCH", lambda api: api.change(MAP, {"data": {}}, False), "Kubernetes does not take configmaps: no"),
        ("DELETE", lambda api: api.delete(MAP, False), "Kubernetes does not delete configmaps: no"),
    ],
)
def test_what_writes_is_asked_once(cluster: Cluster, api: Api, verb: str, call: Any, said: str) -> None:
    cluster.refusals[verb, "configmaps"] = RefusalError(500, "Busy", "no")
    with pytest.raises(KubernetesError) as error:
        call(api)
    assert str(error.value).startswith(said)
    assert [made for made, _path in cluster.calls] == [verb]


def test_an_object_is_made_once_changed_and_deleted(cluster: Cluster, api: Api) -> None:
    assert api.get(MAP) is None
    assert api.create(MAP, True)
    assert api.get(MAP) is None
    assert api.create(MAP, False)
    assert api.create(MAP, False) is False
    api.change(MAP, {"data": {"k": "w"}}, True)
    found = api.get(MAP)
    assert found is not None
    assert found["data"] == {"k": "v"}
    api.change(MAP, {"data": {"k": "w"}}, False)
    found = api.get(MAP)
    assert found is not None
    assert found["data"] == {"k": "w"}
    api.delete(MAP, True)
    assert cluster.named("configmaps") == ["a"]
    api.delete(MAP, False)
    assert cluster.named("configmaps") == []
    # It is gone already.
    api.delete(MAP, False)


def test_a_conflict_of_another_kind_is_an_error(cluster: Cluster, api: Api) -> None:
    cluster.refusals["POST", "configmaps"] = RefusalError(409, "Conflict", "the object was modified")
    with pytest.raises(KubernetesError, match="the object was modified"):
        api.create(MAP, False)


def test_an_error_is_not_taken_for_nothing_there(cluster: Cluster, api: Api) -> None:
    cluster.refusals["GET", "configmaps"] = RefusalError(403, "Forbidden", "may not")
    with pytest.raises(KubernetesError):
        api.get(MAP)
    cluster.refusals["GET", "pods"] = RefusalError(403, "Forbidden", "may not")
    with pytest.raises(KubernetesError):
        api.log("a")
    cluster.refusals["GET", "events"] = RefusalError(401, "Unauthorized", "Unauthorized")
    with pytest.raises(KubernetesError, match="You must be logged in to the server"):
        api.visible("Event")


def test_lists_are_of_labels_and_of_a_namespace(cluster: Cluster, api: Api) -> None:
    api.create(MAP, False)
    api.create({**MAP, "metadata": {"name": "b"}}, False)
    assert [one["metadata"]["name"] for one in api.listed("ConfigMap")] == ["a", "b"]
    (one,) = api.listed("ConfigMap", "x=1")
    assert (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "a")
    assert api.listed("ConfigMap", namespace="default") == []
    cluster.has_volcano = False
    assert api.visible("Job of Volcano") == []
    with pytest.raises(KubernetesError):
        api.listed("Job of Volcano")


def test_the_end_of_a_log(cluster: Cluster, api: Api) -> None:
    cluster.logs["a"] = "1\n2\n3\n"
    assert api.log("a") == "1\n2\n3\n"
    assert api.log("a", 2) == "2\n3\n"
    # It has not begun, or is gone.
    assert api.log("b") == ""
    cluster.refusals["GET", "pods"] = RefusalError(404, "NotFound", "no such pod")
    assert api.log("a") == ""


def test_no_other_token_is_sent_than_that_of_the_kubeconfig(
    cluster: Cluster, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody keeps in ~/.netrc for a host would take its place."""
    (tmp_path / ".netrc").write_text("default login ann password word\n", encoding="utf-8")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    assert api.listed("ConfigMap") == []


def test_a_server_that_is_gone_is_told(cluster: Cluster, api: Api) -> None:
    cluster.stop()
    with pytest.raises(KubernetesError, match=r"^Kubernetes does not answer at http://127\.") as error:
        api.listed("ConfigMap")
    assert error.value.code == 0
    assert error.value.details["transient"] is True


def kubeconfig(**changes: Any) -> str:
    """One that is right, but for what is changed."""
    entries = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://192.0.2.1"}}],
        "users": [{"name": "a", "user": {"token": "SECRET"}}],
        **changes,
    }
    return json.dumps(entries)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "Invalid kube-config. "),
        ("[]", "it does not have the form of one"),
        ("clusters: [", "it is not YAML at line 1, column 12"),
        ("password: *SECRET", "it is not YAML at line 1, column 11"),
        ("password: !SECRET", "it is not YAML at line 1, column 11"),
        ("[" * 3000, "it does not have the form of one"),
        (kubeconfig(contexts=[{"name": "a", "context": "text"}]), "it does not have the form of one"),
        (kubeconfig(clusters=[{"name": "a", "cluster": {"server": 5}}]), "it does not have the form of one"),
        (kubeconfig(users=[{"name": "a", "user": "text"}]), "it does not have the form of one"),
        (kubeconfig(users=[{"name": "a", "usr": {"token": "SECRET"}}]), "Invalid kube-config file. Expected key user)"),
        (
            kubeconfig(users=[{"name": None, "user": {"token": "SECRET"}}]),
            "Invalid kube-config file. Expected key name)",
        ),
    ],
)
def test_a_kubeconfig_that_is_none_is_named_and_nothing_in_it_is_shown(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "config"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(TrainiumError) as error:
        Api(str(path), None, "trainium")
    said = str(error.value)
    assert said.startswith(f"the kubeconfig {path} cannot be used ({why}"), said
    assert "set trainium_kubeconfig" in said and "SECRET" not in said
