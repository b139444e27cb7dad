"""What the role monitoring writes for Prometheus, Grafana and neuron-monitor, as these read it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.rendered import FACTS, ROLES, evaluated, rendered, unit

CLUSTER: dict[str, Any] = {
    "groups": {"head": ["head"], "compute": ["n1", "n2"]},
    "hostvars": {"head": {}, "n1": {"private_address": "192.0.2.1"}, "n2": {"ansible_host": "198.51.100.2"}},
    "inventory_hostname": "head",
}
PAGE = {"__monitoring_wanted_files": [{"source": "trainium-cluster.json.j2", "path": "page"}]}
# What delivers the metrics of a name (Neuron Monitor User Guide, and the exporter that comes with it).
DELIVERS = {
    "neuroncore_utilization_ratio": "neuroncore_counters",
    "neuroncore_memory_usage": "memory_used",
    "neuron_runtime_memory_used": "memory_used",
    "execution_": "execution_stats",
    "hardware_ecc_events": "neuron_hw_counters",
}


def text(template: str, **given: Any) -> str:
    return rendered("monitoring", template, **{**CLUSTER, **given})


def test_neuron_monitor_delivers_what_the_pages_show() -> None:
    found = json.loads(text("neuron-monitor.json.j2", monitoring_neuron_period="7s"))
    assert found["period"] == "7s"
    (runtimes,) = found["neuron_runtimes"]
    # Of every process.
    assert re.fullmatch(runtimes["tag_filter"], "4711-train")
    delivered = {one["type"] for one in (*runtimes["metrics"], *found["system_metrics"])}
    asked = re.findall(r"\b((?:neuron|execution|hardware)_?[a-z_]+)\{", json.loads(text("contents.j2", **PAGE))["page"])
    assert len(asked) > 10
    for name in asked:
        (source,) = {kind for start, kind in DELIVERS.items() if name.startswith(start)}
        assert source in delivered, name
    # How busy the hosts of runtimes are, for whoever asks Prometheus itself.
    assert {"neuron_runtime_vcpu_usage", "vcpu_usage", "memory_info"} <= delivered


def test_prometheus_asks_every_node_and_itself() -> None:
    found = yaml.safe_load(text("prometheus.yml.j2", monitoring_prometheus_scrape_interval="30s"))
    # A rule is judged as often as there is something new.
    assert found["global"] == {"scrape_interval": "30s", "evaluation_interval": "30s"}
    nodes, itself = found["scrape_configs"]
    assert nodes == {
        "job_name": "trainium",
        "file_sd_configs": [{"files": ["/etc/trainium-monitoring/targets.json"]}],
    }
    assert itself["job_name"] == "prometheus"
    assert itself["static_configs"] == [{"targets": ["127.0.0.1:9090"], "labels": {"node": "head"}}]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            {},
            [
                *("node head 127.0.0.1:9100", "neuron n1 192.0.2.1:8000", "node n1 192.0.2.1:9100"),
                *("neuron n2 198.51.100.2:8000", "node n2 198.51.100.2:9100"),
            ],
        ),
        ({"monitoring_node_exporter": False}, ["neuron n1 192.0.2.1:8000", "neuron n2 198.51.100.2:8000"]),
        ({"monitoring_neuron_exporter": False, "monitoring_nodes": ["n1"]}, ["node n1 192.0.2.1:9100"]),
        # What a node has said of itself in this play counts, then what the user gives, then its address in the VPC.
        (
            {
                "monitoring_nodes": ["n1", "n2", "n3"],
                "monitoring_neuron_nodes": [],
                "hostvars": {
                    "n1": {"__monitoring_address": "192.0.2.9", "monitoring_listen_address": "192.0.2.8"},
                    "n2": {"monitoring_listen_address": "192.0.2.8", "private_address": "192.0.2.7"},
                    "n3": {},
                },
            },
            ["node n1 192.0.2.9:9100", "node n2 192.0.2.8:9100", "node n3 n3:9100"],
        ),
    ],
)
def test_which_addresses_prometheus_asks(given: dict[str, Any], wanted: list[str]) -> None:
    found = json.loads(text("targets.json.j2", **given))
    assert [f"{one['labels']['job']} {one['labels']['node']} {one['targets'][0]}" for one in found] == wanted
    assert all(len(one["targets"]) == 1 for one in found)


def test_grafana_finds_its_prometheus_and_its_dashboard() -> None:
    found = yaml.safe_load(text("grafana-datasource.yml.j2", monitoring_prometheus_scrape_interval="30s"))
    (source,) = found["datasources"]
    dashboard = json.loads(text("trainium-cluster.json.j2"))
    assert {(one["type"], one["uid"]) for one in of("datasource", dashboard)} == {(source["type"], source["uid"])}
    # Asked by Grafana and not by the browser, which does not reach it.
    assert (source["url"], source["access"]) == ("http://127.0.0.1:9090", "proxy")
    # $__rate_interval is made of it.
    assert source["jsonData"] == {"timeInterval": "30s"}
    assert (source["isDefault"], source["editable"], source["name"]) == (True, False, "Prometheus")
    providers = yaml.safe_load(text("grafana-dashboards.yml.j2"))
    (provider,) = providers["providers"]
    place = evaluated("monitoring", "__monitoring_dashboard", **CLUSTER)
    assert place.rpartition("/")[0] == provider["options"]["path"]
    assert (provider["type"], provider["allowUiUpdates"], provider["name"]) == ("file", False, "trainium")
    assert found["apiVersion"] == providers["apiVersion"] == 1


def of(name: str, value: Any) -> list[Any]:
    """What is called so, however deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    own = [value[name]] if isinstance(value, dict) and name in value else []
    return own + [found for one in inner for found in of(name, one)]


def test_grafana_shows_and_lets_nobody_change_or_log_in() -> None:
    lines = unit(text("grafana.conf.j2"))["Service"]["Environment"]
    told = dict(line.split("=", 1) for line in lines)
    assert told["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert told["GF_SERVER_HTTP_PORT"] == "3000"
    # The home page is the dashboard that was written.
    place = evaluated("monitoring", "__monitoring_dashboard", **CLUSTER)
    assert told["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == place
    # Looking needs no account, and there is none: no admin with the password "admin", nobody signs up.
    assert told["GF_AUTH_ANONYMOUS_ENABLED"] == "true"
    assert told["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert told["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert told["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert told["GF_USERS_ALLOW_SIGN_UP"] == "false"
    # It calls nobody.
    calls = {name: value for name, value in told.items() if name.startswith("GF_ANALYTICS_")}
    assert set(calls.values()) == {"false"}
    assert {name.removeprefix("GF_ANALYTICS_") for name in calls} == {
        *("REPORTING_ENABLED", "CHECK_FOR_UPDATES", "CHECK_FOR_PLUGIN_UPDATES"),
    }


def test_files_are_rendered_where_they_are_templates_and_copied_where_not() -> None:
    wanted = [
        {"source": "prometheus.yml.j2", "path": "/a"},
        {"source": "trainium.html", "path": "/b"},
        {"source": "neuron-monitor.json.j2", "path": "/c"},
    ]
    found = json.loads(text("contents.j2", __monitoring_wanted_files=wanted))
    assert list(found) == ["/a", "/b", "/c"]
    assert found["/a"] == text("prometheus.yml.j2")
    assert found["/b"] == (ROLES / "monitoring/files/trainium.html").read_text(encoding="utf-8")
    assert json.loads(found["/c"])["period"] == "5s"


@pytest.mark.parametrize("system", ["Debian", "RedHat"])
def test_the_exporter_s_packages_are_only_named_where_there_are_some(system: str) -> None:
    given = {**CLUSTER, "ansible_facts": FACTS[system], "inventory_hostname": "n1"}
    packages = evaluated("monitoring", "__monitoring_packages", **given)
    assert packages == (["python3-prometheus-client", "prometheus-node-exporter"] if system == "Debian" else [])
