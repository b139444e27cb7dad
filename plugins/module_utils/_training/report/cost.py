# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a training cost, estimated. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def checked_prices(prices: Mapping[str, Any]) -> dict[str, float]:
    """USD an hour by instance type. Raises ValueError for what is no price."""
    result = {}
    for kind, value in prices.items():
        try:
            price = float(value)
        except (TypeError, ValueError, OverflowError):
            price = math.nan
        if isinstance(value, bool) or not 0 <= price < 1e6:
            raise ValueError(
                f"The price of {str(kind)[:40]} an hour is {str(value)[:40]!r}; "
                "give US dollars as a number in trainium_price_per_hour."
            )
        result[str(kind)] = price
    return result


def cost_of(
    nodes: Sequence[Mapping[str, str]], seconds: float | None, prices: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The nodes' hours times their prices; None without prices, nodes or a duration.

    ``without_price`` names the types that the prices lack: their hours are not in ``usd``. Only the time of the job
    counts: nodes that wait for it, storage and traffic cost more.
    """
    known = checked_prices(prices)
    if not known or not nodes or seconds is None:
        return None
    hours = seconds / 3600
    counts = Counter(node["instance_type"] for node in nodes)
    rows: list[dict[str, Any]] = [
        {
            "instance_type": kind,
            "nodes": count,
            "hours": hours,
            "price": known[kind],
            "usd": hours * count * known[kind],
        }
        for kind, count in sorted(counts.items())
        if kind in known
    ]
    return {
        "usd": math.fsum(row["usd"] for row in rows) if rows else None,
        "rows": rows,
        "without_price": sorted(kind or "unknown" for kind in counts if kind not in known),
    }
