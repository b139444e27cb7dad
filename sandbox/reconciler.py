"""Makes the machine match the emulated account: running instances are hosts, terminated ones are gone."""

from __future__ import annotations

import functools
import logging
import shutil
import signal
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import ip_network
from socketserver import BaseServer
from threading import Event
from typing import Any

from sandbox import parallelcluster
from sandbox.account import api
from sandbox.errors import SandboxError
from sandbox.hosts import Hosts, Instance, Vpc
from sandbox.kubernetes.clusters import Clusters
from sandbox.kubernetes.control_plane import Cluster
from sandbox.mirror import apt
from sandbox.network import fence, forward, resolver
from sandbox.paths import Paths
from sandbox.podman import Podman
from sandbox.reach import SECONDS_TO_BOOT, Reach

LOG = logging.getLogger("reconciler")
INTERVAL = 0.25  # seconds between looks at the account
RECHECK = 5.0  # seconds between looks at the containers, to notice those killed from outside
UP, DOWN = ("pending", "running"), ("stopping", "stopped")


class Reconciler:
    """What is (containers) and what should be (instances), and the steps from one to the other."""

    def __init__(self, paths: Paths) -> None:
        self.podman = Podman(paths)
        self.hosts = Hosts(paths, self.podman)
        self.clusters = Clusters(paths, self.podman)
        self.paths = paths
        self.servers: dict[str, list[BaseServer]] = {}
        # VPC -> its addresses, and its bridge.
        self.networks: dict[str, str] = {}
        self.bridges: dict[str, str] = {}
        # Whether those that an earlier process left are among them.
        self.found_networks = False
        self.registries: dict[str, BaseServer] = {}
        self.states: dict[str, str] = {}
        # Where each host is, until it is removed.
        self.at: dict[str, str] = {}
        # Image -> the instance that it was made of; another account may have left some.
        self.images: dict[str, str] | None = None
        # Whose console the emulator has not got.
        self.untold: set[str] = set()
        self.reach = Reach()
        # Hosts that nobody here has stopped: one that is off shut itself down.
        self.on: set[str] = set()
        self.looked = 0.0
        self.builder = ThreadPoolExecutor(max_workers=1)
        self.builds: dict[str, Future[str]] = {}
        self.remover = ThreadPoolExecutor(max_workers=2)
        self.removals: dict[Future[None], list[str]] = {}

    def look(self) -> None:
        """Read the containers' states, not more often than every few seconds."""
        if time.monotonic() - self.looked > RECHECK:
            prefix = len(self.paths.name) + 1
            self.states = {name[prefix:]: state for name, state in self.podman.containers().items()}
            self.looked = time.monotonic()

    def step(self) -> None:
        """One look and whatever follows from it; independent hosts are handled side by side."""
        wanted = {i.instance_id: i for i in map(Instance.from_api, api.request("hosts")) if i.state in UP + DOWN}
        self.keep_disks()
        clusters = [Cluster.from_api(record) for record in self.known_clusters()]
        self.look()
        self.at.update({one.instance_id: one.private_ip for one in wanted.values()})
        self.remove_all_but(set(wanted))
        kept = {one.vpc_id for one in wanted.values()} | {one.vpc_id for one in clusters}
        if not self.found_networks:
            self.find_networks()
        # First, since another VPC may have the addresses of one that is gone.
        if not self.removals:
            self.forget_networks(kept)
        in_use = [cidr for vpc_id, cidr in self.networks.items() if vpc_id not in kept]
        clusters = [one for one in clusters if not _overlaps(one.vpc_cidr, in_use)]
        missing = [i for i in wanted.values() if i.state in UP and i.instance_id not in self.states]
        new = [i for i in missing if not _overlaps(i.vpc_cidr, in_use)]
        for instance in new:
            self.prepare(instance)
        waiting = {i.instance_id for i in missing} - {i.instance_id for i in new}
        waiting |= {i.instance_id for i in new if i.parallelcluster and not self.image_is_built()}
        waiting |= {i.instance_id for i in new if i.eks and not self.clusters.building.done}
        # An instance that replaces another may have its address, which the host that is being removed still has.
        taken = {self.at.get(instance_id) for instance_ids in self.removals.values() for instance_id in instance_ids}
        waiting |= {i.instance_id for i in new if i.private_ip in taken}
        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(self.settle, (i for i in wanted.values() if i.instance_id not in waiting)))
        # Images are pushed before there is a cluster to pull them.
        pushed = bool(clusters) or bool(api.request("repositories"))
        self.clusters.step(clusters, self.states, self.network_of, pushed)

    def remove_all_but(self, wanted: set[str]) -> None:
        """Remove the other hosts. Their disks may hold gigabytes, and new hosts do not wait for it."""
        for removal in [one for one in self.removals if one.done()]:
            for instance_id in self.removals.pop(removal):
                self.states.pop(instance_id, None)
                self.at.pop(instance_id, None)
                self.has_stopped(instance_id)
                self.untold.discard(instance_id)
            removal.result()
        known = {instance_id for instance_ids in self.removals.values() for instance_id in instance_ids}
        instances = [name for name in self.states if not self.clusters.is_own(name)]
        gone = [instance_id for instance_id in instances if instance_id not in wanted | known]
        if gone:
            LOG.info("removing %s", " ".join(gone))
            self.removals[self.remover.submit(self.hosts.remove, *gone)] = gone

    def keep_disks(self) -> None:
        """Before a host is removed of which an image was made: EC2 has read its disk by then."""
        images = {one["image_id"]: one["instance_id"] for one in api.request("images")}
        if images != self.images:
            self.hosts.keep_disks(images)
            self.images = images

    def prepare(self, vpc: Vpc) -> None:
        """Network, mirror, resolver and the AWS API of a VPC."""
        # Known before it is made, so that what was begun goes with the VPC.
        self.networks[vpc.vpc_id] = vpc.vpc_cidr
        self.hosts.ensure_network(vpc)
        if vpc.vpc_id in self.servers:
            return
        self.bridges[vpc.vpc_id] = self.podman.bridge(self.hosts.network(vpc.vpc_id))
        fence.close(self.paths.name, self.bridges[vpc.vpc_id], vpc.vpc_cidr)
        servers: list[BaseServer] = []
        # One that serves keeps its port.
        with ExitStack() as begun:
            for serve in (functools.partial(apt.serve, self.paths), resolver.serve, forward.serve):
                servers.append(serve(vpc.gateway))
                begun.callback(_end, servers[-1])
            begun.pop_all()
        self.servers[vpc.vpc_id] = servers

    def known_clusters(self) -> list[dict[str, Any]]:
        """The EKS clusters of the account."""
        found: list[dict[str, Any]] = api.request("clusters")
        return found

    def network_of(self, cluster: Cluster) -> str:
        """The network of a cluster's VPC, with the registry at its first address as well."""
        self.prepare(cluster)
        if cluster.vpc_id not in self.registries:
            self.registries[cluster.vpc_id] = self.clusters.serve(cluster.gateway)
            self.servers[cluster.vpc_id].append(self.registries[cluster.vpc_id])
        return self.hosts.network(cluster.vpc_id)

    def image_is_built(self) -> bool:
        """Whether the image of ParallelCluster is there; other hosts do not wait while it is built."""
        tag = parallelcluster.tag()
        if tag not in self.builds:
            LOG.info("building the image %s", tag)
            self.builds[tag] = self.builder.submit(parallelcluster.build, self.paths, self.podman)
        if not self.builds[tag].done():
            return False
        if self.builds[tag].exception():
            self.builds.pop(tag).result()
        return True

    def settle(self, instance: Instance) -> None:
        """Bring one host into the state of its instance."""
        state = self.states.get(instance.instance_id)
        if instance.state in UP and state is None:
            LOG.info("starting %s at %s", instance.instance_id, instance.private_ip)
            # Where this fails the container may be there all the same, and is started again.
            self.untold.add(instance.instance_id)
            self.hosts.start(instance)
            self.has_started(instance)
        elif instance.state == "running" and state == "off" and instance.instance_id in self.on:
            LOG.info("%s has shut down", instance.instance_id)
            self.has_stopped(instance.instance_id)
            api.request("shutdown", {"instance_id": instance.instance_id})
        elif instance.state in UP and state in ("exited", "created", "stopped", "off"):
            LOG.info("starting %s again", instance.instance_id)
            self.hosts.restart(instance.instance_id)
            self.hosts.addresses.pop(instance.instance_id, None)
            self.has_started(instance)
        elif instance.state in UP and self.reach.is_late(instance.instance_id, instance.private_ip):
            LOG.warning(
                "%s does not answer over ssh after %d s and is started again; it says:\n%s",
                instance.instance_id,
                SECONDS_TO_BOOT,
                self.hosts.says(instance.instance_id),
            )
            self.on.discard(instance.instance_id)
            self.hosts.stop(instance)
            self.states[instance.instance_id] = "exited"
        elif instance.state in DOWN and state == "running":
            LOG.info("stopping %s", instance.instance_id)
            self.has_stopped(instance.instance_id)
            self.hosts.stop(instance)
            self.states[instance.instance_id] = "exited"
        if instance.state in UP:
            self.hosts.set_public_addresses(instance)
        if instance.instance_id in self.untold:
            api.request("console", {"instance_id": instance.instance_id, "text": self.hosts.console(instance)})
            self.untold.discard(instance.instance_id)

    def has_started(self, instance: Instance) -> None:
        """Keep that a host runs, which may take its time until it answers."""
        self.reach.started(instance.instance_id)
        self.on.add(instance.instance_id)
        self.states[instance.instance_id] = "running"

    def has_stopped(self, instance_id: str) -> None:
        """Keep that a host is not expected to answer."""
        self.reach.forget(instance_id)
        self.on.discard(instance_id)

    def find_networks(self) -> None:
        """Take those that an earlier process left for one's own."""
        for name in self.podman.networks():
            vpc_id = name[len(self.paths.name) + 1 :]
            self.bridges[vpc_id] = self.podman.bridge(name)
            self.networks[vpc_id] = self.podman.subnet(name)
        self.found_networks = True

    def forget_networks(self, vpcs: set[str]) -> None:
        """Remove the networks of other VPCs, which have no hosts, so that new VPCs may have the same addresses."""
        for vpc_id in set(self.networks) - vpcs:
            name = self.hosts.network(vpc_id)
            try:
                if name in self.podman.networks():
                    self.podman.run("network", "rm", "-f", "-t", "0", name)
            except SandboxError as error:
                LOG.warning("a network stays for now: %s", error)
                continue
            self.registries.pop(vpc_id, None)
            for server in self.servers.pop(vpc_id, ()):
                _end(server)
            shutil.rmtree(self.hosts.pool(vpc_id), ignore_errors=True)
            cidr = self.networks.pop(vpc_id)
            if vpc_id in self.bridges:
                fence.open_up(self.paths.name, self.bridges.pop(vpc_id), cidr)


def _end(server: BaseServer) -> None:
    server.shutdown()
    server.server_close()


def _overlaps(cidr: str, others: list[str]) -> bool:
    """Whether addresses of a network are also in one of the others."""
    return any(ip_network(cidr).overlaps(ip_network(other)) for other in others)


def run(paths: Paths) -> None:
    """Reconcile until SIGTERM. A step that fails is logged and tried again."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    stopped = Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    reconciler = Reconciler(paths)
    while not stopped.is_set():
        try:
            reconciler.step()
        except Exception as error:
            # Without this process no host is ever started again, and nobody would be told why.
            LOG.warning("a step failed: %s", error, exc_info=not isinstance(error, SandboxError))
            reconciler.looked = 0.0
            stopped.wait(1)
        stopped.wait(INTERVAL)


if __name__ == "__main__":
    run(Paths.from_environment())
