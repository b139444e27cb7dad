"""What the role acceptance tells nodes of each other, and people of nodes that did not pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rendered import rendered

HOSTS: dict[str, Any] = {
    "n1": {"private_dns_name": "ip-1.internal", "private_address": "192.0.2.1", "ansible_host": "198.51.100.1"},
    "n2": {"private_dns_name": "", "private_address": "", "ansible_host": "198.51.100.2"},
    "n3": {},
}


@pytest.mark.parametrize("peers", [["n1", "n2", "n3"], ["n2"], []])
def test_each_peer_has_its_names_and_the_address_in_the_network(peers: list[str]) -> None:
    found = json.loads(rendered("acceptance", "names.json.j2", __acceptance_peers=peers, hostvars=HOSTS))
    known = {
        "n1": {"name": "n1", "full_name": "ip-1.internal", "address": "192.0.2.1"},
        "n2": {"name": "n2", "full_name": "n2", "address": "198.51.100.2"},
        "n3": {"name": "n3", "full_name": "n3", "address": "n3"},
    }
    assert found == [known[name] for name in peers]


def check(reason: str) -> dict[str, str]:
    return {"reason": reason}


def test_who_did_not_pass_is_named_with_every_reason() -> None:
    nodes = [
        {"name": "good", "result": "passed", "checks": [check("")], "slurm_reason": ""},
        {"name": "n1", "result": "failed", "checks": [check("no answer at port 22"), check("")], "slurm_reason": "x"},
        {"name": "n2", "result": "held", "checks": [check("")], "slurm_reason": "bad fan"},
        {"name": "n3", "result": "failed", "checks": [], "slurm_reason": ""},
    ]
    seen = [check("15 of 16 Neuron devices"), check("clock is not synchronised"), check("")]
    hosts = {"n1": {"__acceptance_node": {"checks": seen}}, "n2": {"__acceptance_node": {"checks": []}}, "n3": {}}
    given = {"__acceptance_gate": {"nodes": nodes}, "__acceptance_there": ["good", "n1", "n2"], "hostvars": hosts}
    # In one line.
    assert rendered("acceptance", "out.j2", **given).strip() == (
        "n1 (15 of 16 Neuron devices, clock is not synchronised, no answer at port 22), n2 (bad fan), "
        "n3 (lost in the middle of the run)"
    )
