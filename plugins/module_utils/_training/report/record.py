# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A training as one record, and the record as JSON, as CSV and for TensorBoard. Pure.

Given the same logs and the same report, each file has the same bytes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import (
    Metrics,
    Segment,
    averages,
    drawable,
    steady,
    window_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.event_file import event_file

_COLUMNS = (
    "step",
    "epoch",
    "loss",
    "loss_average",
    "learning_rate",
    "throughput",
    "throughput_average",
    "time",
    "segment",
)
EVENT_SUFFIX = ".trainium"


def _number(value: Any) -> float | None:
    """A finite number of a report, which may come as text; None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


def _count(value: Any) -> int:
    return int(_number(value) or 0)


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(content) for name, content in value.items() if content not in (None, "")}


def _nodes(report: Mapping[str, Any]) -> list[dict[str, str]]:
    details = report.get("node_details")
    if not isinstance(details, Sequence) or isinstance(details, str):
        return []
    names = ("name", "address", "instance_type", "availability_zone")
    return [{name: str(node.get(name) or "") for name in names} for node in details if isinstance(node, Mapping)]


def record_of(
    metrics: Metrics, report: Mapping[str, Any], prices: Mapping[str, Any], running: bool = False
) -> dict[str, Any]:
    """All that is known of a training: ``summary``, ``segments``, ``nodes``, ``versions``, ``cost`` and ``steps``.

    ``report`` is report.json; what it lacks comes from the log. ``prices``: USD an hour by instance type. Times in
    seconds since 1970; values that are no number stay nan or inf here. Raises ValueError for a price that is none.
    """
    samples = metrics.samples
    window = window_of(len(samples))
    losses = averages([sample.loss for sample in samples], window)
    # Each start warms up by itself.
    rates = [
        rate
        for _segment, part in groupby(samples, key=lambda sample: sample.segment)
        for rate in averages([sample.throughput for sample in part], window)
    ]
    times = [time for part in metrics.segments for time in (part.started_at, part.ended_at) if time is not None]
    started = _first_start(_number(report.get("started_at")), metrics.segments) or min(times, default=None)
    ended = _number(report.get("ended_at")) if not running else None
    until = ended or max(times, default=None)
    seconds = max(0.0, until - started) if started and until else None
    last = metrics.segments[-1] if metrics.segments else None
    nodes = _nodes(report)
    finite = [sample for sample in samples if drawable(sample.loss)]
    best = min(finite, key=lambda sample: sample.loss, default=None)
    return {
        "name": str(report.get("name") or "training"),
        "job_id": str(report.get("job_id") or ""),
        "launcher": str(report.get("launcher") or ""),
        "state": str(report.get("state") or ""),
        "running": running,
        "summary": {
            "steps": samples[-1].step if samples else 0,
            "steps_wanted": _count(report.get("steps_wanted")),
            "steps_logged": len(samples),
            "steps_redone": sum(part.redone for part in metrics.segments),
            "initial_loss": samples[0].loss if samples else None,
            "final_loss": samples[-1].loss if samples else None,
            "final_loss_average": losses[-1] if losses else None,
            "best_loss": best.loss if best else None,
            "best_loss_step": best.step if best else None,
            "throughput": steady([sample.throughput for sample in samples]),
            "warm_up_steps": metrics.segments[0].warm_up if metrics.segments else 0,
            "average_window": window,
            "started_at": started,
            "ended_at": until,
            "seconds": seconds,
            "nodes": _count(report.get("nodes")) or (last.nodes if last else 0),
            "processes": _count(report.get("processes")) or (last.processes if last else 0),
            "restarts": max(_count(report.get("restarts")), len(metrics.segments) - 1, 0),
            "not_a_number": [
                {"step": sample.step, "loss": repr(sample.loss)} for sample in samples if not drawable(sample.loss)
            ],
        },
        "segments": [part._asdict() for part in metrics.segments],
        "nodes": nodes,
        "versions": _texts(report.get("versions")) or metrics.versions,
        "cost": cost_of(nodes, seconds, prices, str(report.get("head_type") or "")),
        "steps": [
            {**sample._asdict(), "loss_average": loss, "throughput_average": rate}
            for sample, loss, rate in zip(samples, losses, rates)
        ],
    }


def _first_start(last_start: float | None, segments: Sequence[Segment]) -> float | None:
    """When the training was started first: the report knows its last start only.

    The dates in a log may be of another time zone, so that only the time between them counts.
    """
    starts = [part.started_at for part in segments]
    if last_start is None or not starts or starts[0] is None or starts[-1] is None:
        return last_start
    return last_start - (starts[-1] - starts[0])


def plain(value: Any) -> Any:
    """For JSON, which knows neither nan nor inf: null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: plain(content) for name, content in value.items()}
    if isinstance(value, list):
        return [plain(content) for content in value]
    return value


def as_json(record: Mapping[str, Any]) -> bytes:
    """The record as strict JSON, one line a step; a loss that is no number is null and named in ``not_a_number``."""
    known = plain(dict(record))
    steps = ",\n".join("    " + json.dumps(step, ensure_ascii=True) for step in known.pop("steps"))
    head = json.dumps(known, indent=2, ensure_ascii=True)[:-2]
    return f'{head},\n  "steps": [{chr(10) + steps + chr(10) + "  " if steps else ""}]\n}}\n'.encode()


def as_csv(record: Mapping[str, Any]) -> bytes:
    """The steps as CSV with a header; nan and inf as Python and pandas read them, empty where nothing is known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for step in record["steps"]:
        writer.writerow(["" if step[name] is None else repr(step[name]) for name in _COLUMNS])
    return text.getvalue().encode()


def safe_name(name: str) -> str:
    """A name that is one folder, whatever the job is called."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".")[:64] or "training"


def as_events(record: Mapping[str, Any]) -> tuple[str, bytes]:
    """Name and content of TensorBoard's event file. A step without a date has the time of the one before."""
    started = seconds = float(record["summary"]["started_at"] or 0)
    steps = []
    for step in record["steps"]:
        seconds = float(step["time"]) if step["time"] is not None else seconds
        said = {name: step[name] for name in ("learning_rate", "throughput") if not math.isnan(step[name])}
        values = {"loss": step["loss"], **said}
        steps.append((seconds, step["step"], values))
    # TensorBoard wants the time in seconds after tfevents; the rest of the name is free.
    name = f"events.out.tfevents.{int(started):010}.{safe_name(record['job_id'])}{EVENT_SUFFIX}"
    return f"tensorboard/{safe_name(record['name'])}/{name}", event_file(started, steps)


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
    nodes: Sequence[Mapping[str, str]], seconds: float | None, prices: Mapping[str, Any], head_type: str = ""
) -> dict[str, Any] | None:
    """The nodes' hours times their prices; None without prices, nodes or a duration.

    ``head_type`` is the type of a head node that trains nothing and is paid for all the same.
    ``without_price`` names the types that the prices lack: their hours are not in ``usd``. Only the time of the job
    counts: nodes that wait for it, storage and traffic cost more.
    """
    known = checked_prices(prices)
    if not known or not nodes or seconds is None:
        return None
    hours = seconds / 3600
    counts = Counter([node["instance_type"] for node in nodes] + [head_type] * bool(head_type))
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
