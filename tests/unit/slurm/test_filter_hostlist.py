"""The filters as Jinja calls them: types and messages."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.slurm import FilterModule

FILTERS = FilterModule().filters()


def test_there_and_back() -> None:
    assert FILTERS["hostlist_expand"]("n[1-3]") == ["n1", "n2", "n3"]
    assert FILTERS["hostlist_compress"](f"n{number}" for number in (3, 1, 2)) == "n[1-3]"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("hostlist_expand", ["n1"], "needs a string"),
        ("hostlist_expand", "n[1-", "lacks a closing bracket"),
        ("hostlist_compress", "n1,n2", "needs a list"),
        ("hostlist_compress", {"n1": 1}, "needs a list"),
        ("hostlist_compress", None, "needs a list"),
        ("hostlist_compress", ["n1", 2], "needs host names that are strings, not 2"),
        ("hostlist_compress", ["n[1-2]"], "holds a bracket"),
    ],
)
def test_wrong_input_is_one_sentence(name: str, value: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message) as caught:
        FILTERS[name](value)
    assert str(caught.value).endswith(".")
