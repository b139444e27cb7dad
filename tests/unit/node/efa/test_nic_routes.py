"""The program that the role efa installs for the routes of further network interfaces."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

FILE = Path(__file__).parents[4] / "roles" / "efa" / "templates" / "trainium-nic-routes.j2"

KERNEL_RULES: list[dict[str, Any]] = [
    {"priority": 0, "src": "all", "table": "local"},
    {"priority": 32766, "src": "all", "table": "main"},
    {"priority": 32767, "src": "all", "table": "default"},
]
DEFAULT = {"dst": "default", "gateway": "10.0.16.1", "dev": "ens5", "protocol": "dhcp", "metric": 100}


def link(name: str, index: int, *addresses: str) -> dict[str, Any]:
    info = []
    for address in addresses:
        local, _slash, length = address.partition("/")
        info.append({"family": "inet", "local": local, "prefixlen": int(length), "scope": "global"})
    return {"ifname": name, "ifindex": index, "addr_info": info}


@pytest.fixture(scope="module")
def program() -> Any:
    return SimpleNamespace(**runpy.run_path(str(FILE)))


def text(calls: list[list[str]]) -> list[str]:
    return [" ".join(call) for call in calls]


def test_it_is_the_same_after_jinja() -> None:
    assert not any(mark in FILE.read_text() for mark in ("{{", "{%", "{#"))


def test_the_prefix_is_that_of_the_address(program: Any) -> None:
    # No route of the kernel to 10.0.16.0/20 by ens6: ParallelCluster's hook and the DLAMI's helper delete it.
    links = [link("ens5", 2, "10.0.16.4/20"), link("ens6", 3, "10.0.16.5/20")]
    assert text(program.plan(links, KERNEL_RULES, [DEFAULT])) == [
        "route replace 10.0.16.0/20 dev ens6 table 5201 protocol 172 scope link",
        "route replace default via 10.0.16.1 dev ens6 table 5201 protocol 172 onlink",
        "rule add from 10.0.16.5 table 5201 priority 20720 protocol 172",
    ]


@pytest.mark.parametrize("src, length", [("10.0.16.5", None), ("10.0.16.0", 20)])
def test_an_address_with_a_rule_is_left_alone(program: Any, src: str, length: int | None) -> None:
    rule = {"priority": 10, "src": src, "table": "1001", **({"srclen": length} if length else {})}
    links = [link("ens5", 2, "10.0.16.4/20"), link("ens6", 3, "10.0.16.5/20")]
    assert program.plan(links, [*KERNEL_RULES, rule], [DEFAULT]) == []


def test_tables_of_others_are_kept_away_from(program: Any) -> None:
    links = [link("ens5", 2, "10.0.16.4/20"), link("ens6", 3, "10.0.16.5/20"), link("ens7", 4, "10.0.16.6/20")]
    routes = [DEFAULT, {"dst": "default", "dev": "tun0", "table": "5201", "protocol": "boot"}]
    rules = [*KERNEL_RULES, {"priority": 5, "src": "all", "table": "5202"}]
    calls = text(program.plan(links, rules, routes))
    assert [call.split()[4] for call in calls if call.startswith("rule")] == ["table", "table"]
    assert {call.split("table ")[1].split()[0] for call in calls} == {"5203", "5204"}


def test_a_second_run_makes_the_same_again(program: Any) -> None:
    links = [link("ens5", 2, "10.0.16.4/20"), link("ens6", 3, "10.0.16.5/20")]
    rules = [*KERNEL_RULES, {"priority": 20720, "src": "10.0.16.5", "table": "5201", "protocol": "172"}]
    routes = [DEFAULT, {"dst": "10.0.16.0/20", "dev": "ens6", "table": "5201", "protocol": "172"}]
    calls = text(program.plan(links, rules, routes))
    assert calls[0] == "rule del from 10.0.16.5 table 5201 priority 20720"
    assert calls[1:] == text(program.plan(links, KERNEL_RULES, [DEFAULT]))


def test_each_subnet_has_its_own_router_and_further_addresses_their_rules(program: Any) -> None:
    links = [link("ens5", 2, "10.0.16.4/20"), link("ens6", 3, "10.0.32.5/20", "10.0.32.9/32")]
    calls = text(program.plan(links, KERNEL_RULES, [DEFAULT]))
    assert calls[1].startswith("route replace default via 10.0.32.1 dev ens6")
    assert [call.split()[3] for call in calls[2:]] == ["10.0.32.5", "10.0.32.9"]


def test_the_primary_interface_is_the_one_with_the_best_default_route(program: Any) -> None:
    links = [link("ens5", 2, "10.0.16.4/20"), link("ens6", 3, "10.0.16.5/20")]
    routes = [{**DEFAULT, "dev": "ens5", "metric": 200}, {**DEFAULT, "dev": "ens6", "metric": 100}]
    assert all("ens6" not in call for call in text(program.plan(links, KERNEL_RULES, routes)))
    assert program.primary(links, []) == "ens5"
    assert program.primary([], []) == ""
