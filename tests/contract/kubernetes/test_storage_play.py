"""Role eks_storage as a user runs it; a thread does what Kubernetes would."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.contract.kubernetes import test_training_play as training_play
from tests.contract.kubernetes.api import Cluster
from tests.contract.kubernetes.test_kubernetes_job import RUNNING
from tests.contract.warm_python import warm_ansible, warm_python

REPOSITORY = Path(__file__).resolve().parents[3]
ROLE = "trainium.cluster.eks_storage"
PLAY = [
    {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "tasks": [
            {"ansible.builtin.include_role": {"name": ROLE}},
            {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "dataset"}},
        ],
    }
]
IDENTITY = "fs-0a1b2c3d4e5f60010"


class Controllers(training_play.Controllers):
    """Every Job gets a pod that says how far it is, and ends when its log was asked for some times."""

    def run(self) -> None:
        while not self.stopped.wait(0.05):
            for name in self.cluster.named("jobs"):
                pod = f"{name}-a"
                if pod not in self.cluster.named("pods"):
                    self.cluster.logs[pod] = "DATASET fetching 1.0 GiB of 2.0 GiB (50%), 100.0 MiB/s, 10 s left\n"
                    self.cluster.pod(name, RUNNING, "node-1")
                elif sum(path.endswith(f"{pod}/log") for _verb, path in list(self.cluster.calls)) > 2:
                    self.cluster.finish(name)


def play(cluster: Cluster, folder: Path, *arguments: str, **variables: Any) -> str:
    (folder / "play.json").write_text(json.dumps(PLAY))
    known = {
        "ansible_python_interpreter": warm_python("kubernetes.dynamic"),
        "trainium_cluster_name": "bert",
        "trainium_region": "us-west-2",
        "trainium_kubeconfig": str(cluster.kubeconfig),
        "trainium_instance_type": "trn1.32xlarge",
        "trainium_shared_dir": "/fsx",
        "trainium_dataset": {"source": "https://files.example/wiki.tar"},
        # As role shared_storage has made it.
        "shared_storage_result": {
            "file_system_id": IDENTITY,
            "mount_source": f"{IDENTITY}.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh",
        },
        "eks_storage_image": "registry.example/own:1",
        "eks_storage_timeout": 4,
        **variables,
    }
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", *arguments]
    command += [str(folder / "play.json"), "-e", json.dumps(known)]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, check=False, timeout=300
    )
    return done.stdout + done.stderr


def test_volume_claim_and_dataset_once(cluster: Cluster, tmp_path: Path) -> None:
    cluster.admin = True
    controllers = Controllers(cluster)
    controllers.start()
    try:
        said = play(cluster, tmp_path)
        assert "failed=0" in said, said
        name = f"trainium.fsx-claim.{IDENTITY}"
        volume = cluster.objects["api/v1/persistentvolumes", "", name]["spec"]
        names = {"dnsname": f"{IDENTITY}.fsx.us-west-2.amazonaws.com", "mountname": "abcdefgh"}
        assert volume["csi"]["volumeAttributes"] == names
        assert cluster.named("persistentvolumeclaims") == ["fsx-claim"]
        assert cluster.labels["trainium"] == {"pod-security.kubernetes.io/enforce": "baseline"}
        (job,) = cluster.named("jobs")
        assert f"job {job} RUNNING on node-1: fetching 1.0 GiB of 2.0 GiB (50%), 100.0 MiB/s, 10 s left" in said
        assert cluster.named("secrets") == cluster.named("configmaps") == []
        again = play(cluster, tmp_path)
        # Somebody's in its place, of which nobody knows what it has done.
        container = cluster.job(job)["spec"]["template"]["spec"]["containers"][0]
        container["command"] = ["true"]
        forged = play(cluster, tmp_path)
    finally:
        controllers.stopped.set()
    assert ("changed=0" in again, "failed=0" in again) == (True, True), again
    assert "changed=2" in forged and "failed=0" in forged, forged
    assert cluster.job(job)["spec"]["template"]["spec"]["containers"][0]["command"][0] == "python3"
    own = {"eks_storage_file_system_id": "fs-0a1b2c3d4e5f60011", "eks_storage_mount_name": "fsx"}
    said = play(cluster, tmp_path, trainium_dataset={}, **own)
    assert (
        f"fsx-claim in the namespace trainium is for {name}, not for trainium.fsx-claim.fs-0a1b2c3d4e5f60011"
        in " ".join(said.split())
    ), said


def test_a_claim_that_was_deleted_comes_back_on_its_volume(cluster: Cluster, tmp_path: Path) -> None:
    """It grows as well, which no claim that is bound could."""
    cluster.admin = True
    said = play(cluster, tmp_path, trainium_dataset={})
    assert "failed=0" in said, said
    at = ("api/v1/persistentvolumes", "", f"trainium.fsx-claim.{IDENTITY}")
    claim = ("api/v1/persistentvolumeclaims", "trainium", "fsx-claim")
    cluster.objects.pop(claim)
    cluster.objects[at]["spec"]["claimRef"].update(uid="gone", resourceVersion="7")
    said = play(cluster, tmp_path, trainium_dataset={}, eks_storage_capacity=2400)
    assert "failed=0" in said, said
    spec = cluster.objects[at]["spec"]
    assert spec["claimRef"] == {"namespace": "trainium", "name": "fsx-claim"}
    assert spec["capacity"] == {"storage": "2400Gi"}
    assert cluster.objects[claim]["spec"]["resources"] == {"requests": {"storage": "1Gi"}}

    cluster.objects[claim]["status"] = {"phase": "Pending"}
    cluster.event("PersistentVolumeClaim", "fsx-claim", "FailedBinding", "volume already bound to a different claim.")
    cluster.event("PersistentVolumeClaim", "other", "FailedBinding", "no")
    cluster.calls.clear()
    said = " ".join(play(cluster, tmp_path, trainium_dataset={}, eks_storage_capacity=2400).split())
    told = "is not bound after 4 s; Kubernetes says: volume already bound to a different claim; see kubectl"
    assert told in said, said
    assert [path for _verb, path in cluster.writes() if path.endswith("claims/fsx-claim")] == []


def test_training_yml_brings_the_dataset_first(cluster: Cluster, tmp_path: Path) -> None:
    """As a researcher, in a cluster that others made, with a claim that is there."""
    cluster.namespaces.add("trainium")
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "fsx-claim"}}
    there = {**claim, "spec": {"volumeName": "theirs"}}
    cluster.objects["api/v1/persistentvolumeclaims", "trainium", "fsx-claim"] = there
    controllers = training_play.Controllers(cluster)
    controllers.start()
    more: dict[str, Any] = {
        "ansible_python_interpreter": warm_python("kubernetes.dynamic"),
        "playbook": "playbooks/training.yml",
        "trainium_backend": "eks",
        "trainium_eks_create": False,
        "trainium_dataset": {"source": "https://files.example/wiki.tar"},
        "trainium_training": {**training_play.TRAINING, "files": [str(tmp_path / "a.py")]},
    }
    said = training_play.play(cluster, tmp_path, **more)
    controllers.stopped.set()
    controllers.join()
    assert "failed=0" in said and "step 14 of 14" in said, said
    made = [path for verb, path in cluster.writes() if path.endswith("/jobs")]
    assert len(made) == 3
    dataset, *ranks = sorted(cluster.named("jobs"))
    assert dataset.startswith("dataset-wiki-tar-") and [one[-2:] for one in ranks] == ["-0", "-1"]
    container = cluster.job(dataset)["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example/own:1"


def test_check_mode_foresees_them_where_there_is_no_cluster(cluster: Cluster, tmp_path: Path) -> None:
    said = play(cluster, tmp_path, "--check", trainium_kubeconfig=str(tmp_path / "none"))
    assert "failed=0" in said and "the claim fsx-claim would be made" in said, said
    assert cluster.calls == []
