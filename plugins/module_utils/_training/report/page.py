# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of a training as one HTML page that needs nothing else. Pure."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import duration
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.chart import chart
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.style import POLICY, SCRIPT, STYLE

_LONGEST = 200
_NAMED = 20  # so many steps without a number are named one by one
_BAD = ("FAIL", "CANCEL", "TIMEOUT", "OUT_OF", "DEADLINE", "PREEMPT")


def text(value: Any) -> str:
    """A value as HTML shows it: escaped, cut where it is endless, with characters that cannot be seen written out."""
    plain = str(value)
    if len(plain) > _LONGEST:
        plain = plain[:_LONGEST] + "…"
    # Control characters, marks that turn the direction of writing, and halves of characters.
    shown = (f"\\u{ord(c):04x}" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") else c for c in plain)
    return html.escape("".join(shown), quote=True)


def moment(seconds: float | None) -> str:
    """``2022-12-21 00:51 UTC``; '' for none and for what no calendar has."""
    if seconds is None or not 0 < seconds < 2**37:
        return ""
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M} UTC"


def number(value: float | None, digits: int = 4) -> str:
    """A figure with so many digits that count; ``nan`` and ``inf`` by their names, a dash for none."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return str(value)
    if 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _tile(name: str, value: str, note: str = "") -> str:
    """``value`` and ``note`` are plain text."""
    small = f"<small>{text(note)}</small>" if note else ""
    return f'<div class="tile"><dt>{text(name)}</dt><dd>{text(value)}{small}</dd></div>'


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> str:
    """A table in a card; on a phone each row becomes a block with the heads beside its values. ``note`` is HTML.

    '' where there is neither a row nor a note.
    """
    if not rows and not note:
        return ""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in heads)
    body = "".join(
        "<tr>"
        + "".join(f'<td data-label="{text(name)}">{text(value)}</td>' for name, value in zip(heads, row))
        + "</tr>"
        for row in rows
    )
    below = f"<p>{note}</p>" if note else ""
    kind = ' class="pairs"' if len(heads) == 2 else ""
    table = f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f'<section class="card"><h2>{text(title)}</h2>{table}{below}</section>'


def _figure(title: str, record: Mapping[str, Any], key: str, keys: Mapping[str, str], from_zero: bool) -> str:
    """A chart of one of the steps' values, with that value's average where ``keys`` names one."""
    steps = record["steps"]
    curves = [("raw" if "mean" in keys else "mean", [(step["step"], step[key]) for step in steps])]
    if "mean" in keys:
        curves.append(("mean", [(step["step"], step[f"{key}_average"]) for step in steps]))
    starts = [part["first_step"] for part in record["segments"][1:] if part["first_step"] is not None]
    drawing, points = chart(text(title), curves, starts, from_zero)
    legend = {**keys, **({"start": "started again"} if starts else {})}
    if 'class="gap"' in drawing:
        legend["gap"] = "not a number"
    shown = "".join(f'<span class="{kind}">{text(name)}</span>' for kind, name in legend.items())
    last = steps[-1]
    return (
        f'<figure class="card" data-points="{points}"><figcaption><h2>{text(title)}</h2>'
        f'<span class="keys">{shown}</span>'
        f'<span class="read">step {last["step"]:,}: {number(last[key])}</span></figcaption>'
        f'<div class="plot">{drawing}</div></figure>'
    )


def _charts(record: Mapping[str, Any]) -> list[str]:
    if not record["steps"]:
        return ['<section class="card"><h2>No steps yet</h2><p>The log shows no step of the training.</p></section>']
    window = record["summary"]["average_window"]
    both = {"raw": "each step", "mean": f"mean of {window} steps"} if window > 1 else {}
    none: dict[str, str] = {}
    figures = (
        ("Loss", "loss", both, False),
        ("Throughput, examples a second", "throughput", both, True),
        ("Learning rate", "learning_rate", none, True),
    )
    # Not every script logs all of them.
    return [
        _figure(title, record, key, keys, zero)
        for title, key, keys, zero in figures
        if key == "loss" or not all(math.isnan(step[key]) for step in record["steps"])
    ]


def _tiles(record: Mapping[str, Any]) -> str:
    found, cost = record["summary"], record["cost"]
    wanted = found["steps_wanted"]
    lowest = (
        f"lowest {number(found['best_loss'])} at step {found['best_loss_step']:,}" if found["best_loss_step"] else ""
    )
    rate = found["throughput"]
    tiles = [
        _tile(
            "Loss",
            f"{number(found['initial_loss'])} → {number(found['final_loss'])}" if record["steps"] else "-",
            lowest,
        ),
        _tile("Steps", f"{found['steps']:,}" + (f" of {wanted:,}" if wanted else "")),
        _tile("Throughput", f"{number(rate)} /s" if rate is not None else "-", "examples, median when warm"),
        _tile(
            "Size",
            _plural(found["nodes"], "node") if found["nodes"] else "-",
            f"{found['processes']:,} processes" if found["processes"] else "",
        ),
        _tile(
            "Restarts",
            str(found["restarts"]),
            f"{_plural(found['steps_redone'], 'step')} done again" if found["restarts"] else "",
        ),
    ]
    if found["seconds"] is not None:
        tiles.insert(3, _tile("Duration", duration(found["seconds"]), "so far" if record["running"] else ""))
    if cost and cost["usd"] is not None:
        tiles.append(_tile("Cost, estimated", f"{cost['usd']:,.2f} USD", "see below"))
    return f'<dl class="tiles">{"".join(tiles)}</dl>'


def _strange(record: Mapping[str, Any]) -> str:
    strange = record["summary"]["not_a_number"]
    if not strange:
        return ""
    named = ", ".join(f"{step['step']:,} ({step['loss']})" for step in strange[:_NAMED])
    more = f" and {len(strange) - _NAMED:,} more" if len(strange) > _NAMED else ""
    advice = "lower the learning rate, warm up longer, or go back to an earlier checkpoint"
    words = f"{_plural(len(strange), 'step')}: {html.escape(named)}{more}. From there on nothing is learnt: {advice}."
    return f'<section class="card note"><h2>Loss that is not a number</h2><p>{words}</p></section>'


def _cost(record: Mapping[str, Any]) -> str:
    cost = record["cost"]
    if not cost:
        return ""
    rows = [
        (row["instance_type"], row["nodes"], f"{row['hours']:.2f}", f"{row['price']:g} USD", f"{row['usd']:,.2f} USD")
        for row in cost["rows"]
    ]
    note = (
        "Hours of the job times nodes times the price an hour that trainium_price_per_hour was given. Not in it: time "
        "in which nodes waited for work, storage, traffic and taxes."
    )
    if cost["without_price"]:
        note += f" No price is given for {', '.join(text(kind) for kind in cost['without_price'][:_NAMED])}."
    return _table("Cost, estimated", ("Instance type", "Nodes", "Hours", "Price an hour", "Cost"), rows, note)


def _segments(record: Mapping[str, Any]) -> str:
    parts = record["segments"]
    if len(parts) < 2:
        return ""
    rows = [
        (
            part["number"],
            moment(part["started_at"]),
            part["nodes"] or "",
            f"{part['first_step']:,} to {part['last_step']:,}" if part["steps"] else "none that count",
            part["redone"] or "",
            number(part["throughput"]) if part["throughput"] is not None else "",
        )
        for part in parts
    ]
    heads = ("Start", "First step at", "Nodes", "Steps", "Done again later", "Examples a second")
    return _table("Starts of the job", heads, rows, "A step that was done again counts once, the later one.")


def _head(record: Mapping[str, Any]) -> str:
    state = str(record.get("state") or "")
    found = record["summary"]
    if record["running"]:
        kind, word = " going", "Running: figures so far"
    elif any(bad in state.upper() for bad in _BAD):
        kind, word = " bad", f"Ended as {state}"
    else:
        kind, word = "", "Finished"
    since, until = moment(found["started_at"]), moment(found["ended_at"])
    words = [
        f"job {record['job_id']}" if record["job_id"] else "",
        f"{since} to {until}" if since and until else since,
        f"by {record['launcher']}" if record["launcher"] else "",
    ]
    rest = "".join(f" · {text(word)}" for word in words if word)
    state = f'<span class="state{kind}">{text(word)}</span>'
    return f'<header><h1>{text(record["name"])}</h1><p class="sub">{state}{rest}</p></header>'


def page(record: Mapping[str, Any]) -> bytes:
    """The page. ``record`` is that of training_records.record_of; nothing in it is trusted."""
    nodes = [
        [node[key] for key in ("name", "address", "instance_type", "availability_zone")] for node in record["nodes"]
    ]
    parts = [
        _head(record),
        _tiles(record),
        _strange(record),
        *_charts(record),
        _segments(record),
        _table("Nodes", ("Name", "Address", "Instance type", "Zone"), nodes),
        _cost(record),
        _table("Versions", ("Program", "Version"), sorted(record["versions"].items())),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(record['name'])}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, parts))
        + '\n<p class="files">The same figures: <a href="metrics.json">metrics.json</a>, '
        f'<a href="metrics.csv">metrics.csv</a>, '
        f"and the folder tensorboard for TensorBoard.</p>\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    ).encode("utf-8", "replace")
