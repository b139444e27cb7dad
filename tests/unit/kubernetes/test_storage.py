"""Objects of a file system, and of the Job that brings a dataset onto it; the pod's own code as a process."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import dataset, run_dataset, storage

IDENTITY = "fs-0a1b2c3d4e5f60010"
SITE = {
    "namespace": "trainium",
    "claim": "fsx-claim",
    "capacity": 1200,
    "mount_options": ["flock"],
    "file_system_id": IDENTITY,
    "dns_name": f"{IDENTITY}.fsx.us-west-2.amazonaws.com",
    "mount_name": "abcdefgh",
}
PODS = {
    "claim": "fsx-claim",
    "volume": "v",
    "shared": "/fsx",
    "image": "registry.example/own:1",
    "instance_type": "trn1.32xlarge",
}
REQUEST: dict[str, Any] = {
    "name": None,
    "source": "https://files.example/wiki.tar",
    "destination": "/fsx/trainium/data",
    "files": None,
    "checksum": "",
    "checksums": {},
    "md5_tags": False,
    "extract": "auto",
    "extracted_size": "",
    "owner": None,
    "group": None,
    "chunk_size": "64M",
    "connections": 2,
    "timeout": 10,
}


def test_a_volume_is_kept_for_its_claim_and_stays() -> None:
    volume, claim = storage.static(SITE)
    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == f"trainium.fsx-claim.{IDENTITY}"
    assert volume["spec"]["claimRef"] == {"namespace": "trainium", "name": "fsx-claim"}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["csi"]["volumeAttributes"] == {"dnsname": SITE["dns_name"], "mountname": "abcdefgh"}
    assert volume["spec"]["mountOptions"] == ["flock", "nosuid", "nodev"]
    assert claim["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == ""


def test_what_is_asked_of_a_mount_makes_nobody_root() -> None:
    volume, _claim = storage.static({**SITE, "mount_options": ["nodev", "suid", "dev", "flock"]})
    assert volume["spec"]["mountOptions"] == ["suid", "dev", "flock", "nosuid", "nodev"]


def test_a_file_system_that_grows_changes_no_claim() -> None:
    volume, claim = storage.static(SITE)
    larger, same = storage.static({**SITE, "capacity": 2400})
    assert [one["spec"]["capacity"]["storage"] for one in (volume, larger)] == ["1200Gi", "2400Gi"]
    assert same == claim


def test_two_claims_have_two_volumes() -> None:
    one = storage.volume_name({**SITE, "namespace": "a", "claim": "b-c"})
    assert one != storage.volume_name({**SITE, "namespace": "a-b", "claim": "c"})


def test_a_claim_that_was_deleted_keeps_its_volume_from_no_other() -> None:
    volume, claim = (json.loads(json.dumps(one)) for one in storage.static(SITE))
    assert not storage.is_left(None, None) and not storage.is_left(volume, None)
    volume["spec"]["claimRef"]["uid"], claim["metadata"]["uid"] = "u1", "u1"
    assert not storage.is_left(volume, claim)
    assert storage.is_left(volume, None) and storage.is_left(volume, {**claim, "metadata": {"uid": "u2"}})


def test_what_others_have_made_is_refused() -> None:
    volume, claim = storage.static(SITE)
    assert storage.refusal(SITE, None, None) == storage.refusal(SITE, volume, claim) == ""

    def claimed(**spec: str) -> dict[str, Any]:
        return {"metadata": {}, "spec": spec}

    theirs = {**volume, "metadata": {"name": volume["metadata"]["name"]}}
    other = {**volume, "spec": {"claimRef": {"namespace": "a", "name": "b"}}}
    going = {**claim, "metadata": {"deletionTimestamp": "2026-11-23T07:00:00Z"}}
    said = [
        storage.refusal(SITE, None, claimed(volumeName="v")),
        storage.refusal(SITE, None, claimed(storageClassName="gp3")),
        storage.refusal(SITE, volume, going),
        storage.refusal(SITE, theirs, None),
        storage.refusal(SITE, other, None),
    ]
    wanted = ["is for v, not for", "is for the class gp3", "is being deleted", "is not ours", "is for the claim a/b"]
    assert [one in text for one, text in zip(wanted, said)] == [True] * 5


def test_a_dataset_s_job_keeps_addresses_in_a_secret() -> None:
    files = [{"path": "a", "url": "https://b.s3.example/a?X-Amz-Signature=secret", "size": 1, "tag": ""}]
    request = {**REQUEST, "source": "s3://books/wiki/", "files": files}
    configured, secret, job = dataset.objects(request, PODS, run_dataset.archive())
    packed = secret["data"][dataset.REQUEST]
    assert json.loads(gzip.decompress(base64.b64decode(packed)))["files"] == files
    assert "Signature" not in json.dumps([configured, job])
    assert base64.b64decode(configured["binaryData"][dataset.ARCHIVE]) == run_dataset.archive()
    assert configured["immutable"] and configured["metadata"]["name"].startswith(f"{job['metadata']['name']}-")
    spec = job["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "trn1.32xlarge"}
    assert "limits" not in spec["containers"][0]["resources"] and job["spec"]["backoffLimit"] == 3
    # Other addresses are the same dataset; another volume, source or destination is another.
    name = job["metadata"]["name"]
    assert name.startswith("dataset-wiki-") and len(name) < 50
    assert dataset.app_of({**request, "files": []}, "v") == name
    others = [({}, "w"), ({"source": "s3://books/other/"}, "v"), ({"destination": "/fsx/b"}, "v")]
    assert all(dataset.app_of({**request, **change}, volume) != name for change, volume in others)


def test_a_dataset_s_pod_has_no_rights_that_it_needs_not() -> None:
    _code, _secret, job = dataset.objects(REQUEST, {**PODS, "service_account": "trainings"}, b"code")
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert "serviceAccountName" not in spec and spec["automountServiceAccountToken"] is False
    assert container["command"][:2] == ["python3", "-I"]
    security = container["securityContext"]
    assert security["allowPrivilegeEscalation"] is False and security["readOnlyRootFilesystem"] is True
    assert security["capabilities"]["drop"] == ["ALL"]
    assert {"/tmp", "/var/tmp"} <= {one["mountPath"] for one in container["volumeMounts"]}  # noqa: S108 - a pod's


def test_a_job_is_believed_only_if_its_pod_is_ours() -> None:
    *_others, job = dataset.objects(REQUEST, PODS, b"code")
    server = json.loads(json.dumps(job))
    server["spec"].update(selector={"matchLabels": {"controller-uid": "a"}}, suspend=False, completionMode="NonIndexed")
    server["spec"]["template"]["metadata"]["labels"]["controller-uid"] = "a"
    spec = server["spec"]["template"]["spec"]
    spec.update(dnsPolicy="ClusterFirst", securityContext={}, schedulerName="default-scheduler")
    spec["volumes"][0]["configMap"]["defaultMode"] = 420
    spec["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    assert dataset.is_ours(server, job)

    def changed(**parts: Any) -> bool:
        found = json.loads(json.dumps(server))
        found["spec"].update({key: value for key, value in parts.items() if key in ("completions", "manualSelector")})
        pod = found["spec"]["template"]["spec"]
        pod.update({key: value for key, value in parts.items() if key in ("initContainers", "hostAliases")})
        pod["containers"][0].update({key: value for key, value in parts.items() if key in ("image", "lifecycle")})
        pod["containers"][0]["command"] = parts.get("command", pod["containers"][0]["command"])
        return not dataset.is_ours(found, job)

    assert not changed()
    forged: list[dict[str, Any]] = [
        {"completions": 0},
        {"manualSelector": True},
        {"command": ["true"]},
        {"image": "other:1"},
        {"lifecycle": {"postStart": {}}},
        {"initContainers": [{"name": "a"}]},
        {"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["files.example"]}]},
    ]
    for parts in forged:
        assert changed(**parts), parts
    # Another release of the code is another ConfigMap, and so another pod.
    assert not dataset.is_ours(server, dataset.objects(REQUEST, PODS, b"other")[-1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "/data/wiki"}, "a path, which no pod sees"),
        ({"destination": "/opt/data"}, "use a folder in /fsx, which all pods share"),
        ({"destination": "/fsx2/data"}, "use a folder in /fsx, which all pods share"),
    ],
)
def test_what_no_pod_can_bring_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainiumError, match=said):
        dataset.objects({**REQUEST, **change}, PODS, b"")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "text.bin").write_bytes(b"text" * 1000)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}/text.bin"
        found.shutdown()


def test_the_pod_needs_nothing_but_python(server: str, tmp_path: Path) -> None:
    """Run as the pod runs it, without what is installed here."""
    (tmp_path / "dataset.pyz").write_bytes(run_dataset.archive())
    right = hashlib.sha256(b"text" * 1000).hexdigest()

    def pod(checksum: str) -> subprocess.CompletedProcess[str]:
        request = {**REQUEST, "source": server, "destination": str(tmp_path / "data"), "checksum": checksum}
        (tmp_path / "request").write_bytes(gzip.compress(json.dumps(request).encode()))
        command = [sys.executable, "-I", "-S", str(tmp_path / "dataset.pyz"), str(tmp_path / "request")]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd="/")

    wrong = pod("0" * 64)
    assert wrong.returncode == 1 and wrong.stdout.splitlines()[-1].startswith("DATASET ")
    assert "checksum" in wrong.stdout.lower() or "sha-256" in wrong.stdout.lower()
    done = pod(right)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "DATASET 1 files with 3.9 KiB are in place"
    assert (tmp_path / "data" / "text.bin").read_bytes() == b"text" * 1000
    assert pod(right).returncode == 0
    command = [sys.executable, "-I", "-S", str(tmp_path / "dataset.pyz"), str(tmp_path / "none")]
    unread = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd="/")
    assert (unread.returncode, unread.stderr) == (1, "")
    assert unread.stdout.startswith("DATASET what is to be fetched cannot be read (")
