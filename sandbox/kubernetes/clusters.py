"""Makes control planes and the registry match the EKS clusters of the emulated account."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from socketserver import BaseServer

from sandbox.account import api
from sandbox.errors import SandboxError
from sandbox.kubernetes import images, nodes, programs, registry, training
from sandbox.kubernetes.control_plane import NAME_PREFIX, Cluster, ControlPlanes
from sandbox.paths import Paths
from sandbox.podman import IMAGE, Podman

LOG = logging.getLogger("reconciler")
REGISTRY = "registry"
PLACE = f"{registry.HOST}:{registry.BEHIND}"
RETRY = 60.0  # seconds until a build that failed is tried again
ALIVE = ("CREATING", "ACTIVE", "UPDATING")


class Building:
    """Programs, images and the registry in the background: everything else goes on while they are built."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.thread: threading.Thread | None = None
        self.error: SandboxError | None = None
        self.failed = 0.0
        self.done = False

    def _run(self) -> None:
        try:
            self.work()
            self.done = True
        except (SandboxError, OSError) as error:
            self.error, self.failed = SandboxError(str(error)), time.monotonic()

    def is_done(self) -> bool:
        """Whether it is; started where it was not.

        Raises:
            SandboxError: it failed; it is tried again after a while.
        """
        if self.error:
            if time.monotonic() - self.failed > RETRY:
                self.error, self.thread = None, None
            else:
                raise self.error
        if self.thread is None:
            # It ends with the process, and the build with it.
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()
        return self.done


class Clusters:
    """What is (containers) and what should be (clusters), and the steps from one to the other."""

    def __init__(self, paths: Paths, podman: Podman) -> None:
        self.paths, self.podman = paths, podman
        self.planes = ControlPlanes(paths, podman)
        self.building = Building(self._prepare)
        self.servers: dict[str, BaseServer] = {}
        self._ecr: registry.Ecr | None = None

    @staticmethod
    def is_own(name: str) -> bool:
        """Whether a container, named without the sandbox's prefix, is no instance."""
        return name == REGISTRY or name.startswith(NAME_PREFIX)

    def _prepare(self) -> None:
        programs.build(self.paths.logs / "kubernetes.log", self.say)
        self.say("building the images of Kubernetes' hosts and Pods")
        images.build_host(self.paths, self.podman)
        images.build_pod(self.paths, self.podman)
        trains = training.build(self.paths, self.podman)
        self._start_registry(trains)
        self.say(f"Kubernetes {programs.VERSION} is there, and what its nodes and Pods are made of")

    def say(self, line: str) -> None:
        """How far it is: in the log, and for ``python -m sandbox status``."""
        LOG.info("%s", line)
        (self.paths.run / "kubernetes").write_text(f"{line}\n", encoding="utf-8")

    def step(
        self, clusters: list[Cluster], states: dict[str, str], networks: Callable[[Cluster], str], pushed: bool
    ) -> None:
        """One look and what follows.

        ``states`` are those of our containers; ``networks`` makes a cluster's network; ``pushed``: whether the account
        has repositories, for which the registry runs without a cluster as well.
        """
        wanted = {cluster.name: cluster for cluster in clusters if cluster.status in ALIVE}
        there = {name.removeprefix(NAME_PREFIX) for name in states if name.startswith(NAME_PREFIX)}
        there |= {folder.name for folder in self.paths.kubernetes.glob("*")}
        gone = sorted(there - set(wanted))
        if gone:
            LOG.info("removing the control planes of %s", " ".join(gone))
            self.planes.remove(*gone)
            for name in gone:
                states.pop(NAME_PREFIX + name, None)
            nodes.forget_cgroups()
        if not (wanted or pushed) or not self.building.is_done():
            return
        if states.get(REGISTRY, "running") != "running":
            self.podman.run("start", f"{self.paths.name}-{REGISTRY}")
            states[REGISTRY] = "running"
        for cluster in wanted.values():
            self.settle(cluster, states, networks)

    def settle(self, cluster: Cluster, states: dict[str, str], networks: Callable[[Cluster], str]) -> None:
        """Bring one control plane to where its cluster is."""
        name = NAME_PREFIX + cluster.name
        state = states.get(name)
        if state is None:
            LOG.info("starting the control plane of %s", cluster.name)
            self.planes.start(cluster, networks(cluster))
            states[name] = "running"
        elif state != "running":
            self.podman.run("start", self.planes.name(cluster.name))
            states[name] = "running"
        else:
            self.planes.write_entries(cluster)
        if cluster.status == "CREATING" and self.planes.is_ready(cluster.name) and self.planes.furnish(cluster):
            authority = base64.b64encode(self.planes.authority(cluster.name).certificate.encode()).decode()
            known = {"name": cluster.name, "endpoint": self.planes.endpoint(cluster.name)}
            api.request("cluster", {**known, "certificate_authority": authority})
            LOG.info("the cluster %s is active at %s", cluster.name, known["endpoint"])

    @property
    def ecr(self) -> registry.Ecr:
        """ECR's API; its library takes half a second, which nobody without a cluster waits for."""
        if self._ecr is None:
            from sandbox.kubernetes.ecr import Client

            self._ecr = Client()
        return self._ecr

    def serve(self, gateway: str) -> BaseServer:
        """The registry at the first address of a VPC."""
        return registry.serve(gateway, self.ecr)

    def _start_registry(self, trains: bool) -> None:
        """Start the registry and put the sandbox's own images into it."""
        name = f"{self.paths.name}-{REGISTRY}"
        data = self.paths.registry
        (data / "data").mkdir(parents=True, exist_ok=True)
        (data / "registry.json").write_text(json.dumps(registry.CONFIGURATION), encoding="utf-8")
        self.podman.run("rm", "-f", name, check=False)
        volumes = {data / "data": "/var/lib/registry", data / "registry.json": "/etc/registry.yml"}
        options = [word for source, path in volumes.items() for word in ("--volume", f"{source}:{path}")]
        command = ("/usr/bin/docker-registry", "serve", "/etc/registry.yml")
        self.podman.run("run", "-d", "--name", name, "--network", "host", *options, images.host_image(), *command)
        self.push(data)
        if trains and not (data / training.tag()).exists():
            self._push(f"{IMAGE}:{training.tag()}", f"{PLACE}/{training.REPOSITORY}")
            (data / training.tag()).touch()
        # Whoever builds an image waits for it, and would take a base that is still missing for one that never comes.
        if registry.HOST not in self.servers:
            self.servers[registry.HOST] = registry.serve(registry.HOST, self.ecr, outside=True)

    def push(self, data: Path) -> None:
        """Push the images that have upstream's names; nothing to do where that was done."""
        stamp = data / images.pod_tag()
        if stamp.exists():
            return
        base = f"{IMAGE}:{images.pod_tag()}"
        pause = data / "pause.tar"
        shutil.make_archive(str(pause.with_suffix("")), "tar", programs.folder(), "pause")
        self.podman.run("import", "-q", "-c", 'ENTRYPOINT ["/pause"]', str(pause), f"{IMAGE}:pause")
        pause.unlink()
        self._push(f"{IMAGE}:pause", f"{PLACE}/{images.PAUSE}")
        for name in images.BASES:
            self._push(base, f"{PLACE}/{name}")
        container = f"build-{self.paths.name}-standin"
        for entrypoint in sorted({standin.entrypoint for standin in images.STANDINS}):
            self.podman.run("rm", "-f", container, check=False)
            self.podman.run("create", "--name", container, "--network", "none", base)
            changes = ("--change", f"ENTRYPOINT {entrypoint}", "--change", "CMD []")
            self.podman.run("commit", "-q", *changes, container, f"{IMAGE}:standin")
            self.podman.run("rm", "-f", container)
            for standin in images.STANDINS:
                if standin.entrypoint == entrypoint:
                    self._push(f"{IMAGE}:standin", f"{PLACE}/{standin.repository}")
        stamp.touch()

    def _push(self, image: str, target: str) -> None:
        options = ("--tls-verify=false", "--format", "v2s2")
        self.podman.run("push", "-q", *options, image, f"docker://{target}:{registry.TAG}")

    def close(self) -> None:
        for server in self.servers.values():
            server.shutdown()
            server.server_close()
