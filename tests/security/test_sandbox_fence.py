"""A neighbour of the machine reaches neither the hosts of the sandbox nor what answers on its bridges.

Three network namespaces stand for the neighbour, the machine and a host on its bridge; it takes root.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.network import fence

REPOSITORY = Path(__file__).resolve().parents[2]
NAME, BRIDGE, VPC = "sandbox-test01", "podman7", "10.66.0.0/16"
GATEWAY, HOST, PUBLIC, MACHINE = "10.66.0.1", "10.66.0.4", "198.51.100.7", "192.0.2.1"
LISTEN = """
import socket, sys
servers = [socket.create_server((address, 8379)) for address in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
"""
ASK = """
import socket, sys
for address in sys.argv[1:]:
    try:
        socket.create_connection((address, 8379), timeout=0.5).close()
        print("yes")
    except OSError:
        print("no")
"""
RULES = "import sys; from sandbox.network import fence; getattr(fence, sys.argv[1])(*sys.argv[2:])"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces take root")


class Network:
    """The namespaces by the ids of the processes that hold them."""

    def __init__(self) -> None:
        hold = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"]
        self.holders = {
            name: subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for name in ("neighbour", "machine", "host")
        }
        for holder in self.holders.values():
            assert holder.stdout
            assert holder.stdout.readline() == "ready\n"
        self.servers: list[subprocess.Popen[str]] = []

    def command(self, where: str, *words: str) -> list[str]:
        return ["nsenter", "-t", str(self.holders[where].pid), "-n", *words]

    def run(self, where: str, *words: str) -> str:
        done = subprocess.run(
            self.command(where, *words), capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=600
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def link(self, one: str, device: str, other: str, peer: str) -> None:
        pid = str(self.holders[other].pid)
        self.run(one, "ip", "link", "add", device, "type", "veth", "peer", "name", peer, "netns", pid)

    def listen(self, where: str, *addresses: str) -> None:
        command = self.command(where, sys.executable, "-c", LISTEN, *addresses)
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.servers.append(server)
        assert server.stdout
        assert server.stdout.readline() == "ready\n"

    def reaches(self, where: str, *addresses: str) -> list[str]:
        return self.run(where, sys.executable, "-c", ASK, *addresses).split()

    def rules(self, action: str, *arguments: str) -> None:
        self.run("machine", sys.executable, "-c", RULES, action, NAME, *arguments)

    def stop(self) -> None:
        for process in (*self.servers, *self.holders.values()):
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    found = Network()
    try:
        found.link("machine", "uplink", "neighbour", "uplink")
        found.run("machine", "ip", "link", "add", BRIDGE, "type", "bridge")
        found.link("machine", "port0", "host", "eth0")
        found.run("machine", "ip", "link", "set", "port0", "master", BRIDGE)
        for where, device, *addresses in (
            ("neighbour", "uplink", "192.0.2.2/24"),
            ("machine", "uplink", f"{MACHINE}/24"),
            ("machine", BRIDGE, f"{GATEWAY}/16"),
            ("host", "eth0", f"{HOST}/16", f"{PUBLIC}/32"),
        ):
            for address in addresses:
                found.run(where, "ip", "address", "add", address, "dev", device)
            found.run(where, "ip", "link", "set", device, "up")
        found.run("machine", "ip", "link", "set", "port0", "up")
        found.run("machine", "ip", "route", "add", PUBLIC, "dev", BRIDGE)
        # As every other use of containers sets it; and a host that would answer.
        found.run("machine", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        found.run("host", "ip", "route", "add", "default", "via", GATEWAY)
        found.run("neighbour", "ip", "route", "add", "default", "via", MACHINE)
        found.listen("machine", GATEWAY, MACHINE)
        found.listen("host", HOST, PUBLIC)
        yield found
    finally:
        found.stop()


def test_only_the_machine_reaches_what_is_on_a_bridge(network: Network) -> None:
    everything = (GATEWAY, HOST, PUBLIC)
    assert network.reaches("neighbour", *everything) == ["yes"] * 3, "nothing would be shown"
    network.rules("close", BRIDGE, VPC)
    assert network.reaches("neighbour", *everything, MACHINE) == ["no", "no", "no", "yes"]
    assert network.reaches("machine", *everything) == ["yes"] * 3
    assert network.reaches("host", GATEWAY) == ["yes"]


def test_the_same_again_changes_nothing_and_removal_leaves_nothing(network: Network) -> None:
    network.rules("close", BRIDGE, VPC)
    before = network.run("machine", "iptables", "-t", "raw", "-S")
    network.rules("close", BRIDGE, VPC)
    assert network.run("machine", "iptables", "-t", "raw", "-S") == before
    network.rules("open_up", BRIDGE, VPC)
    assert VPC not in network.run("machine", "iptables", "-t", "raw", "-S")
    network.rules("remove")
    assert fence.chain(NAME) not in network.run("machine", "iptables", "-t", "raw", "-S")
