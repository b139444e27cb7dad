"""Machines that can and cannot hold a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import machine
from sandbox.errors import SandboxError
from sandbox.hosts import Instance

OTHERS = [
    {"ID": "fedora", "VERSION_ID": "43", "PRETTY_NAME": "Fedora Linux 43"},
    {"ID": "ubuntu", "VERSION_ID": "22.04", "PRETTY_NAME": "Ubuntu 22.04.5 LTS"},
    {"ID": "ubuntu", "VERSION_ID": "26.04", "PRETTY_NAME": "Ubuntu 26.04 LTS"},
    {"ID": "debian", "VERSION_ID": "13", "PRETTY_NAME": "Debian GNU/Linux 13 (trixie)"},
    {"ID": "debian", "PRETTY_NAME": "Debian GNU/Linux forky/sid"},
    {},
]


@pytest.mark.parametrize("release", OTHERS)
def test_another_system_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, release: dict[str, str]) -> None:
    monkeypatch.setattr(machine, "os_release", lambda: release)
    with pytest.raises(SandboxError) as refused:
        machine.check()
    text = str(refused.value)
    assert release.get("PRETTY_NAME", "linux") in text
    assert "\n" not in text
    assert text.endswith(".")
    assert "Debian 12 or Ubuntu 24.04" in text


@pytest.mark.parametrize("release", [{"ID": "debian", "VERSION_ID": "12"}, {"ID": "ubuntu", "VERSION_ID": "24.04"}])
def test_the_two_releases_are_taken(monkeypatch: pytest.MonkeyPatch, release: dict[str, str]) -> None:
    monkeypatch.setattr(machine, "os_release", lambda: release)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    machine.check()


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md", "docs/docsite/rst/guide_first_cluster.rst"])
def test_the_pages_name_the_releases_that_are_taken(page: str) -> None:
    text = " ".join((Path(__file__).resolve().parents[3] / page).read_text(encoding="utf-8").split())
    assert "Debian 12 or Ubuntu 24.04" in text
    assert "Debian or Ubuntu" not in text


def test_without_root_and_sudo_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "os_release", lambda: {"ID": "debian", "VERSION_ID": "12"})
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


def test_root_leaves_nothing_beside_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    begun: list[list[str]] = []
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(machine.os, "environ", environ)
    monkeypatch.setattr(machine.os, "execvp", lambda _program, command: begun.append(command))
    machine.become_root()
    assert begun[0][:2] == ["sudo", "--preserve-env"]
    assert Path(environ["PYTHONPYCACHEPREFIX"]).is_relative_to(tmp_path)
