"""The module of a proof takes what its documentation says."""

from __future__ import annotations

import pytest

from tests.unit.arguments import check


@pytest.mark.parametrize("name", ["internal.prove_report"])
def test_what_a_module_takes_is_documented(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, monkeypatch)
