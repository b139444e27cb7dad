"""Manifests of releases for one cluster."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.filter.manifests import kubernetes_manifests, kubernetes_mirrored

# As those of the driver for FSx for Lustre v1.9.0, which its kustomization puts into kube-system.
DRIVER = """\
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: getter}
subjects:
  - {kind: ServiceAccount, name: node-sa}
  - {kind: Group, name: people}
roleRef: {kind: ClusterRole, name: node-role, apiGroup: rbac.authorization.k8s.io}
---
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: node}
spec:
  template:
    spec:
      terminationGracePeriodSeconds:
      containers: [{name: a, image: public.ecr.aws/fsx/driver:v1.9.0}]
---
kind: ServiceAccount
apiVersion: v1
metadata: {name: node-sa, namespace: own}
"""


def test_a_manifest_is_made_fit_as_its_kustomization_does_it() -> None:
    binding, daemons, account = kubernetes_manifests(DRIVER, {"public.ecr.aws/": "mirror.example/"}, "kube-system")
    assert binding["metadata"] == {"name": "getter"}
    assert binding["subjects"] == [
        {"namespace": "kube-system", "kind": "ServiceAccount", "name": "node-sa"},
        {"kind": "Group", "name": "people"},
    ]
    assert daemons["metadata"] == {"namespace": "kube-system", "name": "node"}
    pod = daemons["spec"]["template"]["spec"]
    assert pod == {"containers": [{"name": "a", "image": "mirror.example/fsx/driver:v1.9.0"}]}
    assert account["metadata"]["namespace"] == "own"


def test_a_volume_is_in_no_namespace() -> None:
    [volume] = kubernetes_manifests(
        "{kind: PersistentVolume, apiVersion: v1, metadata: {name: fsx}}", {}, "kube-system"
    )
    assert volume["metadata"] == {"name": "fsx"}


def test_without_a_namespace_it_stays_where_it_is() -> None:
    assert kubernetes_manifests(DRIVER)[0]["subjects"][0] == {"kind": "ServiceAccount", "name": "node-sa"}


def test_where_a_mirror_has_it() -> None:
    assert kubernetes_mirrored("docker.io/a:1", {"docker.io/": "mirror.example/"}) == "mirror.example/a:1"
