"""Templates and variables of a role as Ansible makes them, with the role's own defaults."""

from __future__ import annotations

import importlib
from configparser import RawConfigParser
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import filter_loader, init_plugin_loader
from ansible.template import Templar, trust_as_template

ROLES = Path(__file__).parents[1] / "roles"
FACTS = {
    "Debian": {"os_family": "Debian", "distribution": "Ubuntu", "distribution_version": "24.04", "kernel": "6.8.0-aws"},
    "RedHat": {"os_family": "RedHat", "distribution": "Amazon", "distribution_version": "2023", "kernel": "6.1.1"},
}


@cache
def plugins() -> None:
    """Lookups and filters are found, those of the collection also where a test has imported it before."""
    # Of a collection of which a test has imported a part already, Ansible finds no filters.
    folder = ROLES.parent / "plugins/filter"
    package = "ansible_collections.trainium.cluster.plugins.filter"
    modules = [importlib.import_module(f"{package}.{file.stem}") for file in sorted(folder.glob("*.py"))]
    init_plugin_loader()
    filter_loader.get("ansible.builtin.quote")
    for module in modules:
        for name, function in module.FilterModule().filters().items():
            full = f"trainium.cluster.{name}"
            filter_loader._cached_non_collection_wrappers[full] = filter_loader._wrap_func(full, full, function)


def evaluated(role: str, expression: str, **given: Any) -> Any:
    """What an expression of the role is on a node, with some variables given."""
    variables: dict[str, Any] = {}
    for part in ("defaults", "vars"):
        file = ROLES / role / part / "main.yml"
        variables.update(yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {})
    trusted = {name: _trusted(value) for name, value in variables.items()}
    common: dict[str, Any] = {
        "ansible_facts": FACTS["Debian"],
        "ansible_search_path": [str(ROLES / role)],
        "ansible_version": {"full": "2.19.0"},
        "inventory_hostname": "n1",
        "role_path": str(ROLES / role),
    }
    plugins()
    templar = Templar(DataLoader(), variables={**trusted, **common, **given})
    return templar.template(trust_as_template("{{ " + expression + " }}"))


def rendered(role: str, template: str, **given: Any) -> str:
    """The text of a file of ``templates/``."""
    text = evaluated(role, f"lookup('ansible.builtin.template', '{template}')", **given)
    assert isinstance(text, str)
    return text


def unit(text: str) -> dict[str, dict[str, list[str]]]:
    """A unit of systemd: section -> name -> its values in their order."""
    sections: dict[str, dict[str, list[str]]] = {}
    here: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            here = sections.setdefault(line.strip("[]"), {})
        elif line and line[0] not in "#;":
            name, equals, value = line.partition("=")
            assert equals, line
            here.setdefault(name, []).append(value)
    return sections


def ini(text: str) -> dict[str, dict[str, str]]:
    """What dnf reads of a repository's file."""
    parser = RawConfigParser()
    parser.read_string(text)
    return {section: dict(parser.items(section)) for section in parser.sections()}


def _trusted(value: Any) -> Any:
    if isinstance(value, str):
        return trust_as_template(value)
    if isinstance(value, list):
        return [_trusted(one) for one in value]
    if isinstance(value, dict):
        return {name: _trusted(one) for name, one in value.items()}
    return value
