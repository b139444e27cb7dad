"""Hosts of the images for EKS: what one needs to become a node of the cluster that its user data names."""

from __future__ import annotations

import base64
import functools
import gzip
import importlib.util
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sandbox.kubernetes import images, registry
from sandbox.kubernetes.control_plane import ControlPlanes
from sandbox.kubernetes.inside import node_config
from sandbox.kubernetes.inside.node_config import NodeConfigError

IMAGE_NAMES = "amazon-eks-node-"
# Where the Pods' cgroups land on machines with cgroup v1, whatever a container's own view is.
STRAY_CGROUPS = Path("/sys/fs/cgroup/systemd/kubepods")
# Moto's data has no NeuronInfo for it.
SAME_DEVICES = {"trn2u.48xlarge": "trn2.48xlarge"}


class Instance(Protocol):
    """What is needed of an instance; see sandbox.hosts."""

    @property
    def instance_id(self) -> str:
        """EC2's id of it."""

    @property
    def private_ip(self) -> str:
        """Its address in the VPC."""

    @property
    def private_dns_name(self) -> str:
        """The name that EC2 gives it."""

    @property
    def vpc_cidr(self) -> str:
        """The addresses of its VPC."""

    @property
    def gateway(self) -> str:
        """The machine's own address in the VPC."""

    @property
    def zone(self) -> str:
        """The Availability Zone."""

    @property
    def instance_type(self) -> str:
        """The type, such as trn1.32xlarge."""

    @property
    def efa_interfaces(self) -> int:
        """How many of its interfaces have EFA."""

    @property
    def user_data(self) -> str | None:
        """What it was launched with, in Base64 as EC2 keeps it."""


@dataclass(frozen=True)
class Size:
    """What an instance type has."""

    cores: int
    memory: int  # bytes
    devices: int
    neuron_cores: int


@functools.cache
def _types() -> dict[str, Any]:
    """DescribeInstanceTypes, as moto has it."""
    spec = importlib.util.find_spec("moto")
    assert spec is not None
    assert spec.origin is not None
    with gzip.open(Path(spec.origin).parent / "ec2" / "resources" / "instance_types.json.gz") as file:
        found: dict[str, Any] = json.load(file)
    return found


def size(instance_type: str) -> Size:
    known = _types()[instance_type]
    neuron = _types()[SAME_DEVICES.get(instance_type, instance_type)].get("NeuronInfo", {}).get("NeuronDevices", [])
    return Size(
        cores=int(known["VCpuInfo"]["DefaultVCpus"]),
        memory=int(known["MemoryInfo"]["SizeInMiB"]) << 20,
        devices=sum(int(device["Count"]) for device in neuron),
        neuron_cores=sum(int(device["Count"]) * int(device["CoreInfo"]["Count"]) for device in neuron),
    )


def devices(instance: Instance) -> dict[str, int]:
    """What the device plugins find on a node, by the name of the resource."""
    found = size(instance.instance_type)
    counts = {
        "aws.amazon.com/neuron": found.devices,
        "aws.amazon.com/neuroncore": found.neuron_cores,
        "vpc.amazonaws.com/efa": instance.efa_interfaces,
    }
    return {name: count for name, count in counts.items() if count}


def cluster_of(instance: Instance) -> str | None:
    """The cluster that the user data names; None where the host joins none."""
    text = base64.b64decode(instance.user_data or "").decode("utf-8", "replace")
    try:
        spec = node_config.merged(text)
    except NodeConfigError:
        # The host says so in its log.
        return None
    return str(spec["cluster"]["name"]) if spec else None


def record(instance: Instance) -> dict[str, Any]:
    """What the host learns of itself, as from the metadata service."""
    found = size(instance.instance_type)
    return {
        "name": instance.private_dns_name,
        "instance_id": instance.instance_id,
        "private_ip": instance.private_ip,
        "vpc_cidr": instance.vpc_cidr,
        "zone": instance.zone,
        "instance_type": instance.instance_type,
        "cores": found.cores,
        "memory": found.memory,
        "devices": devices(instance),
        "registry": f"http://{instance.gateway}:{registry.PORT}",
    }


def prepare(instance: Instance, seed: Path, pool: Path, planes: ControlPlanes) -> list[str]:
    """Write what the host needs beside the ordinary into its folder; podman's options for it."""
    cluster = cluster_of(instance)
    if cluster and planes.folder(cluster).exists():
        own = seed / "kubernetes"
        own.mkdir(exist_ok=True)
        authority = planes.authority(cluster)
        name = f"node-{instance.instance_id}"
        hosts = (instance.private_dns_name, instance.private_ip)
        authority.sign(name, f"system:node:{instance.private_dns_name}", "system:nodes", hosts)
        authority.write_kubeconfig(own / "kubelet.kubeconfig", name, planes.endpoint(cluster))
        authority.write_kubeconfig(own / "proxy.kubeconfig", "proxy", planes.endpoint(cluster))
        for ending in ("crt", "key"):
            (authority.folder / f"{name}.{ending}").replace(own / f"kubelet.{ending}")
        (own / "node.json").write_text(json.dumps(record(instance)), encoding="utf-8")
    # On the machine's own file system, since an overlay cannot lie on that of a container.
    volumes = {"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet"}
    for part in volumes:
        (seed / "disk" / part).mkdir(parents=True, exist_ok=True)
    pool.mkdir(parents=True, exist_ok=True)
    return [
        *("--privileged", "--cgroupns=private"),
        *(word for part, path in volumes.items() for word in ("--volume", f"{seed}/disk/{part}:{path}")),
        *("--volume", f"{pool}:/filesystems", *images.program_volumes()),
    ]


def forget_cgroups() -> None:
    """Remove the empty cgroups that Pods have left; those in use stay."""
    if STRAY_CGROUPS.exists():
        command = ["find", str(STRAY_CGROUPS), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"]
        subprocess.run(command, check=False, capture_output=True)
