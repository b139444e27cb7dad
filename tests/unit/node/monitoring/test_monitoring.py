"""Who listens where, by what ss and the kernel say."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.monitoring import (
    Listener,
    listeners_of,
    ports_of,
    unit_of,
    versions_of,
)
from hypothesis import given
from hypothesis import strategies as st

SHOWN = """\
LISTEN 0      4096       127.0.0.1:9090      0.0.0.0:*    users:(("prometheus",pid=310,fd=7))
LISTEN 0      128    127.0.0.53%lo:53        0.0.0.0:*    users:(("systemd-resolve",pid=90,fd=14))
LISTEN 0      4096               *:9100            *:*    users:(("node_exporter",pid=42,fd=3),("x",pid=43,fd=3))
LISTEN 0      5            0.0.0.0:8000      0.0.0.0:*
"""
PROMETHEUS = "trainium-prometheus"
WANTED = {PROMETHEUS: "127.0.0.1:9090"}


def test_lines_of_ss() -> None:
    assert listeners_of(SHOWN) == [
        Listener("127.0.0.1", 9090, "prometheus", 310),
        Listener("127.0.0.53", 53, "systemd-resolve", 90),
        Listener("*", 9100, "node_exporter", 42),
        Listener("0.0.0.0", 8000, "", 0),
    ]


@given(st.text())
def test_any_other_text_is_no_error(text: str) -> None:
    for found in listeners_of(text):
        assert found.port >= 0


@pytest.mark.parametrize(
    ("cgroups", "unit"),
    [
        ("0::/system.slice/ssh.service\n", "ssh.service"),
        ("12:pids:/\n1:name=systemd:/system.slice/grafana-server.service\n0::/\n", "grafana-server.service"),
        ("0::/system.slice/a.service/inner\n", "a.service"),
        ("0::/user.slice/user-0.slice/session-1.scope\n", ""),
        ("", ""),
    ],
)
def test_unit_of_a_process(cgroups: str, unit: str) -> None:
    assert unit_of(cgroups) == unit


@pytest.mark.parametrize(
    ("address", "unit", "listens", "taken"),
    [
        ("127.0.0.1", f"{PROMETHEUS}.service", True, False),
        ("0.0.0.0", f"{PROMETHEUS}.service", False, False),
        ("127.0.0.1", "prometheus.service", False, True),
        ("*", "", False, True),
        # Another address is not in the way.
        ("192.0.2.1", "", False, False),
    ],
)
def test_a_port_is_own_or_taken_or_free(address: str, unit: str, listens: bool, taken: bool) -> None:
    found = ports_of(WANTED, [Listener(address, 9090, "python3", 7)], {7: unit})[PROMETHEUS]
    assert found["listens"] is listens
    assert found["taken_by"] == (["python3 (process 7)"] if taken else [])


def test_a_free_port() -> None:
    found = ports_of(WANTED, [Listener("127.0.0.1", 9091, "x", 7)], {7: ""})[PROMETHEUS]
    assert found == {"address": "127.0.0.1", "port": 9090, "listens": False, "taken_by": []}


def test_versions_of_an_environment() -> None:
    names = ["tensorboard-2.21.0.dist-info", "Typing_Extensions-4.16.0.dist-info", "__pycache__"]
    assert versions_of(names) == {"tensorboard": "2.21.0", "typing-extensions": "4.16.0"}
