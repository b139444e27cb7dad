"""Machines that can and cannot hold a sandbox."""

from __future__ import annotations

import pytest

from sandbox import machine
from sandbox.errors import SandboxError
from sandbox.hosts import Instance


@pytest.mark.parametrize("release", [{"ID": "fedora", "PRETTY_NAME": "Fedora Linux 43"}, {}])
def test_another_system_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, release: dict[str, str]) -> None:
    monkeypatch.setattr(machine, "os_release", lambda: release)
    with pytest.raises(SandboxError) as refused:
        machine.check()
    text = str(refused.value)
    assert release.get("PRETTY_NAME", "linux") in text
    assert "\n" not in text
    assert text.endswith(".")


def test_without_root_and_sudo_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "os_release", lambda: {"ID": "debian"})
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(machine.shutil, "which", lambda *_names, **_options: None)
    with pytest.raises(SandboxError, match="sudo"):
        machine.check()


def test_every_missing_program_names_its_package_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "which", lambda *_names, **_options: None)
    assert machine.missing_packages() == sorted(set(machine.PROGRAMS.values()))


def test_the_gateway_is_the_first_address_of_the_vpc() -> None:
    record = {
        "instance_id": "i-0a",
        "state": "running",
        "private_ip": "10.77.144.4",
        "hostname": "ip-10-77-144-4",
        "vpc_id": "vpc-0a",
        "vpc_cidr": "10.77.0.0/16",
        "instance_type": "trn1.32xlarge",
        "tags": {"a field": "that a host does not need"},
    }
    assert Instance.from_api(record).gateway == "10.77.0.1"
