"""Modules that write files take what their documentation says."""

from __future__ import annotations

import pytest

from tests.unit.arguments import check

NAMES = ("internal.owned_folders", "internal.text_files")


def test_what_a_module_takes_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        check(name, monkeypatch)
