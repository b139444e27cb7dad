"""One instance of the emulated account as a host: a container with systemd and sshd at the instance's address."""

from __future__ import annotations

import base64
import importlib.util
import ipaddress
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sandbox import packages, parallelcluster, standins
from sandbox.commands import run
from sandbox.errors import SandboxError
from sandbox.image import suite, tag
from sandbox.kubernetes import images as kubernetes
from sandbox.kubernetes import nodes
from sandbox.kubernetes.control_plane import ControlPlanes
from sandbox.mirror.apt import NAME as MIRROR_NAME
from sandbox.mirror.apt import PORT as MIRROR_PORT
from sandbox.network.forward import NAME as AWS_NAME
from sandbox.paths import Paths
from sandbox.podman import IMAGE, Podman

# What systemd (which shuts down by reboot(2)), Slurm and a stand-in for mknod need inside the container.
CAPABILITIES = "SYS_BOOT,SYS_ADMIN,NET_ADMIN,NET_RAW,SYS_PTRACE,MKNOD,SYS_NICE,SYS_RESOURCE,IPC_LOCK,AUDIT_WRITE"

HOST_KEY = "ssh_host_ed25519_key"
# As cloud-init's modules write it (cmd/main.py, cc_keys_to_console).
CONSOLE = """\
Cloud-init v. 24.4 running 'init-local' at Thu, 01 Jan 2026 00:00:00 +0000. Up 5.00 seconds.
-----BEGIN SSH HOST KEY KEYS-----
{key}-----END SSH HOST KEY KEYS-----
"""

APT_SOURCES = """\
Types: deb
URIs: http://{mirror}:{port}/debian
Suites: {suite}
Components: main
Signed-By: /etc/apt/keyrings/sandbox.gpg
"""

# As Neuron's instructions for Ubuntu write it, and its DLAMIs have it (setup-troubleshooting.html of Neuron SDK 2.33).
NEURON_LIST = "deb [signed-by=/etc/apt/keyrings/neuron.gpg] http://{mirror}:{port}/standins/neuron {suite} main\n"


@dataclass(frozen=True)
class Instance:
    """What the emulator says of an instance that should be a host."""

    instance_id: str
    state: str
    private_ip: str
    hostname: str
    vpc_id: str
    vpc_cidr: str
    instance_type: str
    public_ips: tuple[str, ...] = ()
    user_data: str | None = None
    public_key: str | None = None
    efa_interfaces: int = 0
    image_name: str = ""
    image_id: str = ""
    powered_off: bool = False
    private_dns_name: str = ""
    zone: str = ""

    @classmethod
    def from_api(cls, record: dict[str, Any]) -> Instance:
        """From a record of ``GET /sandbox-api/hosts``; fields that a host does not need are dropped."""
        known = {key: value for key, value in record.items() if key in cls.__dataclass_fields__}
        known["public_ips"] = tuple(known.get("public_ips") or ())
        return cls(**known)

    @property
    def parallelcluster(self) -> bool:
        """Whether its image is one of ParallelCluster, an official one or one that was built from it."""
        return self.image_name.startswith(("aws-parallelcluster-", "parallelcluster-"))

    @property
    def eks(self) -> bool:
        """Whether its image is one of those for nodes of EKS."""
        return self.image_name.startswith(nodes.IMAGE_NAMES)

    @property
    def dlami(self) -> bool:
        """Whether its image is one of Neuron's Deep Learning AMIs."""
        return self.image_name.startswith("Deep Learning ") and " Neuron " in self.image_name

    @property
    def gateway(self) -> str:
        """The first address of the VPC, which the machine itself holds; AWS keeps it for its router as well."""
        return str(ipaddress.ip_network(self.vpc_cidr)[1])


class Vpc(Protocol):
    """What a network is made of; an instance and a cluster have it."""

    @property
    def vpc_id(self) -> str:
        """The id, by which its bridge is found."""

    @property
    def vpc_cidr(self) -> str:
        """Its addresses."""

    @property
    def gateway(self) -> str:
        """The machine's own address in it."""


@dataclass
class Hosts:
    """Starts, stops and removes the containers of one sandbox."""

    paths: Paths
    podman: Podman
    addresses: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def name(self, instance_id: str) -> str:
        return f"{self.paths.name}-{instance_id}"

    def network(self, vpc_id: str) -> str:
        return f"{self.paths.name}-{vpc_id}"

    def pool(self, vpc_id: str) -> Path:
        """The folder with the shared file systems of a VPC."""
        return self.paths.shared(vpc_id)

    def ensure_network(self, vpc: Vpc) -> None:
        """Make the VPC's network unless it is there: closed to the world, the machine at its first address."""
        name = self.network(vpc.vpc_id)
        if name not in self.podman.networks():
            options = ["--internal", "--disable-dns", "--subnet", vpc.vpc_cidr, "--gateway", vpc.gateway]
            self.podman.run("network", "create", *options, name)

    def _seed(self, instance: Instance) -> Path:
        """Write the folder that the host reads at boot, as a real one reads the metadata service."""
        folder = self.paths.hosts / instance.instance_id
        folder.mkdir(parents=True, exist_ok=True)
        names = f"{MIRROR_NAME} {AWS_NAME}"
        files = {
            "hosts": f"127.0.0.1 localhost\n::1 ip6-localhost ip6-loopback\n{instance.gateway} {names}\n",
            "resolv.conf": f"nameserver {instance.gateway}\noptions timeout:1 attempts:1\n",
            "meta-data": f"instance-id: {instance.instance_id}\nlocal-hostname: {instance.hostname}\n",
            "authorized_keys": f"{instance.public_key.strip()}\n" if instance.public_key else "",
            "instance-id": instance.instance_id + "\n",
            "instance-type": instance.instance_type + "\n",
            "efa-interfaces": f"{instance.efa_interfaces}\n",
            "sandbox.sources": APT_SOURCES.format(mirror=MIRROR_NAME, port=MIRROR_PORT, suite=suite()),
        }
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        if instance.dlami:
            text = NEURON_LIST.format(mirror=MIRROR_NAME, port=MIRROR_PORT, suite=suite())
            (folder / "neuron.list").write_text(text, encoding="utf-8")
            shutil.copyfile(standins.neuron_keyring(self.paths), folder / "neuron.gpg")
        if not (folder / HOST_KEY).exists():
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"root@{instance.hostname}", "-f", HOST_KEY]
            run(command, folder)
        if instance.user_data:
            (folder / "user-data").write_bytes(base64.b64decode(instance.user_data))
        return folder

    def start(self, instance: Instance) -> None:
        """Create the host and start it."""
        name = self.name(instance.instance_id)
        seed = self._seed(instance)
        options = [
            *("--name", name, "--hostname", instance.hostname, "--systemd=always", "--shm-size", "1g"),
            *("--network", self.network(instance.vpc_id), "--ip", instance.private_ip, "--no-hosts", "--dns", "none"),
            *("--volume", f"{seed}:/seed:ro"),
            *("--volume", f"{seed}/sandbox.sources:/etc/apt/sources.list.d/sandbox.sources:ro"),
            *("--volume", f"{self.paths.mirror}/sandbox.gpg:/etc/apt/keyrings/sandbox.gpg:ro"),
        ]
        image = f"{IMAGE}:{tag()}"
        if self.podman.image_exists(instance.image_id):
            image = f"{IMAGE}:{instance.image_id}"
        if instance.eks:
            image = kubernetes.host_image()
            planes = ControlPlanes(self.paths, self.podman)
            options += nodes.prepare(instance, seed, self.pool(instance.vpc_id), planes)
        else:
            # With podman's own filter of system calls, which goes by the capabilities.
            options += ["--cap-add", CAPABILITIES, "--security-opt", "unmask=ALL"]
            # What sandbox-python.service imports beforehand, for those who ask it in place of the interpreter.
            options += ["--volume", f"{ansible()}:/usr/local/lib/sandbox/ansible:ro"]
            ready = packages.folder(self.paths)
            ready.mkdir(parents=True, exist_ok=True)
            options += ["--volume", f"{ready}:{packages.ON_HOST}:ro"]
            # The file systems of EFS and FSx, which outlive the hosts.
            for service in ("efs", "fsx"):
                folder = self.paths.shared(service)
                folder.mkdir(parents=True, exist_ok=True)
                options += ["--volume", f"{folder}:/var/lib/sandbox-{service}"]
        if instance.parallelcluster:
            pool = self.pool(instance.vpc_id)
            pool.mkdir(parents=True, exist_ok=True)
            # The file systems that AWS would serve.
            options += ["--volume", f"{pool}:/filesystems"]
            image = f"{IMAGE}:{parallelcluster.tag()}"
        self.podman.run("run", "-d", *options, image)

    def keep_disks(self, images: dict[str, str]) -> None:
        """Keep the disk of each image's host, and forget those of images that are gone; ``images``: id -> instance."""
        kept = self.podman.run("images", "--format", "{{.Tag}}", IMAGE).split()
        for image_id in (one for one in kept if one.startswith("ami-") and one not in images):
            self.podman.run("rmi", "-f", f"{IMAGE}:{image_id}", check=False)
        containers = self.podman.containers()
        for image_id, instance_id in images.items():
            if image_id not in kept and self.name(instance_id) in containers:
                self.podman.run("commit", "--quiet", self.name(instance_id), f"{IMAGE}:{image_id}")

    def console(self, instance: Instance) -> str:
        """What cloud-init writes to the console of an instance at its first boot, with the key that its sshd has."""
        key = (self.paths.hosts / instance.instance_id / f"{HOST_KEY}.pub").read_text(encoding="utf-8")
        return CONSOLE.format(key=key)

    def says(self, instance_id: str) -> str:
        """What a host has to say that does not answer: its state, addresses and failed units, and its journal's end."""
        shown = "ip -br addr; systemctl is-system-running; systemctl --failed --no-legend; journalctl -n 15 --no-pager"
        state = self.podman.run("ps", "-a", "--filter", f"name={self.name(instance_id)}", "--format", "{{.Status}}")
        return state + self.podman.run("exec", self.name(instance_id), "sh", "-c", shown, check=False)

    def restart(self, instance_id: str) -> None:
        """Start a host again that was stopped; its disk is as it was."""
        self.podman.run("start", self.name(instance_id))

    def stop(self, instance: Instance) -> None:
        """Shut a host down, or take its power."""
        how = ("kill",) if instance.powered_off else ("stop", "-t", "5")
        self.podman.run(*how, self.name(instance.instance_id))

    def remove(self, *instance_ids: str) -> None:
        """Remove hosts and what was written for them."""
        self.podman.remove(*map(self.name, instance_ids))
        for instance_id in instance_ids:
            self.addresses.pop(instance_id, None)
            shutil.rmtree(self.paths.hosts / instance_id, ignore_errors=True)

    def set_public_addresses(self, instance: Instance) -> None:
        """Give the host its Elastic IPs and route them over the VPC's bridge; take away those it lost."""
        have = self.addresses.get(instance.instance_id, ())
        if have == instance.public_ips:
            return
        name = self.name(instance.instance_id)
        pid = json.loads(self.podman.run("inspect", name))[0]["State"]["Pid"]
        bridge = self.podman.bridge(self.network(instance.vpc_id))
        for address in set(have) - set(instance.public_ips):
            _ip("route", "del", f"{address}/32", "dev", bridge)
            _ip("address", "del", f"{address}/32", "dev", "eth0", pid=pid)
        for address in set(instance.public_ips) - set(have):
            _ip("address", "replace", f"{address}/32", "dev", "eth0", pid=pid)
            _ip("route", "replace", f"{address}/32", "dev", bridge)
        self.addresses[instance.instance_id] = instance.public_ips


def ansible() -> Path:
    """The package of Ansible in this interpreter's environment.

    Raises:
        SandboxError: it is not there.
    """
    found = importlib.util.find_spec("ansible")
    if found is None or found.origin is None:
        raise SandboxError("The package ansible-core is not in the sandbox's environment: say make setup.")
    return Path(found.origin).parent


def _ip(*arguments: str, pid: int | None = None) -> None:
    """Run ``ip`` on the machine, or in the network namespace of a host's first process."""
    command = ["ip", *arguments] if pid is None else ["nsenter", "-t", str(pid), "-n", "ip", *arguments]
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    subprocess.run(command, check=False, capture_output=True, env={**os.environ, "PATH": search})
