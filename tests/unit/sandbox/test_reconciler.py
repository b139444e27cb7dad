"""What the machine becomes when the account changes: networks of VPCs that come while others go."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sandbox import reconciler
from sandbox.account import api
from sandbox.errors import SandboxError
from sandbox.hosts import Hosts
from sandbox.paths import Paths
from sandbox.podman import Podman
from sandbox.reconciler import Reconciler


def host(number: int, vpc: int, network: str) -> dict[str, Any]:
    return {
        "instance_id": f"i-{number:017x}",
        "state": "running",
        "private_ip": f"{network.rpartition('.')[0]}.4",
        "hostname": f"node-{number}",
        "vpc_id": f"vpc-{vpc:017x}",
        "vpc_cidr": network,
        "instance_type": "trn1.32xlarge",
    }


class Machine:
    """Networks as podman keeps them, where two must not have the same addresses; hosts that go when they are told."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.wanted: list[dict[str, Any]] = []
        self.networks: dict[str, str] = {}
        self.hosts: set[str] = set()
        self.may_go = Event()
        self.rm_fails = self.bridge_fails = self.forward_fails = False
        self.serving: list[str] = []
        patch.setattr(Podman, "run", self.podman)
        patch.setattr(Podman, "containers", lambda _self: dict.fromkeys(self.hosts, "running"))
        patch.setattr(Podman, "bridge", self.bridge)
        patch.setattr(Hosts, "start", lambda hosts, one: self.hosts.add(hosts.name(one.instance_id)))
        patch.setattr(Hosts, "remove", self.remove)
        patch.setattr(Hosts, "set_public_addresses", lambda _self, _instance: None)
        patch.setattr(Hosts, "console", lambda _self, _instance: "")
        patch.setattr(api, "request", lambda path, _body=None: self.wanted if path == "hosts" else {})
        self.closed: list[tuple[str, str]] = []
        patch.setattr(reconciler.fence, "close", self.close)
        patch.setattr(reconciler.fence, "open_up", self.open_up)
        patch.setattr(reconciler.apt, "serve", lambda _paths, gateway: Server(self, f"apt {gateway}"))
        patch.setattr(reconciler.resolver, "serve", lambda gateway: Server(self, f"resolver {gateway}"))
        patch.setattr(reconciler.forward, "serve", self.forward)
        self.reconciler = Reconciler(Paths(folder))
        self.prefix = f"{self.reconciler.paths.name}-"

    def podman(self, *words: str, check: bool = True, **_options: Any) -> str:
        if words[:2] == ("network", "create"):
            subnet = ipaddress.ip_network(words[words.index("--subnet") + 1])
            if any(subnet.overlaps(ipaddress.ip_network(one)) for one in self.networks.values()):
                raise SandboxError(f"subnet {subnet} is already used on the host or by another config")
            self.networks[words[-1]] = str(subnet)
        elif words[:2] == ("network", "rm"):
            if not self.rm_fails:
                self.networks.pop(words[-1], None)
            elif check:
                raise SandboxError("it is in use")
        elif words[:2] == ("network", "ls"):
            return "\n".join(self.networks)
        elif words[:2] == ("network", "inspect"):
            return json.dumps([{"subnets": [{"subnet": self.networks[words[-1]]}]}])
        return ""

    def bridge(self, network: str) -> str:
        if self.bridge_fails:
            raise SandboxError("podman does not tell")
        return f"bridge of {network}"

    def close(self, _name: str, bridge: str, cidr: str) -> None:
        if (bridge, cidr) not in self.closed:
            self.closed.append((bridge, cidr))

    def open_up(self, _name: str, *fenced: str) -> None:
        """Only when nothing is behind the fence any more."""
        assert fenced[0].removeprefix("bridge of ") not in self.networks
        assert not [one for one in self.serving if one.endswith(str(ipaddress.ip_network(fenced[1])[1]))]
        self.closed.remove(fenced)  # type: ignore[arg-type]

    def forward(self, gateway: str) -> Server:
        if self.forward_fails:
            raise OSError("no room")
        return Server(self, f"forward {gateway}")

    def remove(self, *instance_ids: str) -> None:
        assert self.may_go.wait(20)
        self.hosts -= {self.prefix + one for one in instance_ids}

    def step(self, *wanted: dict[str, Any]) -> list[str]:
        """A look at an account with these; the hosts that are there then."""
        self.wanted = list(wanted)
        self.reconciler.step()
        return sorted(name.removeprefix(self.prefix) for name in self.hosts)

    def removed(self) -> None:
        """What is being removed is gone."""
        self.may_go.set()
        for removal in list(self.reconciler.removals):
            removal.result(20)


class Server:
    """A server of a VPC: it has an address that no other may have meanwhile."""

    def __init__(self, machine: Machine, address: str) -> None:
        if address in machine.serving:
            raise OSError("Address already in use")
        machine.serving.append(address)
        self.machine, self.address = machine, address

    def shutdown(self) -> None:
        """It has no thread."""

    def server_close(self) -> None:
        self.machine.serving.remove(self.address)


FIRST, SECOND = host(1, 1, "10.77.0.0/16"), host(2, 2, "10.77.0.0/16")
ELSEWHERE = host(3, 3, "10.78.0.0/16")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    return Machine(monkeypatch, tmp_path)


def test_a_vpc_waits_for_the_addresses_of_one_whose_hosts_are_going(machine: Machine) -> None:
    """Others do not wait for it."""
    assert machine.step(FIRST) == [FIRST["instance_id"]]
    assert machine.step(SECOND, ELSEWHERE) == [FIRST["instance_id"], ELSEWHERE["instance_id"]]
    machine.removed()
    assert machine.step(SECOND, ELSEWHERE) == [SECOND["instance_id"], ELSEWHERE["instance_id"]]
    assert sorted(machine.networks.values()) == ["10.77.0.0/16", "10.78.0.0/16"]
    assert sorted(cidr for _bridge, cidr in machine.closed) == ["10.77.0.0/16", "10.78.0.0/16"]


def test_a_network_that_could_not_be_removed_is_removed_later(machine: Machine) -> None:
    machine.may_go.set()
    machine.step(FIRST)
    machine.step()
    machine.removed()
    machine.rm_fails = True
    # Nobody else waits for it.
    assert machine.step(SECOND, ELSEWHERE) == [ELSEWHERE["instance_id"]]
    machine.rm_fails = False
    assert machine.step(SECOND, ELSEWHERE) == [SECOND["instance_id"], ELSEWHERE["instance_id"]]


def test_what_was_begun_for_a_vpc_goes_with_it(machine: Machine) -> None:
    """Also where its bridge was not found, or not everything served."""
    machine.bridge_fails = True
    with pytest.raises(SandboxError, match="does not tell"):
        machine.step(FIRST)
    machine.bridge_fails, machine.forward_fails = False, True
    for _again in range(2):
        with pytest.raises(OSError, match="no room"):
            machine.step(SECOND)
    assert machine.serving == []
    machine.forward_fails = False
    assert machine.step(FIRST) == [FIRST["instance_id"]]
    assert machine.serving == ["apt 10.77.0.1", "resolver 10.77.0.1", "forward 10.77.0.1"]


def test_networks_that_an_earlier_process_left_are_removed(machine: Machine) -> None:
    left = f"{machine.prefix}{FIRST['vpc_id']}"
    machine.networks, machine.closed = {left: FIRST["vpc_cidr"]}, [(f"bridge of {left}", FIRST["vpc_cidr"])]
    machine.reconciler = Reconciler(machine.reconciler.paths)
    assert machine.step(SECOND) == [SECOND["instance_id"]]
    new = f"{machine.prefix}{SECOND['vpc_id']}"
    assert list(machine.networks) == [new]
    assert machine.closed == [(f"bridge of {new}", SECOND["vpc_cidr"])]
