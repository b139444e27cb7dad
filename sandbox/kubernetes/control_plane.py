"""The control plane of one cluster: a host of the VPC with etcd, Kubernetes' own programs and what EKS adds."""

from __future__ import annotations

import json
import shutil
import ssl
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.account import api
from sandbox.account import environment as account
from sandbox.errors import SandboxError
from sandbox.kubernetes import images, network
from sandbox.kubernetes.inside import authenticator
from sandbox.kubernetes.inside.api import Api, ApiError
from sandbox.kubernetes.pki import Authority
from sandbox.mirror.apt import NAME as MIRROR_NAME
from sandbox.network.forward import NAME as AWS_NAME
from sandbox.paths import Paths
from sandbox.podman import Podman

# What its host may do beside the ordinary: its own routes.
CAPABILITIES = "SYS_ADMIN,NET_ADMIN,SYS_RESOURCE"
NAME_PREFIX = "eks-"  # of its container, apart from those of instances (i-)


@dataclass(frozen=True)
class Cluster:
    """What the emulator says of a cluster."""

    name: str
    status: str
    vpc_id: str
    vpc_cidr: str
    version: str = ""
    region: str = "us-west-2"
    service_cidr: str = "10.100.0.0/16"
    nodes: tuple[str, ...] = ()
    access_entries: list[dict[str, Any]] = field(default_factory=list)

    @property
    def gateway(self) -> str:
        """The first address of the VPC, which the machine itself holds."""
        return network.gateway(self.vpc_cidr)

    @classmethod
    def from_api(cls, record: dict[str, Any]) -> Cluster:
        """From a record of ``GET /sandbox-api/clusters``; fields that are not needed are dropped."""
        known = {key: value for key, value in record.items() if key in cls.__dataclass_fields__}
        return cls(**{**known, "nodes": tuple(known.get("nodes") or ())})


def files(cluster: Cluster, address: str) -> dict[str, str]:
    """What the host reads at boot, by name."""
    gateway = cluster.gateway
    variables = {
        "CLUSTER": cluster.name,
        "ADDRESS": address,
        "SERVICE_CIDR": cluster.service_cidr,
        "ISSUER": f"https://oidc.eks.{cluster.region}.amazonaws.com/id/{cluster.name}",
    }
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/seed/pki/scheduler.kubeconfig"},
        "leaderElection": {"leaderElect": False},
        # Volcano's own scheduler cannot be had: its Pods are placed by this one.
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "volcano"}],
    }
    identity = {
        "cluster": cluster.name,
        "sts": f"http://{gateway}:{api.PORT}",
        "hosts": [f"{name}:{api.PORT}" for name in (api.HOST, "localhost", AWS_NAME, gateway)],
        # Of other keys only the emulator knows the secret.
        "secrets": dict([account.key()]),
    }
    names = {AWS_NAME: gateway, MIRROR_NAME: gateway}
    texts = {
        "control-plane.env": "".join(f"{name}={value}\n" for name, value in variables.items()),
        "scheduler.json": json.dumps(scheduler),
        "authenticator.json": json.dumps(identity),
        "dns.json": json.dumps({"address": address, "forward": gateway, "hosts": names}),
    }
    return {**texts, **{f"{name}.json": json.dumps(webhook()) for name in ("authentication", "authorization")}}


def webhook() -> dict[str, Any]:
    """How the apiserver finds the authenticator."""
    server = {"server": f"https://127.0.0.1:{authenticator.PORT}/", "certificate-authority": "/seed/pki/ca.crt"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "eks", "cluster": server}],
        "users": [{"name": "apiserver"}],
        "contexts": [{"name": "eks", "context": {"cluster": "eks", "user": "apiserver"}}],
        "current-context": "eks",
    }


@dataclass
class ControlPlanes:
    """Starts, asks and removes the control planes of one sandbox."""

    paths: Paths
    podman: Podman

    def name(self, cluster: str) -> str:
        return f"{self.paths.name}-{NAME_PREFIX}{cluster}"

    def folder(self, cluster: str) -> Path:
        return self.paths.kubernetes / cluster

    def authority(self, cluster: str) -> Authority:
        return Authority(self.folder(cluster) / "pki")

    def address(self, cluster: str) -> str:
        """The address of a control plane that was started."""
        return (self.folder(cluster) / "address").read_text(encoding="ascii").strip()

    def endpoint(self, cluster: str) -> str:
        return f"https://{self.address(cluster)}"

    def _taken(self, vpc_id: str) -> set[str]:
        """The addresses of the other control planes of a VPC."""
        folders = self.paths.kubernetes.glob("*/vpc") if self.paths.kubernetes.exists() else []
        return {(vpc.parent / "address").read_text().strip() for vpc in folders if vpc.read_text().strip() == vpc_id}

    def start(self, cluster: Cluster, network_name: str) -> None:
        """Create the host of a control plane and start it.

        Raises:
            SandboxError: the VPC has two control planes already.
        """
        folder = self.folder(cluster.name)
        if not (folder / "address").exists():
            address = network.control_plane(cluster.vpc_cidr, self._taken(cluster.vpc_id))
            if address is None:
                raise SandboxError(f"A VPC of the sandbox holds two clusters, so {cluster.name} needs one of its own.")
            folder.mkdir(parents=True)
            (folder / "vpc").write_text(f"{cluster.vpc_id}\n", encoding="ascii")
            (folder / "address").write_text(f"{address}\n", encoding="ascii")
        address = self.address(cluster.name)
        authority = self.authority(cluster.name)
        authority.make((address, network.kubernetes_service(cluster.service_cidr)), "https://127.0.0.1")
        authority.write_kubeconfig(folder / "administrator.kubeconfig", "admin", f"https://{address}")
        for name, text in files(cluster, address).items():
            (folder / name).write_text(text, encoding="utf-8")
        self.write_entries(cluster)
        options = [
            *("--name", self.name(cluster.name), "--hostname", "control-plane", "--systemd=always"),
            *("--network", network_name, "--ip", address, "--no-hosts", "--dns", "none"),
            *("--cap-add", CAPABILITIES, "--security-opt", "unmask=ALL"),
            *("--volume", f"{folder}:/seed:ro", *images.program_volumes()),
        ]
        self.podman.run("run", "-d", *options, images.host_image())

    def write_entries(self, cluster: Cluster) -> None:
        """Let the authenticator know who may use the cluster; it reads the file at each question."""
        file = self.folder(cluster.name) / "access-entries.json"
        text = json.dumps(cluster.access_entries, default=str)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            new = file.with_suffix(".new")
            new.write_text(text, encoding="utf-8")
            new.replace(file)

    def is_ready(self, cluster: str) -> bool:
        """Whether the apiserver answers that it is ready."""
        tls = ssl.create_default_context(cadata=self.authority(cluster).certificate)
        try:
            with urllib.request.urlopen(f"{self.endpoint(cluster)}/readyz", timeout=10, context=tls) as answer:  # noqa: S310
                return bool(answer.read() == b"ok")
        except OSError:
            return False

    def api(self, cluster: str) -> Api:
        """The cluster's API as its administrator."""
        return Api.of_kubeconfig(self.folder(cluster) / "administrator.kubeconfig")

    def furnish(self, cluster: Cluster) -> bool:
        """Make what EKS brings into a new cluster; whether all of it could be made yet."""
        name = {"name": "kube-dns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}
        ports = [{"name": "dns", "port": 53, "protocol": "UDP"}]
        service = {"clusterIP": network.dns(cluster.service_cidr), "ports": ports}
        behind = [{"addresses": [{"ip": self.address(cluster.name)}], "ports": ports}]
        client, services = self.api(cluster.name), "/api/v1/namespaces/kube-system/services"
        try:
            # Made by the controller manager, without which no Pod can be made.
            client.get("/api/v1/namespaces/default/serviceaccounts/default")
            client.create("/api/v1/namespaces/kube-system/endpoints", {"metadata": name, "subsets": behind})
            # To be made once more it would be refused for its address, which is taken.
            if not [one for one in client.items(services) if one["metadata"]["name"] == name["name"]]:
                client.create(services, {"metadata": name, "spec": service})
        except (ApiError, OSError):
            return False
        return True

    def remove(self, *clusters: str) -> None:
        self.podman.remove(*map(self.name, clusters))
        for cluster in clusters:
            shutil.rmtree(self.folder(cluster), ignore_errors=True)
