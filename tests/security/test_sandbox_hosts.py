"""A host of the sandbox starts behind the fence only, and has the rights that are written down and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox import reconciler
from sandbox.account import api
from sandbox.errors import SandboxError
from sandbox.hosts import CAPABILITIES, Hosts
from sandbox.paths import Paths
from sandbox.podman import Podman
from sandbox.reconciler import Reconciler

HOST = {
    "instance_id": "i-0123456789abcdef0",
    "state": "running",
    "private_ip": "10.77.0.4",
    "hostname": "ip-10-77-0-4",
    "vpc_id": "vpc-0123456789abcdef0",
    "vpc_cidr": "10.77.0.0/16",
    "instance_type": "trn1.32xlarge",
}


class Machine:
    """What is done to the machine, in its order; nothing is."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.done: list[str] = []
        self.started: tuple[str, ...] = ()
        self.fence_fails = False
        patch.setattr(Podman, "run", self.podman)
        patch.setattr(Hosts, "_seed", lambda _self, _instance: folder)
        patch.setattr(Hosts, "set_public_addresses", lambda _self, _instance: None)
        patch.setattr(Hosts, "console", lambda _self, _instance: "")
        patch.setattr(api, "request", lambda path, _body=None: [HOST] if path == "hosts" else {})
        patch.setattr(reconciler.fence, "close", self.close)
        for server in (reconciler.apt, reconciler.resolver, reconciler.forward):
            patch.setattr(server, "serve", lambda *_arguments: self.done.append("serve"))
        self.reconciler = Reconciler(Paths(folder))

    def podman(self, *arguments: Any, **_options: Any) -> str:
        if arguments[0] == "run" and arguments[-1].startswith("localhost/"):
            self.done.append("start")
            self.started = arguments
        return '[{"network_interface": "podman7"}]' if "inspect" in arguments else ""

    def close(self, name: str, bridge: str, network: str) -> None:
        if self.fence_fails:
            raise SandboxError("the kernel does not take the rules")
        self.done.append(f"close {bridge} {network}")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    return Machine(monkeypatch, tmp_path)


def test_a_vpc_is_closed_before_anything_answers_in_it(machine: Machine) -> None:
    machine.reconciler.step()
    assert machine.done == ["close podman7 10.77.0.0/16", *["serve"] * 3, "start"]


def test_no_host_starts_where_the_fence_cannot_be_made(machine: Machine) -> None:
    machine.fence_fails = True
    for _again in range(2):
        with pytest.raises(SandboxError):
            machine.reconciler.step()
    assert machine.done == []


def test_a_host_has_the_rights_that_are_written_down(machine: Machine) -> None:
    """Without an option for seccomp podman takes its own filter of system calls."""
    machine.reconciler.step()
    words = machine.started
    assert words[words.index("--cap-add") + 1] == CAPABILITIES
    assert [words[number + 1] for number, word in enumerate(words) if word == "--security-opt"] == ["unmask=ALL"]
    assert not {"--privileged", "--device", "--pid", "--ipc", "--userns", "--publish", "-p"} & set(words)
    assert words[words.index("--network") + 1] == f"{Paths(machine.reconciler.paths.root).name}-{HOST['vpc_id']}"
