"""The dashboard of role monitoring, as Grafana reads it: panels beside and below each other, and what each asks."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.rendered import rendered

BOARD: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def board() -> dict[str, Any]:
    BOARD.update(json.loads(rendered("monitoring", "trainium-cluster.json.j2")))
    return BOARD


def shown() -> list[dict[str, Any]]:
    """All panels but the rows that are their titles."""
    return [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def asked() -> dict[tuple[str, str], str]:
    return {(p["title"], t["legendFormat"]): t["expr"] for p in shown() for t in p["targets"]}


def test_panels_fill_the_grid_and_none_covers_another() -> None:
    panels = BOARD["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)) == 24 * (max(y for _x, y in cells) + 1)
    assert [panel["id"] for panel in panels] == list(range(1, 22))
    places = [(panel["gridPos"]["y"], panel["gridPos"]["x"]) for panel in panels]
    assert places == sorted(places) and places[0] == (0, 0)


def test_rows_are_open_and_named_after_what_is_below_them() -> None:
    rows = [panel for panel in BOARD["panels"] if panel["type"] == "row"]
    assert [row["title"] for row in rows] == ["Cluster", "Neuron", "Hosts"]
    assert all((row["collapsed"], row["panels"], row["gridPos"]["h"]) == (False, [], 1) for row in rows)
    # Numbers are small, curves are not.
    sizes = {(panel["type"], panel["gridPos"]["w"], panel["gridPos"]["h"]) for panel in shown()}
    assert sizes == {("stat", 4, 4), ("timeseries", 12, 8)}
    assert [panel["type"] for panel in shown()].count("stat") == 6


def test_every_question_is_about_the_nodes_that_are_chosen() -> None:
    assert len(asked()) == 23
    assert all('node=~"$node"' in question for question in asked().values())
    (choice,) = BOARD["templating"]["list"]
    assert (choice["name"], choice["type"], choice["label"]) == ("node", "query", "Node")
    assert choice["query"] == {"query": "label_values(up, node)", "refId": "node"}
    # All of them at first, and of those that come later as well; asked anew whenever the time changes (2).
    assert (choice["multi"], choice["includeAll"], choice["allValue"], choice["refresh"]) == (True, True, ".*", 2)
    assert choice["current"] == {"text": "All", "value": "$__all"}
    assert choice["sort"] == 1, "by name, ascending"


def test_braces_and_names_of_metrics_are_those_of_prometheus() -> None:
    for question in asked().values():
        assert all(question.count(one) == question.count(other) for one, other in ("()", "{}", "[]"))
        assert "$__rate_interval" in question or "rate(" not in question
        for counter in re.findall(r"\b[a-z_]+_total\b", question):
            # A counter only grows: what is of interest is by how much, or of how many things there is one.
            assert re.search(rf"(rate|increase)\({counter}\{{[^}}]*\}}\[|count by \(node\) \({counter}\{{", question), (
                question
            )


def test_a_cluster_without_trouble_shows_zero_and_not_nothing() -> None:
    numbers = {panel["title"]: panel["targets"][0]["expr"] for panel in shown() if panel["type"] == "stat"}
    counted = {title for title, question in numbers.items() if question.endswith(" or vector(0)")}
    assert counted == {
        *("Nodes that answer", "Nodes that do not", "NeuronCores in use", "Uncorrected ECC events, 1 day"),
    }
    answers = {title: re.sub(" or vector.*", "", numbers[title]) for title in numbers if title.startswith("Nodes")}
    assert answers["Nodes that answer"].replace("== 1", "== 0") == answers["Nodes that do not"]


def test_trouble_is_red_from_the_first_event_on() -> None:
    red = {}
    for panel in shown():
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {"steps": []})["steps"]
        if steps:
            assert panel["fieldConfig"]["defaults"]["thresholds"]["mode"] == "absolute"
            red[panel["title"]] = [(step["color"], step["value"]) for step in steps]
    assert set(red) == {"Nodes that do not", "Uncorrected ECC events, 1 day"}
    assert all(steps == [("green", None), ("red", 1)] for steps in red.values())


def test_shares_end_at_one_hundred_per_cent_and_nothing_is_below_zero() -> None:
    for panel in shown():
        field = panel["fieldConfig"]["defaults"]
        assert field["min"] == 0 and panel["fieldConfig"]["overrides"] == []
        wanted = 1 if field["unit"] == "percentunit" and panel["type"] == "timeseries" else None
        assert field.get("max") == wanted, panel["title"]


@pytest.mark.parametrize(
    ("words", "unit"),
    [
        ("utilisation|^CPU$|^Memory$|fullest", "percentunit"),
        ("^Device memory", "bytes"),
        ("^Network", "Bps"),
        ("per second", "ops"),
        ("events|^Nodes|Cores in use|^Load", "none"),
    ],
)
def test_the_unit_is_that_of_what_is_asked(words: str, unit: str) -> None:
    found = [panel for panel in shown() if re.search(words, panel["title"])]
    assert {panel["fieldConfig"]["defaults"]["unit"] for panel in found} == {unit}


def test_how_numbers_and_curves_are_shown() -> None:
    options = {panel["type"]: panel["options"] for panel in shown()}
    # The last value, in the colour of its threshold.
    assert options["stat"] == {
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "colorMode": "value",
        "graphMode": "none",
    }
    assert options["timeseries"]["legend"]["calcs"] == ["lastNotNull", "max"]
    assert options["timeseries"]["tooltip"] == {"mode": "multi", "sort": "desc"}
    for panel in shown():
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == list("ABCDE"[: len(letters)])


def test_what_could_be_misread_is_explained() -> None:
    told = {panel["title"]: panel["description"] for panel in shown() if panel["description"]}
    assert told["Network, sent"] == told["Network, received"] != ""
    assert {"NeuronCore utilisation", "ECC events per hour", "Uncorrected ECC events, 1 day"} <= set(told)


def test_it_is_renewed_by_itself_and_cannot_be_changed() -> None:
    assert (BOARD["uid"], BOARD["title"]) == ("trainium-cluster", "Trainium cluster")
    assert (BOARD["refresh"], BOARD["time"]) == ("30s", {"from": "now-1h", "to": "now"})
    assert (BOARD["editable"], BOARD["timezone"]) == (False, "browser")
    assert BOARD["annotations"] == {"list": []}
    # Grafana brings older ones up to date, and takes a file with another version for a newer one.
    assert BOARD["schemaVersion"] == 39 and BOARD["version"] == 1
    assert {"trainium", "neuron"} == set(BOARD["tags"])


QUESTIONS = {
    ("ECC events per hour", "{{node}} device {{neuron_device_index}} {{event_type}}"): (
        'sum by (node, neuron_device_index, event_type) (increase(hardware_ecc_events_total{node=~"$node"}[1h])) > 0'
    ),
    ("Uncorrected ECC events, 1 day", ""): (
        'sum(increase(hardware_ecc_events_total{event_type=~".*_uncorrected",node=~"$node"}[1d])) or vector(0)'
    ),
    ("CPU", "{{node}}"): (
        '1 - avg by (node) (rate(node_cpu_seconds_total{mode="idle",node=~"$node"}[$__rate_interval]))'
    ),
    ("Memory", "{{node}}"): (
        '1 - node_memory_MemAvailable_bytes{node=~"$node"} / node_memory_MemTotal_bytes{node=~"$node"}'
    ),
    ("Disks, fullest file system", "{{node}}"): (
        'max by (node) (1 - node_filesystem_avail_bytes{fstype!~"tmpfs|overlay|squashfs",node=~"$node"}'
        ' / node_filesystem_size_bytes{fstype!~"tmpfs|overlay|squashfs",node=~"$node"})'
    ),
    ("Load per CPU", "{{node}}"): (
        'node_load1{node=~"$node"} / on (node) count by (node) (node_cpu_seconds_total{mode="idle",node=~"$node"})'
    ),
    ("Executions per second", "{{node}} errors"): (
        'sum by (node) (rate(execution_errors_total{node=~"$node"}[$__rate_interval])) > 0'
    ),
}


def test_questions_that_calculate() -> None:
    assert {key: question for key, question in asked().items() if key in QUESTIONS} == QUESTIONS
