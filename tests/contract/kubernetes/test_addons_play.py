"""Role eks_addons as a user runs it, with small manifests in place of those of releases."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.kubernetes.api import Cluster
from tests.contract.warm_python import warm_ansible, warm_python

REPOSITORY = Path(__file__).resolve().parents[3]
ROLE = REPOSITORY / "roles/eks_addons"
PLAY = [
    {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.include_role": {"name": "trainium.cluster.eks_addons"}}],
    }
]


def named(kind: str, name: str, version: str = "apps/v1", **more: Any) -> dict[str, Any]:
    image = {"containers": [{"name": "a", "image": "docker.io/volcanosh/a:1"}]}
    spec = {"template": {"metadata": {}, "spec": image}} if version == "apps/v1" else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **more}, "spec": spec}


VOLCANO = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}},
    *(
        named("Deployment", f"volcano-{part}", namespace="volcano-system")
        for part in ("admission", "controllers", "scheduler")
    ),
    named("Job", "volcano-admission-init", "batch/v1", namespace="volcano-system"),
]
# Which names no namespace.
LABELS = {"app.kubernetes.io/name": "aws-fsx-csi-driver"}
LUSTRE = [named("DaemonSet", "fsx-csi-node", labels=LABELS), named("Deployment", "fsx-csi-controller", labels=LABELS)]


def node(neuron: int | str, efa: int) -> dict[str, Any]:
    labels = {"node.kubernetes.io/instance-type": "trn1.32xlarge"}
    allocatable = {"aws.amazon.com/neuron": str(neuron), "vpc.amazonaws.com/efa": str(efa)}
    return {"metadata": {"name": "node-1", "labels": labels}, "status": {"allocatable": allocatable}}


def play(cluster: Cluster, folder: Path, *arguments: str, playbook: str = "", **variables: Any) -> str:
    files = {}
    for name, objects in (("volcano", VOLCANO), ("lustre", LUSTRE)):
        content = yaml.safe_dump_all(objects).encode()
        (folder / f"{name}.yaml").write_bytes(content)
        checksum = hashlib.sha256(content).hexdigest()
        files[name] = [{"url": f"https://release.example/{name}.yaml", "checksum": f"sha256:{checksum}"}]
    (folder / "play.json").write_text(json.dumps(PLAY))
    known = {
        "ansible_python_interpreter": warm_python("kubernetes.dynamic"),
        "trainium_kubeconfig": str(cluster.kubeconfig),
        "trainium_instance_type": "trn1.32xlarge",
        "trainium_node_count": 1,
        "eks_addons_volcano_files": files["volcano"],
        "eks_addons_lustre_driver_files": files["lustre"],
        "eks_addons_mirrors": {"https://release.example/": f"file://{folder}/", "docker.io/": "mirror.example/"},
        "eks_addons_cache": str(folder / "cache"),
        "eks_addons_researchers": ["researchers"],
        "eks_addons_ready_timeout": 2,
        **variables,
    }
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", *arguments]
    command += [playbook or str(folder / "play.json"), "-e", json.dumps(known)]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, check=False, timeout=300
    )
    return done.stdout + done.stderr


def test_all_is_brought_and_waited_for_once(cluster: Cluster, tmp_path: Path) -> None:
    cluster.admin = True
    cluster.namespaces.add("kube-system")
    for number in range(100):
        # As Kubernetes writes a thousand.
        cluster.objects["api/v1/nodes", "", f"node-{number}"] = node("1k" if number == 7 else 16, 8)
    said = play(cluster, tmp_path, trainium_node_count=100)
    assert "failed=0" in said, said
    # All nodes in one call.
    assert [path for _verb, path in cluster.calls if "/nodes" in path] == ["/api/v1/nodes"]
    assert cluster.named("daemonsets", "kube-system") == [
        *("aws-efa-k8s-device-plugin", "fsx-csi-node", "neuron-device-plugin"),
    ]
    assert cluster.named("roles", "trainium") == cluster.named("rolebindings", "trainium") == ["trainium-researcher"]
    assert cluster.objects["apis/scheduling.volcano.sh/v1beta1/queues", "", "trainium"]["spec"]["weight"] == 1
    admission = cluster.objects["apis/apps/v1/deployments", "volcano-system", "volcano-admission"]
    assert admission["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror.example/volcanosh/a:1"
    assert cluster.labels["trainium"] == {"pod-security.kubernetes.io/enforce": "baseline"}
    # An administrator's stricter one stays.
    cluster.labels["trainium"] = {"pod-security.kubernetes.io/enforce": "restricted"}
    again = play(cluster, tmp_path)
    assert cluster.labels["trainium"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert ("changed=0" in again, "failed=0" in again) == (True, True), again


def test_nodes_yml_brings_them_into_a_cluster_of_our_own_only(cluster: Cluster, tmp_path: Path) -> None:
    cluster.admin = True
    cluster.namespaces.add("kube-system")
    cluster.objects["api/v1/nodes", "", "node-1"] = node(16, 8)
    # Without AWS, which is asked for owner and lease only: somebody has asked, and the lease is given back.
    ours = {"trainium_backend": "eks", "trainium_lease": False, "network_lease": "free", "network_cluster_owner": "me"}
    ours["trainium_region"] = "us-west-2"
    said = play(cluster, tmp_path, playbook="playbooks/nodes.yml", trainium_eks_create=False, **ours)
    assert ("failed=0" in said, cluster.calls) == (True, []), said
    said = play(cluster, tmp_path, playbook="playbooks/nodes.yml", eks_addons_lustre_driver=False, **ours)
    assert "failed=0" in said, said
    # The namespace, the plugins, Volcano, and the queue as soon as Volcano answers.
    made = [path.rpartition("/")[2] for path in dict.fromkeys(path for verb, path in cluster.calls if verb == "PATCH")]
    assert (made[0], made[-1]) == ("trainium", "trainium")
    assert made.index("neuron-device-plugin") < made.index("volcano-admission") < made.index("volcano-admission-init")


def test_check_mode_foresees_them_where_there_is_no_cluster(cluster: Cluster, tmp_path: Path) -> None:
    said = play(cluster, tmp_path, "--check", trainium_kubeconfig=str(tmp_path / "none"))
    assert "failed=0" in said and "release.example/volcano.yaml" in said, said
    assert cluster.calls == []


def test_an_add_on_that_does_not_start_is_told_with_its_cause(cluster: Cluster, tmp_path: Path) -> None:
    cluster.admin = True
    cluster.namespaces.add("kube-system")
    cluster.broken.add("aws-efa-k8s-device-plugin")
    cluster.objects["api/v1/nodes", "", "node-1"] = node(16, 8)
    held = {"waiting": {"reason": "ImagePullBackOff", "message": "own: not found"}}
    status = {"phase": "Pending", "containerStatuses": [{"state": held}]}
    cluster.objects["api/v1/pods", "kube-system", "efa-x"] = {"metadata": {"name": "efa-x"}, "status": status}
    said = " ".join(play(cluster, tmp_path, eks_addons_volcano=False, eks_addons_lustre_driver=False).split())
    assert "Add-ons of the cluster are not ready (" in said, said
    assert "kube-system: efa-x: ImagePullBackOff: own: not found. Correct image in" in said, said


def test_a_node_without_all_its_devices_is_named(cluster: Cluster, tmp_path: Path) -> None:
    cluster.admin = True
    cluster.namespaces.add("kube-system")
    cluster.objects["api/v1/nodes", "", "node-1"] = node(16, 7)
    groups = [
        {"name": "a", "instance_type": "trn1.32xlarge", "count": 1},
        {"instance_type": "trn2.48xlarge", "count": 2},
    ]
    off: dict[str, Any] = {"eks_addons_volcano": False, "eks_addons_lustre_driver": False}
    said = play(cluster, tmp_path, eks_cluster_node_groups=groups, **off)
    assert "0 of 2 nodes of type trn2.48xlarge are in the cluster" in " ".join(said.split()), said
    assert "16 Neuron devices and 8 EFA interfaces: node-1 (neuron 16, efa 7)" in " ".join(said.split()), said


@pytest.mark.parametrize("name", ["volcano", "lustre_driver"])
def test_what_is_fetched_is_pinned_by_version_and_checksum(name: str) -> None:
    found = yaml.safe_load((ROLE / "vars/main.yml").read_text())[f"__eks_addons_{name}_files"]
    assert all(one["checksum"].startswith("sha256:") and len(one["checksum"]) == 71 for one in found)
    assert "/v1." in found[0]["url"] + yaml.safe_load((ROLE / "vars/main.yml").read_text())["__eks_addons_lustre_base"]
