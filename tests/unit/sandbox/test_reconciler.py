"""What the machine becomes when the account changes: networks of VPCs that come while others go."""

from __future__ import annotations

import ipaddress
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
        self.rm_fails = False
        patch.setattr(Podman, "run", self.podman)
        patch.setattr(Podman, "containers", lambda _self: dict.fromkeys(self.hosts, "running"))
        patch.setattr(Podman, "bridge", lambda _self, network: f"bridge of {network}")
        patch.setattr(Hosts, "start", lambda hosts, one: self.hosts.add(hosts.name(one.instance_id)))
        patch.setattr(Hosts, "remove", self.remove)
        patch.setattr(Hosts, "set_public_addresses", lambda _self, _instance: None)
        patch.setattr(Hosts, "console", lambda _self, _instance: "")
        patch.setattr(api, "request", lambda path, _body=None: self.wanted if path == "hosts" else {})
        for name in ("close", "open_up"):
            patch.setattr(reconciler.fence, name, lambda *_arguments: None)
        for server in (reconciler.apt, reconciler.resolver, reconciler.forward):
            patch.setattr(server, "serve", lambda *_arguments: Server())
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
        return ""

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
    """Of a VPC; nobody asks it."""

    def shutdown(self) -> None:
        """It has not begun."""

    server_close = shutdown


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


def test_a_network_that_could_not_be_removed_is_removed_later(machine: Machine) -> None:
    machine.may_go.set()
    machine.step(FIRST)
    machine.step()
    machine.removed()
    machine.rm_fails = True
    with pytest.raises(SandboxError, match="in use"):
        machine.step()
    machine.rm_fails = False
    assert machine.step(SECOND) == [SECOND["instance_id"]]
