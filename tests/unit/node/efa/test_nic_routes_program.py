"""The program for the routes of further network interfaces, from what `ip` shows to what it is told."""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.node.efa.test_nic_routes import DEFAULT, FILE, KERNEL_RULES, link, text

# It shows what a file says for its words, and notes whatever else it is asked for.
IP = """#!/bin/sh
here=$(dirname "$0")
case "$*" in
  "-4 -json "*) cat "$here/$(echo "$*" | tr ' ' _)" ;;
  *) echo "$*" >> "$here/told" ;;
esac
exit $(cat "$here/code" 2> /dev/null || echo 0)
"""
LINKS = [link("ens7", 4, "10.0.48.7/20"), link("docker0", 1, "172.17.0.1/16"), link("ens6", 3, "10.0.32.6/20")]
LINKS.append(link("ens5", 2, "10.0.16.4/20"))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a few interfaces, and its `ip` first on the path."""
    (tmp_path / "ip").write_text(IP)
    (tmp_path / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    show(tmp_path, "address show up", LINKS)
    show(tmp_path, "rule", KERNEL_RULES)
    show(tmp_path, "route show table all", [DEFAULT])

    def readlink(path: str) -> str:
        if path == "/sys/class/net/docker0/device/driver":
            raise FileNotFoundError(path)
        name = path.removeprefix("/sys/class/net/").removesuffix("/device/driver")
        return f"../../../../bus/pci/drivers/{'ena' if name in ('ens5', 'ens6', 'ens7') else 'veth'}"

    monkeypatch.setattr(os, "readlink", readlink)
    return tmp_path


def show(folder: Path, words: str, value: Any) -> None:
    name = f"-4 -json {words}".replace(" ", "_")
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


def run(folder: Path) -> list[str]:
    runpy.run_path(str(FILE), run_name="__main__")
    return (folder / "told").read_text().splitlines() if (folder / "told").exists() else []


def test_interfaces_of_ec2_get_tables_in_their_order_and_no_others(node: Path) -> None:
    told = run(node)
    assert [line for line in told if "rule add" in line] == [
        "-4 rule add from 10.0.32.6 table 5201 priority 20720 protocol 172",
        "-4 rule add from 10.0.48.7 table 5202 priority 20720 protocol 172",
    ]
    assert len(told) == 6
    assert not [line for line in told if "docker0" in line or "172.17" in line or "ens5" in line]


def test_the_first_interface_is_the_primary_one_where_no_route_tells(node: Path) -> None:
    show(node, "route show table all", "")
    assert {line.split(" dev ")[1].split()[0] for line in run(node) if " dev " in line} == {"ens6", "ens7"}


def test_what_fails_ends_it(node: Path) -> None:
    (node / "code").write_text("2")
    with pytest.raises(Exception, match="returned non-zero exit status 2"):
        run(node)


@pytest.fixture(scope="module")
def program() -> Any:
    return SimpleNamespace(**runpy.run_path(str(FILE)))


def other(program: Any, *links: dict[str, Any], rules: Any = (), routes: Any = (DEFAULT,)) -> list[str]:
    """What is done about interfaces beside a primary one."""
    primary = link("ens5", 2, "10.0.16.4/20")
    return text(program.plan([primary, *links], [*KERNEL_RULES, *rules], list(routes)))


def test_the_next_table_is_free_or_the_one_after_it(program: Any) -> None:
    ens6 = link("ens6", 3, "10.0.16.5/20")
    for held, table in (([], 5201), (["5201"], 5202), (["5201", "5202"], 5203), (["5202"], 5201)):
        routes = [DEFAULT, *({"dst": "default", "dev": "x", "table": one} for one in held)]
        assert {call.split("table ")[1].split()[0] for call in other(program, ens6, routes=routes)} == {str(table)}


def test_numbers_mean_the_same_tables_as_text(program: Any) -> None:
    rules = [{"priority": 5, "src": "all", "table": 5201, "protocol": 2}]
    own = {"priority": 20720, "src": "10.0.16.9", "table": "5202", "protocol": 172}
    calls = other(program, link("ens6", 3, "10.0.16.5/20"), rules=[*rules, own])
    # Its own table, 5202, is free again, since its rule goes.
    assert calls[0] == "rule del from 10.0.16.9 table 5202 priority 20720"
    assert calls[-1] == "rule add from 10.0.16.5 table 5202 priority 20720 protocol 172"


@pytest.mark.parametrize(
    "interface",
    [
        {"ifname": "ens6", "ifindex": 3},
        link("ens6", 3),
        # Of an address alone nobody knows the router; two in a /31 have none.
        link("ens6", 3, "10.0.16.5/32"),
        link("ens6", 3, "10.0.16.5/31"),
        {"ifname": "ens6", "addr_info": [{"local": "169.254.0.5", "prefixlen": 16, "scope": "link"}]},
    ],
)
def test_an_interface_without_a_subnet_gets_no_table(program: Any, interface: dict[str, Any]) -> None:
    assert other(program, interface) == []


def test_the_smallest_subnet_of_ec2_has_a_router_too(program: Any) -> None:
    assert other(program, link("ens6", 3, "10.0.16.5/28"))[:2] == [
        "route replace 10.0.16.0/28 dev ens6 table 5201 protocol 172 scope link",
        "route replace default via 10.0.16.1 dev ens6 table 5201 protocol 172 onlink",
    ]
    assert other(program, link("ens6", 3, "10.0.16.5/30")) != []


def test_only_the_addresses_without_a_rule_get_one(program: Any) -> None:
    rule = {"priority": 10, "src": "10.0.32.9", "table": "1001"}
    calls = other(program, link("ens6", 3, "10.0.32.5/20", "10.0.32.9/32", "10.0.32.10/32"), rules=[rule])
    assert [call.split()[3] for call in calls if call.startswith("rule")] == ["10.0.32.5", "10.0.32.10"]


@pytest.mark.parametrize(
    ("routes", "name"),
    [
        # Without a metric it comes before all others.
        ([{**DEFAULT, "metric": 1, "dev": "a"}, {"dst": "default", "dev": "b"}], "b"),
        ([{**DEFAULT, "table": "5201", "dev": "a"}, {**DEFAULT, "metric": 900, "dev": "b"}], "b"),
        ([{**DEFAULT, "dst": "10.0.0.0/8", "metric": 1, "dev": "a"}, {**DEFAULT, "dev": "b"}], "b"),
        # One to nowhere.
        ([{"dst": "default", "type": "unreachable", "metric": 1}, {**DEFAULT, "dev": "b"}], "b"),
        ([{**DEFAULT, "table": "main", "dev": "b"}], "b"),
    ],
)
def test_which_interface_others_are_beside(program: Any, routes: list[dict[str, Any]], name: str) -> None:
    assert program.primary([link("c", 1)], routes) == name
