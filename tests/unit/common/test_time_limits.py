"""Times as Slurm takes them, and as a reader does."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import (
    duration,
    is_unlimited,
    seconds_of,
)
from hypothesis import given
from hypothesis import strategies as st

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        # The forms that sbatch(1) lists for --time.
        ("90", 90 * MINUTE),
        ("2:30", 2 * MINUTE + 30),
        ("1:02:03", HOUR + 2 * MINUTE + 3),
        ("2-12", 2 * DAY + 12 * HOUR),
        ("1-2:30", DAY + 2 * HOUR + 30 * MINUTE),
        ("1-2:03:04", DAY + 2 * HOUR + 3 * MINUTE + 4),
        ("0", 0),
        ("", None),
        ("1:2:3:4", None),
        ("1-", None),
        ("1.5", None),
        ("-1", None),
        ("1h", None),
        ("5\n", None),
    ],
)
def test_the_forms_of_slurm(text: str, seconds: int | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("text", "none"), [("UNLIMITED", True), ("infinite", True), ("Infinite", True), ("60", False), ("", False)]
)
def test_no_limit(text: str, none: bool) -> None:
    assert is_unlimited(text) == none


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min 0 s"),
        (198, "3 min 18 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (3600 + 12 * 60 + 59, "1 h 12 min"),
        (86399, "23 h 59 min"),
        (86400, "1 d 0 h"),
        (4 * 86400 + 3 * 3600 + 3599, "4 d 3 h"),
    ],
)
def test_a_time_for_a_reader(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@given(st.integers(0, 10**9))
def test_what_is_shown_is_less_than_one_of_its_smaller_unit_off(seconds: int) -> None:
    sizes = {"d": DAY, "h": HOUR, "min": MINUTE, "s": 1}
    words = duration(seconds).split()
    parts = [(int(number), sizes[unit]) for number, unit in zip(words[::2], words[1::2])]
    shown = sum(number * size for number, size in parts)
    assert shown <= seconds < shown + parts[-1][1]


def test_a_time_without_end_is_still_shown() -> None:
    assert duration(float("inf")).endswith(" h")
