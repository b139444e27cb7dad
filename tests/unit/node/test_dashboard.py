"""The dashboard of role monitoring, as Grafana reads it: panels beside and below each other, and what each asks."""

from __future__ import annotations

import json
from pathlib import Path

from ansible.plugins.filter import core
from jinja2 import Environment

TEMPLATE = Path(__file__).parents[3] / "roles/monitoring/templates/trainium-cluster.json.j2"


def test_dashboard() -> None:
    environment = Environment(trim_blocks=True)  # noqa: S701 JSON, not HTML
    environment.filters["to_nice_json"] = core.to_nice_json
    panels = json.loads(environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render())["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)) == 24 * (max(y for _x, y in cells) + 1)
    assert [panel["id"] for panel in panels] == list(range(1, 22))
    asked = {(p["title"], t["legendFormat"]): t["expr"] for p in panels for t in p.get("targets", [])}
    assert len(asked) == 23
    assert all('node=~"$node"' in question for question in asked.values())
    assert asked["ECC events per hour", "{{node}} device {{neuron_device_index}} {{event_type}}"] == (
        'sum by (node, neuron_device_index, event_type) (increase(hardware_ecc_events_total{node=~"$node"}[1h])) > 0'
    )
