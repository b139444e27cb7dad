"""Texts that are cut: what is left of a secret that stands at the border, once the secrets are masked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.action.internal.child_playbook import MOST, reason
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import one_line, shortened
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.masks import masked
from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import first_line
from ansible_collections.trainium.cluster.plugins.module_utils._prove.shown import public
from hypothesis import given
from hypothesis import strategies as st

KEY = "AKIAIOSFODNN7EXAMPLE"


def of_a_playbook(text: str, folder: Path) -> str:
    log = folder / "log"
    log.write_text(text, encoding="utf-8")
    return reason(log, "site", 2, 60)


WAYS: dict[str, tuple[int, Callable[[str, Path], str]]] = {
    "an error of one line": (300, lambda text, _folder: one_line(ValueError(text))),
    "evidence of a proof": (160, lambda text, _folder: first_line(text)),
    "why a playbook failed": (MOST, of_a_playbook),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mask", [masked, public])
def test_no_half_of_a_secret_is_shown(tmp_path: Path, way: str, mask: Callable[[str], str]) -> None:
    most, cut = WAYS[way]
    for place in range(most - len(KEY) - 2, most + 3):
        text = f"{'word ' * (place // 5)}{'x' * (place % 5 - 1)} {KEY} and more of it"
        assert KEY[:6] not in mask(cut(text, tmp_path)), place


@given(st.text(alphabet="ab .", max_size=40), st.integers(1, 40))
def test_what_is_cut_is_the_beginning_and_whole_words(text: str, most: int) -> None:
    kept = shortened(text, most)
    if len(text) <= most:
        assert kept == text
        return
    begin = kept.removesuffix(" ...")
    assert kept.endswith(" ...") and text.startswith(begin) and len(begin) <= most
    assert not begin or text[len(begin)] == " "
