"""A node's root chooses its host name, and with it no other entry of /etc/hosts of all nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

TEMPLATE = Path(__file__).parents[2] / "roles" / "cluster_hosts" / "templates" / "entries.j2"


def entries(*nodenames: str, names: bool = False) -> list[list[str]]:
    nodes = {
        f"compute-{number}": {"private_address": f"10.0.0.{number}", "ansible_facts": {"nodename": nodename}}
        for number, nodename in enumerate(nodenames, start=1)
    }
    given: dict[str, Any] = {"__cluster_hosts_nodes": list(nodes), "hostvars": nodes, "__cluster_hosts_names": names}
    lookup = f"{{{{ lookup('template', '{TEMPLATE}') }}}}"
    text = Templar(loader=DataLoader(), variables=given).template(trust_as_template(lookup))
    return [line.split() for line in text.splitlines() if line.strip()]


def test_a_name_is_an_alias() -> None:
    both = [["10.0.0.1", "compute-1", "ip-10-0-0-1"], ["10.0.0.2", "compute-2", "ip-10-0-0-2.ec2.internal"]]
    assert entries("ip-10-0-0-1", "ip-10-0-0-2.ec2.internal") == both
    assert entries("ip-10-0-0-1", "ip-10-0-0-2", names=True) == [line[:2] for line in both]


@pytest.mark.parametrize(
    "name", ["x\n10.0.0.9 head mirror", "x\r10.0.0.9 head", "x head", "x\n", "", "größe", "{{ 1 }}"]
)
def test_what_is_no_name_is_none(name: str) -> None:
    assert entries("ip-10-0-0-1", name) == [["10.0.0.1", "compute-1", "ip-10-0-0-1"], ["10.0.0.2", "compute-2"]]


def test_an_entry_has_the_address_in_the_network_and_all_names() -> None:
    nodes = {
        "a": {"private_address": "10.0.0.1", "ansible_host": "x", "private_dns_name": "ip-10-0-0-1.ec2.internal"},
        "b": {"private_address": "", "ansible_host": "198.51.100.2", "ansible_facts": {}},
        "10.0.0.3": {},
    }
    given: dict[str, Any] = {"__cluster_hosts_nodes": list(nodes), "hostvars": nodes, "__cluster_hosts_names": False}
    lookup = f"{{{{ lookup('template', '{TEMPLATE}') }}}}"
    text = Templar(loader=DataLoader(), variables=given).template(trust_as_template(lookup))
    # A line for each, and none that is of two.
    assert [line.split() for line in text.splitlines() if line.strip()] == [
        ["10.0.0.1", "ip-10-0-0-1.ec2.internal", "a"],
        ["198.51.100.2", "b"],
        ["10.0.0.3", "10.0.0.3"],
    ]
