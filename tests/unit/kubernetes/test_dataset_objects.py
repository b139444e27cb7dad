"""The Job of a dataset that is there and that which would be made; filters of what Kubernetes gets and tells."""

from __future__ import annotations

import copy
import io
import zipfile
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter import manifests, storage
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import (
    dataset,
    names,
    run_dataset,
    tensorboard,
)

from tests.unit.kubernetes.definitions import SITE, completed

REQUEST: dict[str, Any] = {
    "source": "s3://bucket/wiki/",
    "destination": "/fsx/data",
    "files": [{"path": "a", "url": "https://bucket/a?X-Amz-Signature=1"}],
    "checksum": "",
}
PLACE: dict[str, Any] = {
    "claim": "fsx-claim",
    "volume": "fs-1",
    "shared": "/fsx",
    "image": "registry.example/a:1",
    "instance_type": "trn1.32xlarge",
}


def made(**more: Any) -> list[dict[str, Any]]:
    return dataset.objects({**REQUEST, **more}, PLACE, b"code")


def spec_of(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    return found


def test_the_pod_runs_the_archive_on_the_request() -> None:
    configured, secret, job = made()
    (container,) = spec_of(job)["containers"]
    python, isolated, archive, request = container["command"]
    assert (python, isolated) == ("python3", "-I")
    paths = {one["name"]: one["mountPath"] for one in container["volumeMounts"] if one["name"] != "own"}
    assert archive == f"{paths['code']}/{next(iter(configured['binaryData']))}"
    assert request == f"{paths['request']}/{next(iter(secret['data']))}"
    assert paths["shared"] == "/fsx"
    # Its log is told while it goes on.
    assert {"name": "PYTHONUNBUFFERED", "value": "1"} in container["env"]
    volumes = {one["name"]: one for one in spec_of(job)["volumes"]}
    assert {one["name"] for one in container["volumeMounts"]} == set(volumes)
    assert volumes["code"]["configMap"]["name"] == configured["metadata"]["name"]
    assert volumes["request"]["secret"] == {"secretName": secret["metadata"]["name"], "defaultMode": 0o444}
    assert volumes["shared"]["persistentVolumeClaim"] == {"claimName": "fsx-claim"}
    # What the module keeps of a transfer has a place, though the image cannot be written.
    own = [one["mountPath"] for one in container["volumeMounts"] if one["name"] == "own"]
    assert sorted(own) == ["/tmp", "/var/tmp"]  # noqa: S108
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_another_dataset_volume_or_code_has_other_names() -> None:
    first = made()
    assert [one["metadata"]["name"] for one in made(files=[])] == [one["metadata"]["name"] for one in first]
    for key in ("source", "destination", "checksum", "checksums", "extract", "name"):
        value = {"source": "s3://bucket/wiki/b/", "destination": "/fsx/other"}.get(key, "x")
        assert made(**{key: value})[2]["metadata"]["name"] != first[2]["metadata"]["name"], key
    assert dataset.app_of(REQUEST, "fs-2") != dataset.app_of(REQUEST, "fs-1")
    other = dataset.objects(REQUEST, PLACE, b"other code")
    assert other[0]["metadata"]["name"] != first[0]["metadata"]["name"]
    assert other[2]["metadata"]["name"] == first[2]["metadata"]["name"]


def test_whose_it_is_stands_in_its_annotations() -> None:
    owned = dataset.objects(REQUEST, {**PLACE, "owner": "ada"}, b"code")
    assert {one["metadata"]["annotations"].get(names.OWNER) for one in owned} == {"ada"}
    assert all(names.OWNER not in one["metadata"]["annotations"] for one in made())


DEFAULTS = {
    "completionMode": "NonIndexed",
    "manualSelector": False,
    "podReplacementPolicy": "TerminatingOrFailed",
    "selector": {"matchLabels": {"uid": "1"}},
    "suspend": False,
}


def kept(job: dict[str, Any]) -> dict[str, Any]:
    """As the API server gives it back, with what it has written itself."""
    found = copy.deepcopy(job)
    found["spec"].update(DEFAULTS)
    found["spec"]["template"]["metadata"] = {"labels": {"uid": "1", **found["spec"]["template"]["metadata"]["labels"]}}
    spec_of(found).update(dnsPolicy="ClusterFirst", schedulerName="default-scheduler", securityContext={})
    spec_of(found)["containers"][0].update(imagePullPolicy="IfNotPresent", terminationMessagePolicy="File")
    return found


def test_what_kubernetes_writes_into_a_job_makes_no_other() -> None:
    job = made()[2]
    assert dataset.is_ours(kept(job), job)


@pytest.mark.parametrize(
    ("where", "changes"),
    [
        ("job", {"suspend": True}),
        ("job", {"manualSelector": True}),
        ("job", {"parallelism": 2}),
        ("pod", {"hostNetwork": True}),
        ("pod", {"securityContext": {"runAsUser": 0}}),
        ("pod", {"volumes": []}),
        ("container", {"command": ["sh"]}),
        ("container", {"lifecycle": {}}),
        ("container", {"image": "other"}),
    ],
)
def test_a_job_that_runs_something_else_is_another_s(where: str, changes: dict[str, Any]) -> None:
    job = made()[2]
    found = kept(job)
    {"job": found["spec"], "pod": spec_of(found), "container": spec_of(found)["containers"][0]}[where].update(changes)
    assert not dataset.is_ours(found, job)
    assert storage.dataset_job(REQUEST, PLACE, {**found, "spec": {}})["other"] is True


def test_too_many_addresses_for_a_secret_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "_MOST_BYTES", 10)
    with pytest.raises(TrainiumError, match=r"^The dataset has 1 files, whose addresses do not go into one Secret"):
        made()


def test_the_filter_tells_whether_the_dataset_is_there() -> None:
    first = storage.dataset_job(REQUEST, PLACE)
    job = first["objects"][-1]
    assert (first["refused"], first["name"], first["done"], first["other"]) == (
        "",
        job["metadata"]["name"],
        False,
        False,
    )
    assert list(first["secret_data"]) == ["request.json.gz"]
    assert "Signature" not in str(first["objects"])
    assert first["secret_data"]["request.json.gz"] not in str(first["objects"])
    runs = storage.dataset_job(REQUEST, PLACE, kept(job))
    assert (runs["done"], runs["other"]) == (False, False)
    done = {**kept(job), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert storage.dataset_job(REQUEST, PLACE, done)["done"] is True
    spec_of(done)["containers"][0]["image"] = "other"
    told = storage.dataset_job(REQUEST, PLACE, done)
    assert (told["done"], told["other"]) == (False, True)
    refused = storage.dataset_job({**REQUEST, "source": "/path"}, PLACE)
    assert refused["refused"].endswith("s3://bucket/prefix/ or the URL of a file.")
    assert refused["objects"] == []


def test_the_archive_is_the_same_for_the_same_code_and_whole() -> None:
    archive = run_dataset.archive()
    assert archive == run_dataset.archive()
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        found = set(packed.namelist())
    package = run_dataset.PACKAGE
    assert {"__main__.py", f"{package}/_dataset/run_pod.py", f"{package}/_dataset/extract.py"} <= found
    # A package at each step of the way.
    for path in found - {"__main__.py"}:
        assert f"{path.rpartition('/')[0]}/__init__.py" in found
    assert not [path for path in found if "boto" in path or path.endswith("_dataset/calls.py")]


def test_filters_of_manifests() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {image: docker.io/x, empty: null}\n---\n"
    (found,) = manifests.kubernetes_manifests(text, {"docker.io/": "mirror.example/"}, "here")
    assert found["metadata"] == {"namespace": "here", "name": "a"}
    assert found["data"] == {"image": "mirror.example/x"}
    assert manifests.kubernetes_mirrored("docker.io/x", {"docker.io/": "m/"}) == "m/x"
    with pytest.raises(AnsibleFilterError, match="kubernetes_manifests: the manifest is no YAML "):
        manifests.kubernetes_manifests("a: [")
    with pytest.raises(AnsibleFilterError, match=r"^kubernetes_mirrored needs an address or the name .*, not int\.$"):
        manifests.kubernetes_mirrored(1, {})
    taints = [{"key": "a", "effect": "NO_SCHEDULE"}]
    assert manifests.kubernetes_tolerations(taints) == [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]
    labels = {"node.kubernetes.io/instance-type": "trn1.32xlarge"}
    node = {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": {"aws.amazon.com/neuron": "16"}}}
    groups = [{"instance_type": "trn1.32xlarge", "count": 1}]
    assert manifests.kubernetes_missing_devices([node], groups, efa=False) == []
    (said,) = manifests.kubernetes_missing_devices([node], groups)
    assert "n (neuron 16, efa 0)" in said
    filters = manifests.FilterModule().filters()
    assert set(filters) == {
        *("kubernetes_manifests", "kubernetes_mirrored", "kubernetes_missing_devices", "kubernetes_tolerations"),
    }


def test_whose_tensorboard_it_is() -> None:
    job = completed({"tensorboard": "/fsx/tb"})
    notes = tensorboard.deployment(job, {**SITE, "owner": "ada"})["metadata"]["annotations"]
    assert notes == {names.NAME: "bert", names.OWNER: "ada"}
    assert names.OWNER not in tensorboard.deployment(job, SITE)["metadata"]["annotations"]
