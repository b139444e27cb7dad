# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A curve over steps as SVG that fits any width. Pure.

Labels and grid are placed by percentages and keep their size; only the curves' own drawing area is stretched, with
lines that keep their width. So one drawing serves a phone and a wide screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import drawable

Point = tuple[float, "float | None"]

# As many columns as a large screen has pixels to show them; each keeps its lowest and its highest value.
COLUMNS = 600
_SIZE = 1000


class Axis(NamedTuple):
    """From where to where, and the marks on it."""

    low: float
    high: float
    ticks: list[float]
    step: float


def nice_step(span: float, count: int) -> float:
    """The distance of about ``count`` marks over a span: 1, 2 or 5 times a power of ten."""
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= raw * 0.999), 10 * power)


def axis(values: Sequence[float], from_zero: bool = False, whole: bool = False, count: int = 5) -> Axis:
    """The axis for values that are all drawable. ``whole``: only whole marks, and no room beyond the values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    size = max(abs(low), abs(high))
    # Values that differ only by rounding are one value, shown in the middle.
    if high - low <= size * 1e-9 or size < 1e-300:
        room = 1.0 if whole or size < 1e-300 else size * 0.1
        low, high = low - room, high + room
    step = nice_step(high - low, count)
    if whole:
        step = max(1.0, step)
        first, last = math.ceil(low / step), math.floor(high / step)
    else:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        low, high = first * step, last * step
    return Axis(low, high, [number * step for number in range(first, last + 1)], step)


def label(value: float, step: float) -> str:
    """A mark's number, with as many decimals as the distance of the marks needs."""
    if value == 0:
        return "0"
    if step < 1e-4 or abs(value) >= 1e7:
        # As many digits as tell it from the next mark.
        digits = max(0, min(6, math.floor(math.log10(abs(value))) - math.floor(math.log10(step) + 1e-9)))
        mantissa, _e, exponent = f"{value:.{digits}e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def thin(points: Sequence[Point], columns: int = COLUMNS) -> list[Point]:
    """At most two points a column, the lowest and the highest, in their order; a column of none but gaps stays a gap.

    ``points`` by rising x; y is None where there is nothing to draw. First and last point stay.
    """
    if len(points) <= 2 * columns:
        return list(points)
    start, end = points[0][0], points[-1][0]
    width = (end - start) / columns or 1.0
    kept: list[Point] = []
    for _number, column in groupby(points, key=lambda point: min(columns - 1, int((point[0] - start) / width))):
        inside = list(column)
        drawn = [point for point in inside if point[1] is not None]
        kept += sorted({min(drawn, key=itemgetter(1)), max(drawn, key=itemgetter(1))}) if drawn else inside[:1]
    return [*points[: kept[0] != points[0]], *kept, *points[len(points) - (kept[-1] != points[-1]) :]]


def _part(value: float, scale: Axis) -> float:
    """Where a value lies on its axis, 0 to 1."""
    return (value - scale.low) / (scale.high - scale.low)


def _short(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".")


def path(points: Sequence[Point], across: Axis, up: Axis) -> str:
    """The ``d`` of a path; it is broken at gaps, and a point alone is a dot."""
    parts: list[str] = []
    for _gap, run in groupby(points, key=lambda point: point[1] is None):
        places = [
            f"{_short(_part(x, across) * _SIZE)} {_short((1 - _part(y, up)) * _SIZE)}" for x, y in run if y is not None
        ]
        if places:
            parts.append("M" + "L".join(places) + ("h.1" if len(places) == 1 else ""))
    return "".join(parts)


def _percent(part: float) -> str:
    return f"{_short(part * 100)}%"


def _grid(across: Axis, up: Axis) -> list[str]:
    lines = []
    for value in up.ticks:
        y = _percent(1 - _part(value, up))
        lines.append(f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>')
        lines.append(f'<text class="up" x="-8" y="{y}" dy=".32em">{label(value, up.step)}</text>')
    for value in across.ticks:
        x = _percent(_part(value, across))
        lines.append(f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="100%"/>')
        lines.append(f'<text class="across" x="{x}" y="100%" dy="1.6em">{label(value, across.step)}</text>')
    return lines


def chart(
    title: str, curves: Sequence[tuple[str, Sequence[Point]]], starts: Sequence[float] = (), from_zero: bool = False
) -> tuple[str, str]:
    """The drawing, and the values that its read-out shows, as ``step:value`` of the first curve.

    ``title`` is plain text without markup, ``curves`` are ``(class, points)``, ``starts`` the steps with which the job
    started again.
    """
    drawn = [(kind, [(x, y if y is not None and drawable(y) else None) for x, y in points]) for kind, points in curves]
    steps = [x for _kind, points in drawn for x, _y in points]
    across = axis(steps, whole=True)
    # More marks up than across, where labels need the room of a phone.
    up = axis([y for _kind, points in drawn for _x, y in points if y is not None], from_zero=from_zero, count=6)
    parts = [
        f'<svg class="chart" role="img" aria-label="{title}" data-low="{across.low:g}" data-high="{across.high:g}">',
        *_grid(across, up),
        '<text class="what" x="-8" y="100%" dy="1.6em">step</text>',
    ]
    for x in starts:
        where = _percent(_part(x, across))
        parts.append(f'<line class="start" x1="{where}" x2="{where}" y1="0" y2="100%"/>')
    parts.append(
        f'<svg class="area" width="100%" height="100%" viewBox="0 0 {_SIZE} {_SIZE}" preserveAspectRatio="none">'
    )
    thinned = [(kind, thin(points)) for kind, points in drawn]
    for kind, points in thinned:
        line = path(points, across, up)
        if line:
            # A step alone is seen as a dot.
            alone = " alone" if sum(1 for _x, y in points if y is not None) == 1 else ""
            parts.append(f'<path class="curve {kind}{alone}" d="{line}"/>')
    parts.append("</svg>")
    # Where there is no number, a mark on the upper edge says so.
    gaps = {_percent(_part(x, across)) for x, y in (drawn[0][1] if drawn else []) if y is None}
    parts += [f'<line class="gap" x1="{x}" x2="{x}" y1="0" y2="10"/>' for x in sorted(gaps)]
    parts.append('<line class="cursor" x1="0" x2="0" y1="0" y2="100%"/></svg>')
    shown = " ".join(f"{x:g}:{y:.6g}" for x, y in (thinned[0][1] if thinned else []) if y is not None)
    return "".join(parts), shown
