"""The lists of packages of the roles neuron and monitoring, and what roles lay into /etc for shells and limits."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rendered import FACTS, evaluated, ini, rendered, unit

NEURON = {"__neuron_plan": {"codename": "noble"}}
EFA = {"__efa_node": {"ptrace_scope": 1, "efa": {"addresses": 2, "policy_routing": False}}}
GRAFANA = {"monitoring_grafana_repository_url": "https://example.com/grafana"}


def deb822(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if line and line[0] != "#")


@pytest.mark.parametrize(
    ("role", "template", "key", "given", "address"),
    [
        ("neuron", "neuron.repo.j2", "__neuron_keyring", NEURON, "https://yum.repos.neuron.amazonaws.com"),
        ("monitoring", "grafana.repo.j2", "__monitoring_grafana_keyring", GRAFANA, "https://example.com/grafana"),
    ],
)
def test_dnf_takes_only_what_is_signed(role: str, template: str, key: str, given: dict[str, Any], address: str) -> None:
    facts = {"ansible_facts": FACTS["RedHat"], **given}
    (found,) = ini(rendered(role, template, **facts)).items()
    name, repository = found
    place = evaluated(role, key, **facts)
    assert place.startswith("/etc/pki/rpm-gpg/")
    assert (repository["gpgcheck"], repository["gpgkey"]) == ("1", f"file://{place}")
    assert (repository["baseurl"], repository["enabled"]) == (address, "1")
    assert repository["name"].lower() == name == template.removesuffix(".repo.j2")


def test_new_packages_of_neuron_are_seen_at_once_and_grafana_signs_its_index_too() -> None:
    facts = {"ansible_facts": FACTS["RedHat"]}
    assert ini(rendered("neuron", "neuron.repo.j2", **facts, **NEURON))["neuron"]["metadata_expire"] == "0"
    # packages.grafana.com asks for it (Grafana's manual, "Install Grafana on RHEL or Fedora").
    assert ini(rendered("monitoring", "grafana.repo.j2", **facts, **GRAFANA))["grafana"]["repo_gpgcheck"] == "1"


@pytest.mark.parametrize(
    ("role", "template", "key", "given", "wanted"),
    [
        (
            *("neuron", "neuron.sources.j2", "__neuron_keyring", NEURON),
            {"URIs": "https://apt.repos.neuron.amazonaws.com", "Suites": "noble"},
        ),
        (
            *("monitoring", "grafana.sources.j2", "__monitoring_grafana_keyring", GRAFANA),
            {"URIs": "https://example.com/grafana", "Suites": "stable"},
        ),
    ],
)
def test_apt_takes_only_what_is_signed(
    role: str, template: str, key: str, given: dict[str, Any], wanted: dict[str, str]
) -> None:
    place = evaluated(role, key, **given)
    assert place.startswith("/etc/apt/keyrings/")
    found = deb822(rendered(role, template, **given))
    assert found == {"Types": "deb", "Components": "main", "Signed-By": place, **wanted}


def shell(tmp_path: Path, role: str, template: str, before: str = "", **given: Any) -> dict[str, str]:
    """The environment of a login shell that has read the file."""
    file = tmp_path / "profile.sh"
    file.write_text(rendered(role, template, **given))
    done = subprocess.run(
        ["sh", "-eu", "-c", f". {file}; env"],
        env={"PATH": "/usr/bin:/bin", **({"LD_LIBRARY_PATH": before} if before else {})},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_login_shells_find_the_tools_of_neuron_first(tmp_path: Path) -> None:
    assert shell(tmp_path, "neuron", "trainium-neuron.sh.j2")["PATH"] == "/opt/aws/neuron/bin:/usr/bin:/bin"


@pytest.mark.parametrize(("system", "name"), [("Debian", "lib"), ("RedHat", "lib64")])
@pytest.mark.parametrize("before", ["", "/own/lib"])
def test_login_shells_find_the_tools_and_libraries_of_efa(tmp_path: Path, system: str, name: str, before: str) -> None:
    found = shell(tmp_path, "efa", "trainium-efa.sh.j2", before, ansible_facts=FACTS[system])
    assert found["PATH"] == "/opt/amazon/efa/bin:/opt/amazon/openmpi/bin:/usr/bin:/bin"
    # No empty part, which would be the folder that one happens to be in.
    folders = [f"/opt/amazon/efa/{name}", f"/opt/amazon/openmpi/{name}", *([before] if before else [])]
    assert found["LD_LIBRARY_PATH"].split(":") == folders


def test_as_many_files_may_be_open_as_ranks_have_connections() -> None:
    lines = rendered("efa", "60-trainium-nofile.conf.j2", efa_nofile="70000").splitlines()
    # For root too, whom the star does not mean (limits.conf(5)).
    assert {tuple(line.split()) for line in lines if line[0] != "#"} == {
        (who, kind, "nofile", "70000") for who in ("*", "root") for kind in ("soft", "hard")
    }


def test_processes_of_a_node_may_read_each_other_s_memory() -> None:
    lines = rendered("efa", "60-trainium-ptrace.conf.j2").splitlines()
    assert [line for line in lines if line[0] != "#"] == ["kernel.yama.ptrace_scope = 0"]


def test_routes_are_made_at_every_boot_after_those_of_others() -> None:
    found = unit(rendered("efa", "trainium-nic-routes.service.j2"))
    program = evaluated("efa", "__efa_files.keys() | select('search', 'sbin') | first", **EFA)
    # Isolated: nothing that lies beside it is imported.
    assert found["Service"]["ExecStart"] == [f"/usr/bin/python3 -I {program}"]
    assert (found["Service"]["Type"], found["Service"]["RemainAfterExit"]) == (["oneshot"], ["yes"])
    assert set(found["Unit"]["After"][0].split()) == {"network-online.target", "aws-ubuntu-eni-helper.service"}
    assert found["Unit"]["Wants"] == ["network-online.target"]
    assert found["Install"]["WantedBy"] == ["multi-user.target"]
