"""What the programs and nodes are made of; nothing is built here."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from sandbox.errors import SandboxError
from sandbox.hosts import Instance
from sandbox.kubernetes import clusters, nodes, programs
from sandbox.kubernetes.clusters import Building, Clusters
from sandbox.kubernetes.control_plane import Cluster, ControlPlanes, files
from sandbox.kubernetes.inside.api import ApiError
from sandbox.kubernetes.pki import Authority
from sandbox.paths import Paths
from sandbox.podman import Podman

CLUSTER = Cluster("trn", "CREATING", "vpc-1", "10.0.0.0/16")
NODE_CONFIG = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec: {cluster: {name: trn, apiServerEndpoint: https://10.0.0.3, certificateAuthority: Y2E=, cidr: 10.100.0.0/16}}
"""


def instance(kind: str = "trn1.32xlarge", efa: int = 8) -> Instance:
    return Instance(
        instance_id="i-1",
        state="running",
        private_ip="10.0.0.5",
        hostname="ip-10-0-0-5",
        vpc_id="vpc-1",
        vpc_cidr="10.0.0.0/16",
        instance_type=kind,
        zone="us-west-2d",
        image_name="amazon-eks-node-al2023-x86_64-neuron-1.34-v20260625",
        private_dns_name="ip-10-0-0-5.us-west-2.compute.internal",
        user_data=base64.b64encode(NODE_CONFIG.encode()).decode(),
        efa_interfaces=efa,
    )


def test_the_programs_are_kept_outside_of_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert programs.folder() == tmp_path / "trainium-sandbox" / "kubernetes" / programs.key()
    assert not programs.are_built()


def test_another_patch_is_another_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for file in programs.RECIPE.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    before = programs.key()
    monkeypatch.setattr(programs, "RECIPE", tmp_path)
    assert programs.key() == before
    (tmp_path / "size-of-node.patch").write_text("other")
    assert programs.key() != before


def test_the_build_says_how_far_it_is() -> None:
    assert programs.progress("progress: kubelet, 4 of 5 programs\n", 312.4) == (
        "building Kubernetes 1.20.2: kubelet, 4 of 5 programs (312 s so far)"
    )
    assert programs.progress("I: running apt-get update...\n", 1) is None


def test_a_build_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def work() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise SandboxError("no space left")

    building = Building(work)
    assert not building.is_done() or tries
    assert building.thread is not None
    building.thread.join()
    with pytest.raises(SandboxError, match="no space left"):
        building.is_done()
    with pytest.raises(SandboxError, match="no space left"):
        building.is_done()
    monkeypatch.setattr(clusters, "RETRY", 0.0)
    building.is_done()
    assert building.thread is not None
    building.thread.join()
    assert building.is_done()
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("kind", "efa", "expected"),
    [
        ("trn1.32xlarge", 8, {"neuron": 16, "neuroncore": 32, "efa": 8}),
        ("trn1n.32xlarge", 16, {"neuron": 16, "neuroncore": 32, "efa": 16}),
        ("trn2u.48xlarge", 16, {"neuron": 16, "neuroncore": 128, "efa": 16}),
        ("m5.large", 0, {}),
    ],
)
def test_devices_of_a_type(kind: str, efa: int, expected: dict[str, int]) -> None:
    assert {name.split("/")[1]: count for name, count in nodes.devices(instance(kind, efa)).items()} == expected


def test_a_node_is_as_large_as_its_type() -> None:
    found = nodes.record(instance())
    assert (found["cores"], found["memory"] >> 30) == (128, 512)
    assert found["registry"] == "http://10.0.0.1:5197"


def test_a_node_gets_its_own_certificate(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    planes = ControlPlanes(paths, Podman(paths))
    seed = tmp_path / "seed"
    seed.mkdir()
    options = nodes.prepare(instance(), seed, tmp_path / "pool", planes)
    assert "--privileged" in options
    assert not (seed / "kubernetes").exists()

    folder = planes.folder("trn")
    folder.mkdir(parents=True)
    (folder / "address").write_text("10.0.0.3\n")
    planes.authority("trn").make(("10.0.0.3",), "https://127.0.0.1")
    nodes.prepare(instance(), seed, tmp_path / "pool", planes)
    assert sorted(file.name for file in (seed / "kubernetes").iterdir()) == [
        *("kubelet.crt", "kubelet.key", "kubelet.kubeconfig", "node.json", "proxy.kubeconfig")
    ]


class Apiserver:
    """Refuses an address that is taken as the real one does, and has no service account at first."""

    def __init__(self) -> None:
        self.services: list[dict[str, Any]] = []
        self.looks = 0

    def get(self, path: str) -> dict[str, Any]:
        self.looks += 1
        if self.looks == 1:
            raise ApiError(404, path)
        return {}

    def items(self, _path: str) -> list[dict[str, Any]]:
        return self.services

    def create(self, path: str, body: dict[str, Any]) -> bool:
        if path.endswith("/services"):
            if self.services:
                raise ApiError(422, "spec.clusterIP: Invalid value: provided IP is already allocated")
            self.services.append(body)
        return True


def test_a_cluster_is_furnished_until_all_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths(tmp_path)
    planes, server = ControlPlanes(paths, Podman(paths)), Apiserver()
    monkeypatch.setattr(ControlPlanes, "api", lambda _self, _cluster: server)
    monkeypatch.setattr(ControlPlanes, "address", lambda _self, _cluster: "10.0.0.3")
    assert [planes.furnish(CLUSTER) for _look in range(3)] == [False, True, True]
    assert [one["metadata"]["name"] for one in server.services] == ["kube-dns"]


def test_keys_are_read_by_their_owner_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    authority.make(("10.0.0.3",), "https://127.0.0.1")
    before = authority.certificate
    open_to_all = [file.name for file in authority.folder.iterdir() if file.stat().st_mode & 0o077]
    assert not [name for name in open_to_all if name.endswith((".key", ".kubeconfig"))]
    authority.make(("10.0.0.3",), "https://127.0.0.1")
    assert authority.certificate == before


def test_what_a_control_plane_reads() -> None:
    found = files(CLUSTER, "10.0.0.3")
    assert "SERVICE_CIDR=10.100.0.0/16\n" in found["control-plane.env"]
    assert '"sts": "http://10.0.0.1:5199"' in found["authenticator.json"]


def test_records_may_have_more_fields() -> None:
    record = {"name": "trn", "status": "ACTIVE", "vpc_id": "vpc-1", "vpc_cidr": "10.0.0.0/16", "arn": "a", "nodes": []}
    assert Cluster.from_api(record).gateway == "10.0.0.1"


def test_control_planes_are_no_instances() -> None:
    assert Clusters.is_own("eks-trn")
    assert Clusters.is_own("registry")
    assert not Clusters.is_own("i-0123")
