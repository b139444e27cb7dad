"""Axes, thinning and paths of the report's curves."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.chart import (
    Point,
    axis,
    chart,
    label,
    path,
    thin,
)
from hypothesis import given
from hypothesis import strategies as st

drawable = st.floats(-1e30, 1e30)


@given(st.lists(drawable, min_size=1, max_size=30), st.booleans())
def test_an_axis_holds_all_values_and_few_marks(values: list[float], from_zero: bool) -> None:
    found = axis(values, from_zero=from_zero)
    room = (found.high - found.low) * 1e-6
    assert found.low - room <= min(values) and max(values) <= found.high + room
    assert found.low < found.high
    assert 2 <= len(found.ticks) <= 14
    assert found.ticks == sorted(set(found.ticks))
    if from_zero:
        assert found.low <= 0 <= found.high


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=30))
def test_steps_have_whole_marks_within_them(values: list[int]) -> None:
    found = axis(values, whole=True)
    assert all(mark == int(mark) for mark in found.ticks)
    assert all(found.low <= mark <= found.high for mark in found.ticks)
    assert len(found.ticks) <= 12


@pytest.mark.parametrize(
    ("value", "step", "shown"),
    [
        (0, 0.5, "0"),
        (2.5, 0.5, "2.5"),
        (2, 0.5, "2.0"),
        (28000, 2000, "28,000"),
        (2.8e-6, 2e-7, "2.8e-6"),
        (0.0004, 0.0001, "0.0004"),
        (-3, 1, "-3"),
        (2e9, 1e9, "2e9"),
        (1e7, 1e6, "1.0e7"),
        (9_000_000, 1e6, "9,000,000"),
        # No more digits than there is room for.
        (1.23456789e-5, 1e-14, "1.234568e-5"),
    ],
)
def test_marks_are_readable(value: float, step: float, shown: str) -> None:
    assert label(value, step) == shown


@given(drawable, st.floats(1e-30, 1e30))
def test_no_mark_is_longer_than_its_room(value: float, step: float) -> None:
    assert len(label(value, max(step, abs(value) * 1e-9))) <= 18


points = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=400).map(
    lambda values: [(float(step), value) for step, value in enumerate(values)]
)


@given(points, st.integers(1, 40))
def test_thinning_keeps_the_extremes_the_ends_and_the_order(all_points: list[Point], columns: int) -> None:
    kept = thin(all_points, columns)
    assert len(kept) <= 2 * columns + 2 or kept == all_points
    assert [x for x, _y in kept] == sorted({x for x, _y in kept})
    assert set(kept) <= set(all_points)
    assert kept[:1] + kept[-1:] == all_points[:1] + all_points[-1:]
    heights = [y for _x, y in all_points if y is not None]
    shown = [y for _x, y in kept if y is not None]
    assert (min(heights, default=0), max(heights, default=0)) == (min(shown, default=0), max(shown, default=0))


def test_a_path_is_broken_where_a_value_is_missing() -> None:
    across, up = axis([0, 4], whole=True), axis([0, 1])
    drawn = path([(0, 0), (1, 1), (2, None), (3, 0.5), (4, None)], across, up)
    assert drawn == "M0 1000L250 0M750 500h.1"


def test_a_drawing_is_xml_with_a_curve_and_labels() -> None:
    curve: list[Point] = [(step, 10 / step) for step in range(1, 5000)]
    drawing, shown = chart("Loss", [("raw", curve), ("mean", curve)], starts=[2000])
    tree = ElementTree.fromstring(drawing)  # noqa: S314 - our own
    assert [item.get("class") for item in tree.iter("path")] == ["curve raw", "curve mean"]
    assert {"0", "10", "2,000", "step"} <= {item.text for item in tree.iter("text")}
    assert len([item for item in tree.iter("line") if item.get("class") == "start"]) == 1
    assert len(drawing) < 60_000
    assert shown.startswith("1:10 ") and shown.endswith(f"4999:{10 / 4999:.6g}")


def texts(drawing: str, kind: str) -> list[str | None]:
    tree = ElementTree.fromstring(drawing)  # noqa: S314 - our own
    return [item.text for item in tree.iter("text") if item.get("class") == kind]


def test_there_are_more_marks_up_than_across() -> None:
    drawing, shown = chart("Loss", [("raw", [(0, 0.0), (11, 11.0)])])
    assert texts(drawing, "up") == ["0", "2", "4", "6", "8", "10", "12"]
    assert texts(drawing, "across") == ["0", "5", "10"]
    assert 'aria-label="Loss" data-low="0" data-high="11"' in drawing
    assert shown == "0:0 11:11"
    high, _shown = chart("Loss", [("raw", [(0, 10.0), (1, 11.0)])], from_zero=True)
    assert texts(high, "up")[0] == "0"


def test_a_step_alone_is_a_dot_and_none_is_no_curve() -> None:
    drawing, shown = chart("Loss", [("raw", [(3, 1.0)]), ("mean", [(3, None)])])
    assert drawing.count('class="curve raw alone"') == 1 and drawing.count("<path") == 1
    assert shown == "3:1"
    two, _shown = chart("Loss", [("raw", [(3, 1.0), (4, 2.0)])])
    assert "alone" not in two
    nothing, shown = chart("Loss", [])
    assert ("<path" in nothing, shown) == (False, "")


def test_gaps_are_marked_where_they_are() -> None:
    drawing, _shown = chart("Loss", [("raw", [(0, 1.0), (1, math.nan), (2, None), (4, 1.0)]), ("mean", [(3, None)])])
    assert re.findall(r'class="gap" x1="([^"]+)"', drawing) == ["25%", "50%"]


def test_values_that_are_all_the_same_are_in_the_middle() -> None:
    for value in (5.0, -5.0, 0.0, 1e20):
        found = axis([value, value])
        assert found.low < value < found.high
        assert math.isclose(value - found.low, found.high - value, rel_tol=1e-6)
    assert axis([7], whole=True)[:2] == (6, 8)
    assert axis([]) == axis([0, 1])


values = st.lists(st.floats(), min_size=1, max_size=50)


@given(values, st.booleans())
def test_no_loss_is_too_strange_to_draw(losses: list[float], from_zero: bool) -> None:
    drawing, _shown = chart("Loss", [("raw", list(enumerate(losses)))], from_zero=from_zero)
    ElementTree.fromstring(drawing)  # noqa: S314 - our own
    for numbers in re.findall(r' d="([^"]+)"', drawing):
        found = [float(number) for number in re.findall(r"-?[0-9.]+(?:e[-+]?\d+)?", numbers)]
        assert all(-1 <= number <= 1001 for number in found)
    assert "nan" not in drawing and "inf" not in drawing
    missing = [loss for loss in losses if not math.isfinite(loss)]
    assert ('class="gap"' in drawing) >= bool(missing)
