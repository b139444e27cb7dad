"""The units of role monitoring, as systemd itself reads them: where each listens, and what a taken over one can do."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rendered import rendered, unit

UNITS = ("neuron-exporter", "node-exporter", "prometheus", "tensorboard")
CLUSTER = {"groups": {"head": ["head"], "compute": ["n1", "n2"]}, "private_address": "192.0.2.1"}
# Of what systemd judges, what a service can do without; newer releases judge more.
JUDGED = (
    *("AmbientCapabilities", "CapabilityBoundingSet_", "DeviceAllow", "LockPersonality", "NoNewPrivileges"),
    *("PrivateDevices", "PrivateTmp", "ProtectControlGroups", "ProtectHome", "ProtectHostname", "ProtectKernelLogs"),
    *("ProtectKernelModules", "ProtectKernelTunables", "ProtectSystem", "RemoveIPC", "RestrictAddressFamilies_"),
    *("RestrictNamespaces_", "RestrictRealtime", "RestrictSUIDSGID", "SystemCallArchitectures", "SystemCallFilter_"),
    *("UMask", "UserOrDynamicUser"),
)
# All of them have a network, and do what @system-service lets ordinary services do.
SHARED = {
    *(f"RestrictAddressFamilies_{family}" for family in ("AF_INET_INET6", "AF_NETLINK", "AF_UNIX")),
    *("SystemCallFilter_privileged", "SystemCallFilter_resources"),
}
DEVICES = {"PrivateDevices", "DeviceAllow"}


def text(name: str, **given: Any) -> str:
    return rendered("monitoring", f"{name}.service.j2", **{**CLUSTER, **given})


def exposed(tmp_path: Path, name: str, **given: Any) -> set[str]:
    """What systemd's own judgement finds open; it must have understood every line."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not here")
    file = tmp_path / f"{name}.service"
    file.write_text(text(name, **given))
    command = ["systemd-analyze", "security", "--offline=true", "--json=short", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd judges only units that it has loaded")
    assert [line for line in done.stderr.splitlines() if file.name in line] == []
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    # By other names nothing would be found open.
    judged = [one["json_field"] for one in rows]
    assert [prefix for prefix in JUDGED if not any(field.startswith(prefix) for field in judged)] == []
    found = [one["json_field"] for one in rows if float(one["exposure"] or 0)]
    return {field for field in found if field.startswith(JUDGED)} - SHARED


@pytest.mark.parametrize(
    ("name", "more"),
    [
        # The devices of Neuron are what it shows.
        ("neuron-exporter", DEVICES),
        ("node-exporter", DEVICES | {"ProtectHome", "SystemCallFilter_clock"}),
        ("prometheus", set()),
        ("tensorboard", {"ProtectHome"}),
    ],
)
def test_whoever_takes_a_service_over_has_little_of_the_node(tmp_path: Path, name: str, more: set[str]) -> None:
    assert exposed(tmp_path, name) <= more


def test_a_user_of_ones_own_has_no_more_than_one_of_systemd(tmp_path: Path) -> None:
    found = exposed(tmp_path, "tensorboard", monitoring_tensorboard_user="trainer")
    assert found <= {"ProtectHome", "RemoveIPC", "UserOrDynamicUser"}
    service = unit(text("tensorboard", monitoring_tensorboard_user="trainer"))["Service"]
    assert service["User"] == ["trainer"] and "DynamicUser" not in service


@pytest.mark.parametrize("name", UNITS)
def test_a_refused_call_is_an_error_and_no_death(name: str) -> None:
    service = unit(text(name))["Service"]
    assert service["SystemCallErrorNumber"] == ["EPERM"]
    assert "@system-service" in service["SystemCallFilter"]


def test_the_node_exporter_may_ask_how_well_the_clock_is_kept() -> None:
    assert unit(text("node-exporter"))["Service"]["SystemCallFilter"][1:] == ["adjtimex clock_adjtime"]


@pytest.mark.parametrize("name", UNITS)
def test_a_service_starts_with_the_network_and_again_whenever_it_ends(name: str) -> None:
    found = unit(text(name))
    assert "network-online.target" in found["Unit"]["After"][0].split()
    assert found["Install"]["WantedBy"] == ["multi-user.target"]
    assert found["Service"]["Restart"] == ["always"]
    # Without an end: a node may be without network or a full disk for hours.
    assert found["Unit"]["StartLimitIntervalSec"] == ["0"]
    assert 1 <= int(found["Service"]["RestartSec"][0]) <= 10


@pytest.mark.parametrize("name", ["neuron-exporter", "node-exporter", "prometheus"])
def test_the_network_is_waited_for_and_not_only_followed(name: str) -> None:
    assert unit(text(name))["Unit"]["Wants"] == ["network-online.target"]


def test_tensorboard_waits_for_the_runs_that_it_shows() -> None:
    found = unit(text("tensorboard", monitoring_tensorboard_logdir="/fsx/my runs"))
    assert "remote-fs.target" in found["Unit"]["After"][0].split()
    assert found["Unit"]["RequiresMountsFor"] == ['"/fsx/my runs"']
    # It reads what users wrote, maybe into their homes, and changes none of it.
    assert found["Service"]["ProtectHome"] == ["read-only"]
    assert shlex.split(found["Service"]["ExecStart"][0]) == [
        "/opt/trainium-monitoring/tensorboard/bin/tensorboard",
        *("--host", "127.0.0.1", "--port", "6006", "--logdir", "/fsx/my runs"),
    ]


def test_prometheus_keeps_its_data_for_itself_and_is_given_time_to_write_it() -> None:
    service = unit(text("prometheus", monitoring_prometheus_retention="3d"))["Service"]
    program, *options = service["ExecStart"][0].split()
    assert program == "/usr/bin/prometheus"
    told = dict(option.removeprefix("--").split("=", 1) for option in options)
    (folder,) = service["StateDirectory"]
    assert told == {
        "config.file": "/etc/trainium-monitoring/prometheus.yml",
        "storage.tsdb.path": f"/var/lib/{folder}",
        "storage.tsdb.retention.time": "3d",
        "web.console.templates": "/etc/trainium-monitoring/consoles",
        "web.listen-address": "127.0.0.1:9090",
    }
    assert service["StateDirectoryMode"] == ["0700"]
    # It writes its head block when it stops, and has a file open for each block and connection.
    assert int(service["TimeoutStopSec"][0]) >= 60
    assert int(service["LimitNOFILE"][0]) >= 65536
    # It reads its configuration again at a signal (its manual, "Configuration").
    assert service["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert service["DynamicUser"] == ["yes"]


def test_nodes_are_asked_at_their_own_address_and_the_host_at_none_that_others_reach() -> None:
    shown = {name: text(name, monitoring_host="n1") for name in ("node-exporter", "neuron-exporter")}
    here = {name: unit(one)["Service"]["ExecStart"][0].split() for name, one in shown.items()}
    assert here["node-exporter"][1:] == ["--web.listen-address=127.0.0.1:9100"]
    assert here["neuron-exporter"][-2:] == ["127.0.0.1", "8000"]
    given = {"monitoring_node_exporter_arguments": ["--no-collector.zfs", "--path.rootfs=/a b"]}
    there = unit(text("node-exporter", **given))["Service"]["ExecStart"][0]
    assert shlex.split(there)[1:] == [
        "--web.listen-address=192.0.2.1:9100",
        *given["monitoring_node_exporter_arguments"],
    ]


@pytest.mark.parametrize(
    ("facts", "python"), [("Debian", "/usr/bin/python3"), ("RedHat", "/opt/trainium-monitoring/exporter/bin/python")]
)
def test_the_exporter_of_neuron_is_started_as_its_launcher_wants_it(facts: str, python: str) -> None:
    service = unit(text("neuron-exporter", ansible_facts={"os_family": facts}))["Service"]
    # Unbuffered, so that the journal has what it said last.
    assert service["ExecStart"][0].split() == [
        *(python, "-u", "/opt/trainium-monitoring/neuron_exporter.py", "/opt/aws/neuron/bin"),
        *("/etc/trainium-monitoring/neuron-monitor.json", "192.0.2.1", "8000"),
    ]
    assert service["DynamicUser"] == ["yes"]
