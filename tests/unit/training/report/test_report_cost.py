"""What a training cost: any time, any number of nodes, several types, and types without a price."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import Metrics
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.record import cost_of, record_of
from hypothesis import given
from hypothesis import strategies as st

PRICES = {"trn1.32xlarge": 21.5, "m5.2xlarge": 0.384, "trn2.48xlarge": "35.7"}


def nodes(**counts: int) -> list[dict[str, str]]:
    """So many nodes of each type, of which the dot is left out."""
    return [{"instance_type": kind.replace("_", ".")} for kind, count in counts.items() for _node in range(count)]


@pytest.mark.parametrize(
    ("of", "seconds", "head", "usd"),
    [
        (nodes(trn1_32xlarge=1), 3600, "", 21.5),
        (nodes(trn1_32xlarge=1), 1800, "", 10.75),
        (nodes(trn1_32xlarge=2), 5400, "", 64.5),
        (nodes(trn1_32xlarge=1), 1, "", 21.5 / 3600),
        (nodes(trn1_32xlarge=1), 0, "", 0.0),
        # More than a day, of which none is lost.
        (nodes(trn1_32xlarge=4), 26.5 * 3600, "", 2279.0),
        (nodes(trn1_32xlarge=2, trn2_48xlarge=1), 2700, "", 0.75 * (43 + 35.7)),
        (nodes(trn1_32xlarge=2), 900, "m5.2xlarge", 0.25 * (43 + 0.384)),
        # A head node of the same type is one more of them.
        (nodes(trn1_32xlarge=2), 1800, "trn1.32xlarge", 32.25),
        (nodes(trn1_32xlarge=1, p5_48xlarge=1), 1800, "", 10.75),
        (nodes(p5_48xlarge=1), 1800, "", None),
    ],
)
def test_hours_times_nodes_times_prices(of: list[dict[str, str]], seconds: float, head: str, usd: float | None) -> None:
    found = cost_of(of, seconds, PRICES, head)
    assert found
    assert found["usd"] == (None if usd is None else pytest.approx(usd))
    assert found["without_price"] == (["p5.48xlarge"] if any("p5" in str(node) for node in of) else [])
    assert all(row["hours"] == pytest.approx(seconds / 3600) for row in found["rows"])
    assert sum(row["nodes"] for row in found["rows"]) == len(of) + bool(head) - len(found["without_price"])


@given(st.integers(1, 9), st.floats(0, 1e7), st.floats(0, 1e4))
def test_twice_the_time_or_the_nodes_is_twice_the_cost(count: int, seconds: float, price: float) -> None:
    def usd(count: int, seconds: float) -> Any:
        return (cost_of(nodes(trn1_32xlarge=count), seconds, {"trn1.32xlarge": price}) or {})["usd"]

    assert usd(2 * count, seconds) == pytest.approx(2 * usd(count, seconds))
    assert usd(count, 2 * seconds) == pytest.approx(2 * usd(count, seconds))


@pytest.mark.parametrize(
    ("report", "usd"),
    [
        ({"started_at": 1000, "ended_at": 1000 + 5400}, 32.25),
        ({"started_at": "1000", "ended_at": "1900"}, 5.375),
        # A clock that was set back.
        ({"started_at": 5000, "ended_at": 1000}, 0.0),
    ],
)
def test_the_time_is_that_of_the_report(report: dict[str, Any], usd: float) -> None:
    whole = {**report, "node_details": [{"name": "a", "instance_type": "trn1.32xlarge"}]}
    record = record_of(Metrics([], [], {}), whole, PRICES)
    assert record["cost"]["usd"] == pytest.approx(usd)
