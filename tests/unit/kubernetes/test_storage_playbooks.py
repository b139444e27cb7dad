"""Which roles the playbooks run for the file system of each backend, by their own conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
SHARED, KUBERNETES = "trainium.cluster.shared_storage", "trainium.cluster.eks_storage"


def roles_of(playbook: str, **variables: Any) -> list[tuple[str, str]]:
    """Role and entry point of each, of those for file systems."""
    found = []
    for play in yaml.safe_load((PLAYBOOKS / f"{playbook}.yml").read_text()):
        roles = [(one["role"], "main", one.get("when")) for one in play.get("roles") or []]
        for task in [*play.get("pre_tasks", []), *play.get("tasks", []), *play.get("post_tasks", [])]:
            include = task.get("ansible.builtin.include_role") or {}
            roles.append((include.get("name", ""), include.get("tasks_from", "main"), task.get("when")))
        for role, entry, when in roles:
            conditions = [when] if isinstance(when, str) else when or []
            if role in (SHARED, KUBERNETES) and all(holds(one, variables) for one in conditions):
                found.append((role, entry))
    return found


def holds(condition: str, variables: dict[str, Any]) -> bool:
    said = Templar(loader=DataLoader(), variables=variables).template(trusted(f"{{{{ ({condition}) | bool }}}}"))
    return str(said) == "True"


def nodes_are_looked_at(variables: dict[str, Any]) -> bool:
    """Whether the play that looks at the nodes goes on behind its first condition."""
    plays = yaml.safe_load((PLAYBOOKS / "nodes.yml").read_text())
    (play,) = [one for one in plays if one["name"] == "Look at the nodes of the cluster"]
    ends = [task["when"] for task in play["tasks"] if task.get("ansible.builtin.meta") == "end_play"]
    return not any(holds(one, variables) for one in ends)


def trusted(text: str) -> Any:
    try:
        from ansible.template import trust_as_template
    except ImportError:
        return text
    return trust_as_template(text)


@pytest.mark.parametrize(
    ("backend", "storage", "network", "nodes"),
    [
        ("ec2", "fsx", [(SHARED, "look"), (SHARED, "create")], [(SHARED, "find"), (SHARED, "work")]),
        ("ec2", "efs", [(SHARED, "look"), (SHARED, "create")], [(SHARED, "find"), (SHARED, "work")]),
        ("eks", "fsx", [(SHARED, "look"), (SHARED, "create")], [(SHARED, "find"), (KUBERNETES, "main")]),
        ("eks", "none", [], []),
        ("ec2", "none", [], [(SHARED, "work")]),
    ],
)
def test_a_file_system_is_made_and_mounted_by_the_backend_s_role(
    backend: str, storage: str, network: list[tuple[str, str]], nodes: list[tuple[str, str]]
) -> None:
    known = {"trainium_backend": backend, "trainium_shared_storage": storage}
    assert roles_of("network", **known) == network
    # Where every role has something to do on the nodes, if they are looked at.
    due = ["shared_storage"] if nodes_are_looked_at(known) else []
    assert roles_of("nodes", **known, nodes_due=due) == nodes
