"""Where the role slurm builds, and who gets what was built: what nodes bring that ran jobs is not believed."""

from __future__ import annotations

import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).resolve().parents[3] / "roles/slurm"
VARS = yaml.safe_load((ROLE / "vars/main.yml").read_text(encoding="utf-8"))
TASKS = {task["name"]: task for task in yaml.safe_load((ROLE / "tasks/archive.yml").read_text(encoding="utf-8"))}


def rendered(text: str, variables: dict[str, Any]) -> Any:
    trusted = {name: trust_as_template(value) for name, value in VARS.items() if isinstance(value, str)}
    return Templar(DataLoader(), variables={**trusted, **variables}).template(trust_as_template(text))


def cluster(**systems: str) -> dict[str, Any]:
    hosts = {name: {"inventory_hostname": name, "__slurm_system": system} for name, system in systems.items()}
    return {"hostvars": hosts, "ansible_play_hosts": list(systems), "slurm_controller": "head"}


@pytest.mark.parametrize(
    ("systems", "system", "builder"),
    [
        ({"a": "Debian-12", "b": "Debian-12", "head": "Debian-12"}, "Debian-12", "head"),
        ({"a": "Ubuntu-22.04", "b": "Ubuntu-22.04", "head": "Debian-12"}, "Ubuntu-22.04", "a"),
    ],
)
def test_the_controller_builds_for_all_that_have_its_system(systems: dict[str, str], system: str, builder: str) -> None:
    assert rendered(VARS["__slurm_builder"], {**cluster(**systems), "__slurm_system": system}) == builder


@pytest.mark.parametrize(
    ("found", "noted", "vouched"),
    [
        ({"exists": True, "checksum": "aa"}, "aa", "aa"),
        # Somebody has changed it.
        ({"exists": True, "checksum": "bb"}, "aa", ""),
        ({"exists": False}, "aa", ""),
        # What `command` says where there is no such file.
        ({"exists": True, "checksum": "aa"}, "skipped, since /var/cache/x.sha256 does not exist", ""),
        ({"exists": False}, "", ""),
    ],
)
def test_only_what_the_controller_has_noted_is_installed(found: dict[str, Any], noted: str, vouched: str) -> None:
    hosts = cluster(head="Debian-12", a="Debian-12")
    hosts["hostvars"]["head"] |= {"__slurm_built_found": {"stat": found}, "__slurm_noted": {"stdout": noted}}
    assert rendered(VARS["__slurm_checksum"], {**hosts, "__slurm_system": "Debian-12"}) == vouched
    # All others are built, or nothing is brought.
    assert TASKS["Build MUNGE and Slurm"]["when"][-1] == TASKS["Go on only where it was built"]["when"]


@pytest.mark.parametrize(
    ("distribution", "version", "system"),
    [
        ("Debian", "12.15", "Debian-12-x86_64"),
        ("Ubuntu", "22.04", "Ubuntu-22.04-x86_64"),
        ("Amazon", "2023", "Amazon-2023-x86_64"),
        ("Rocky", "9.4", "Rocky-9.4-x86_64"),
    ],
)
def test_nodes_have_one_system_where_what_one_builds_runs_on_the_other(
    distribution: str, version: str, system: str
) -> None:
    text = TASKS["Name the system that it is built for"]["ansible.builtin.set_fact"]["__slurm_system"]
    facts = {"distribution": distribution, "distribution_version": version, "architecture": "x86_64"}
    assert rendered(text, {"ansible_facts": facts}) == system


def test_a_node_with_what_was_built_lacks_nothing(tmp_path: Path) -> None:
    prefix = tmp_path / "0123456789ab"
    # The last line of the script that installs.
    line = (ROLE / "files/install.sh").read_text(encoding="utf-8").splitlines()[-1]
    subprocess.run(["sh", "-c", line.replace("/opt/slurm", str(tmp_path))], env={"prefix": str(prefix)}, check=True)
    variables = {"slurm_source": "archive", "__slurm_units": {}, "__slurm_prefix": str(prefix)}
    (wanted,) = rendered(VARS["__slurm_wanted_installed"], variables)
    digest = sha256((tmp_path / "active").read_bytes()).hexdigest()
    assert wanted == f"root:root 0644 {digest} /opt/slurm/active"
