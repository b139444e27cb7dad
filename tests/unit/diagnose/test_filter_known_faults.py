"""Filters known_faults and without_secrets."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.known_faults import FilterModule

FILTERS = FilterModule().filters()
LINE = "OSError: [Errno 24] Too many open files"


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (f"a\n{LINE}", "n1"),
        (f"==> /var/log/a <==\na\n==> /var/log/b <==\n{LINE}", "n1:/var/log/b"),
        (["a", LINE], "n1"),
        ([{"time": "2026-11-21T07:00:00.000Z", "message": f"a\n{LINE}"}], "n1"),
    ],
)
def test_each_kind_of_log_is_read(content: Any, source: str) -> None:
    (found,) = FILTERS["known_faults"]({"n1": content})
    assert (found["fault"], found["source"]) == ("too many open files", source)


def test_lines_stay_apart() -> None:
    (found,) = FILTERS["known_faults"]({"n1": ["a", LINE, "b"]})
    assert (found["line"], found["count"]) == (LINE, 1)


def test_events_have_times() -> None:
    (found,) = FILTERS["known_faults"]({"n1": [{"time": "2026-11-21T07:00:00.000Z", "message": LINE}]})
    assert found["time"] == "2026-11-21T07:00:00"


@pytest.mark.parametrize("value", [None, [], "text", {"a": 1}, {"a": [1]}, {"a": [{"time": "now"}]}])
def test_anything_else_is_refused_in_a_sentence(value: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="known_faults"):
        FILTERS["known_faults"](value)


def test_secrets_are_masked_and_lines_kept() -> None:
    assert FILTERS["without_secrets"]("a\npassword=b\n") == "a\npassword=****\n"
    with pytest.raises(AnsibleFilterError, match="needs a text"):
        FILTERS["without_secrets"](["a"])
