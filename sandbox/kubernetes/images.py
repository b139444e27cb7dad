"""The images of a cluster: that of its hosts, and those of Pods, which the registry has by upstream's names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sandbox import image
from sandbox.kubernetes import programs
from sandbox.paths import REPOSITORY, Paths
from sandbox.podman import IMAGE, Podman

HERE = REPOSITORY / "sandbox" / "kubernetes"
ROOTFS = HERE / "rootfs"
INSIDE = HERE / "inside"

# Nodes, control planes and the registry are hosts of one image.
HOST_PACKAGES = (
    "containerd runc containernetworking-plugins iptables conntrack ethtool socat mount util-linux python3-yaml "
    "etcd-server docker-registry"
)
DISABLED = "containerd etcd docker-registry"
ENABLED = "control-plane nodeadm"
HOST_HOOKS = (
    f'cp -a "{ROOTFS}/." "$1/"; chown -R 0:0 "$1/etc/systemd/system" "$1/usr/local"',
    f'for unit in {DISABLED}; do chroot "$1" systemctl disable "$unit" 2>/dev/null || :; done',
    f'chroot "$1" systemctl disable sandbox-user-data; chroot "$1" systemctl enable {ENABLED}',
    'mkdir -p "$1/opt/kubernetes" "$1/opt/sandbox/sandbox/kubernetes"',
)
POD_PACKAGES = "python3 python3-grpcio busybox-static mount iproute2 iputils-ping ca-certificates"
PROGRAMS = "/opt/sandbox/sandbox/kubernetes"
POD_HOOKS = (
    f'mkdir -p "$1{PROGRAMS}"; rm -rf "$1"/usr/share/doc/*',
    # Volcano's own image makes the certificate of its webhooks by this; the stand-in's makes one for itself.
    'printf "#!/bin/sh\\nexit 0\\n" > "$1/gen-admission-secret.sh"; chmod 0755 "$1/gen-admission-secret.sh"',
)
MODULE = "sandbox.kubernetes.inside"


@dataclass(frozen=True)
class Standin:
    """An image that the sandbox has under a name of upstream, with every tag; ``module`` is what it runs."""

    repository: str
    module: str
    arguments: tuple[str, ...] = ()

    @property
    def entrypoint(self) -> str:
        words = ("/usr/bin/python3", "-m", f"{MODULE}.{self.module}", *self.arguments)
        return "[" + ", ".join(f'"{word}"' for word in words) + "]"


EKS = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks"
PAUSE = f"{EKS}/pause"
# What images are built from, and Pods without one of their own run.
BASES = ("docker.io/library/debian", "public.ecr.aws/docker/library/debian")
STANDINS = (
    Standin("public.ecr.aws/neuron/neuron-device-plugin", "device_plugin", ("aws.amazon.com/",)),
    Standin(f"{EKS}/aws-efa-k8s-device-plugin", "device_plugin", ("vpc.amazonaws.com/",)),
    Standin("public.ecr.aws/fsx-csi-driver/aws-fsx-csi-driver", "fsx_csi"),
    *(
        Standin(f"public.ecr.aws/{prefix}/{name}", "idle")
        for prefix in ("csi-components", "eks-distro/kubernetes-csi")
        for name in (
            *("csi-node-driver-registrar", "node-driver-registrar", "livenessprobe"),
            *("csi-provisioner", "external-provisioner", "csi-resizer", "external-resizer"),
        )
    ),
    Standin("docker.io/volcanosh/vc-controller-manager", "volcano"),
    Standin("docker.io/volcanosh/vc-scheduler", "idle"),
    Standin("docker.io/volcanosh/vc-webhook-manager", "admission"),
)


def _digest(*parts: object, folders: tuple[Path, ...] = ()) -> str:
    digest = hashlib.sha256(repr(parts).encode())
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def host_tag() -> str:
    """A digest of everything that goes into the hosts' image."""
    return f"kubernetes-{_digest(image.tag(), HOST_PACKAGES, HOST_HOOKS, folders=(ROOTFS,))}"


def pod_tag() -> str:
    """A digest of everything that goes into the images of Pods."""
    return f"pod-{_digest(image.suite(), POD_PACKAGES, POD_HOOKS, STANDINS, programs.key(), folders=(INSIDE,))}"


def host_image() -> str:
    return f"{IMAGE}:{host_tag()}"


def program_volumes() -> list[str]:
    """Podman's options for what a host runs: Kubernetes' programs and ours."""
    volumes = {programs.folder(): "/opt/kubernetes", HERE: PROGRAMS}
    return [word for source, target in volumes.items() for word in ("--volume", f"{source}:{target}:ro")]


def build_host(paths: Paths, podman: Podman) -> None:
    """Build the hosts' image unless it is there."""
    if podman.image_exists(host_tag()):
        return
    tarball = paths.cache / "kubernetes-host.tar"
    hooks = (*image.HOOKS, *HOST_HOOKS)
    image.bootstrap(tarball, f"{image.BASE} {HOST_PACKAGES}", hooks, paths.logs / "image-kubernetes.log")
    podman.run("import", "-q", "-c", 'CMD ["/lib/systemd/systemd"]', str(tarball), host_image())
    tarball.unlink()


def build_pod(paths: Paths, podman: Podman) -> None:
    """Build what the images of Pods have in common, unless it is there: packages, and our programs on top."""
    base = f"pod-base-{_digest(image.suite(), POD_PACKAGES, POD_HOOKS)}"
    if not podman.image_exists(base):
        tarball = paths.cache / "kubernetes-pod.tar"
        image.bootstrap(tarball, POD_PACKAGES, POD_HOOKS, paths.logs / "image-pod.log")
        environment = ["-c", "ENV PYTHONPATH=/opt/sandbox", "-c", "ENV PYTHONUNBUFFERED=1", "-c", 'CMD ["/bin/bash"]']
        podman.run("import", "-q", *environment, str(tarball), f"{IMAGE}:{base}")
        tarball.unlink()
    if not podman.image_exists(pod_tag()):
        container = f"build-{paths.name}-pod"
        podman.run("rm", "-f", container, check=False)
        podman.run("create", "--name", container, "--network", "none", f"{IMAGE}:{base}")
        for part in (INSIDE, HERE / "__init__.py", HERE / "network.py"):
            podman.run("cp", str(part), f"{container}:{PROGRAMS}/")
        podman.run("commit", "-q", container, f"{IMAGE}:{pod_tag()}")
        podman.run("rm", "-f", container)
