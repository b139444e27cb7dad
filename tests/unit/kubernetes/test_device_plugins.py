"""The device plugins as the role eks_addons renders them, beside what their charts and the kubelet want."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.trainium.cluster.plugins.filter.manifests import kubernetes_manifests
from ansible_collections.trainium.cluster.plugins.filter.storage import kubernetes_volume
from ansible_collections.trainium.cluster.plugins.plugin_utils._guarded import trust_as_template

from tests.unit.kubernetes.test_plan import device_plugins
from tests.unit.kubernetes.test_storage import IDENTITY
from tests.unit.kubernetes.test_storage import SITE as STORAGE

Object = dict[str, Any]
NEURON, EFA = "neuron-device-plugin", "aws-efa-k8s-device-plugin"
ROLE = Path(__file__).parents[3] / "roles/eks_addons"


def rendered(**more: Any) -> list[Object]:
    """With variables of its own; the role is where lookups look."""
    known = {
        **yaml.safe_load((ROLE / "defaults/main.yml").read_text(encoding="utf-8")),
        "eks_addons_namespace": "trainium",
        "__eks_addons_efa": False,
        "__eks_addons_types": [],
        "__eks_addons_efa_types": [],
        "__eks_addons_tolerations": [],
        "__eks_addons_pod_security": "baseline",
        "ansible_search_path": [str(ROLE)],
        **more,
    }
    templar = Templar(loader=DataLoader(), variables=known)
    text = templar.template(trust_as_template((ROLE / "templates/plugins.yaml.j2").read_text(encoding="utf-8")))
    return kubernetes_manifests(str(text))


def of(kind: str, name: str) -> Object:
    (found,) = [one for one in device_plugins() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


@pytest.mark.parametrize("name", [NEURON, EFA])
def test_a_plugin_runs_where_the_kubelet_listens(name: str) -> None:
    daemons = of("DaemonSet", name)
    assert daemons["metadata"]["namespace"] == "kube-system"
    template = daemons["spec"]["template"]
    labels = daemons["spec"]["selector"]["matchLabels"]
    assert labels.items() <= template["metadata"]["labels"].items()
    pod = template["spec"]
    (container,) = pod["containers"]
    volumes = {one["name"]: one["hostPath"]["path"] for one in pod["volumes"]}
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert set(mounts) == set(volumes)
    # The socket of the kubelet's device plugin API.
    assert mounts["device-plugin"] == volumes["device-plugin"] == "/var/lib/kubelet/device-plugins"
    # A node without its devices takes no training: it is not put off a full one.
    assert pod["priorityClassName"] == "system-node-critical"
    tolerated = {one.get("key") for one in pod["tolerations"]}
    assert tolerated >= {"CriticalAddonsOnly", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa"}
    assert all(one["operator"] == "Exists" for one in pod["tolerations"])


def test_neuron_s_plugin_writes_what_it_finds_into_its_node() -> None:
    pod = of("DaemonSet", NEURON)["spec"]["template"]["spec"]
    account = of("ServiceAccount", pod["serviceAccountName"])
    binding = of("ClusterRoleBinding", NEURON)
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": account["metadata"]["namespace"]}
    ]
    role = of(binding["roleRef"]["kind"], binding["roleRef"]["name"])
    may = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert {("nodes/status", "patch"), ("nodes", "get"), ("events", "create"), ("pods", "patch")} <= may
    env = {one["name"]: one for one in pod["containers"][0]["env"]}
    # Of its own node, as a kubelet's.
    assert env["NODE_NAME"]["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert env["KUBECONFIG"]["value"] == "/etc/kubernetes/kubelet.conf"
    aws = next(one for one in pod["containers"][0]["volumeMounts"] if one["mountPath"] == "/opt/aws")
    assert aws["readOnly"] is True


def test_efa_s_plugin_is_root_of_its_node_and_knows_no_api() -> None:
    pod = of("DaemonSet", EFA)["spec"]["template"]["spec"]
    assert (pod["hostNetwork"], pod["automountServiceAccountToken"]) == (True, False)
    (container,) = pod["containers"]
    assert container["securityContext"]["privileged"] is True
    assert container["securityContext"]["runAsNonRoot"] is False
    paths = {one["hostPath"]["path"].rstrip("/"): one["hostPath"] for one in pod["volumes"]}
    assert "/dev/infiniband" in paths
    # Where there are no tools of Neuron's, their folder is made, or the pod would not start.
    assert paths["/opt/aws/neuron"]["type"] == "DirectoryOrCreate"


def test_of_a_cluster_without_devices_there_is_the_namespace_alone() -> None:
    (namespace,) = rendered()
    assert namespace["metadata"] == {"name": "trainium", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}
    assert len(rendered(__eks_addons_types=["trn1.2xlarge"])) == 5
    assert len(rendered(__eks_addons_types=["trn1.2xlarge"], eks_addons_neuron_plugin=False)) == 1


def manifest(kind: str) -> Object:
    (found,) = kubernetes_manifests(
        f"{{kind: {kind}, apiVersion: v1, metadata: {{name: a}}, subjects: []}}", {}, "here"
    )
    return found


@pytest.mark.parametrize(
    "kind",
    [
        *("APIService", "CSIDriver", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "PersistentVolume", "PriorityClass"),
        *("Queue", "StorageClass"),
    ],
)
def test_what_has_no_namespace_by_the_api_reference_gets_none(kind: str) -> None:
    """Or the server refuses it."""
    assert manifest(kind)["metadata"] == {"name": "a"}


@pytest.mark.parametrize("kind", ["Role", "RoleBinding", "Deployment", "Secret", "PersistentVolumeClaim", "Job"])
def test_what_has_one_gets_it(kind: str) -> None:
    assert manifest(kind)["metadata"] == {"namespace": "here", "name": "a"}


def test_the_filter_of_volumes_tells_what_is_to_be_done() -> None:
    made = kubernetes_volume(STORAGE)
    volume, claim = made["volume"], made["claim"]
    assert (volume["kind"], claim["kind"]) == ("PersistentVolume", "PersistentVolumeClaim")
    assert claim["metadata"]["namespace"] == "trainium"
    assert (made["refused"], made["left"]) == ("", False)
    other = {**claim, "spec": {**claim["spec"], "volumeName": "other"}}
    assert f"not for trainium.fsx-claim.{IDENTITY}; " in kubernetes_volume(STORAGE, volume, other)["refused"]
    kept = {**volume, "spec": {**volume["spec"], "claimRef": {**volume["spec"]["claimRef"], "uid": "1"}}}
    assert kubernetes_volume(STORAGE, kept)["left"] is True
    found = {**claim, "metadata": {**claim["metadata"], "uid": "1"}}
    assert kubernetes_volume(STORAGE, kept, found)["left"] is False
