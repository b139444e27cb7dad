"""Texts that are cut: what is left of a secret that stands at the border, once the secrets are masked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.action.internal.child_playbook import MOST, reason
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import (
    AwsCallError,
    TrainiumError,
    one_line,
    sentence_of,
    shortened,
)
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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n  b.\n", "a b"),
        ("<!DOCTYPE html><p>x", "a web page came in place of an answer"),
        ("502: <HTML>x", "a web page came in place of an answer"),
        ("no html", "no html"),
    ],
)
def test_an_error_is_one_line_and_no_page(text: str, line: str) -> None:
    assert one_line(ValueError(text)) == line


def test_only_what_was_foreseen_is_told_as_it_is() -> None:
    assert sentence_of(TrainiumError("no room; add a disk", room=1)) == "no room; add a disk"
    said = "an error that should not be: KeyError: 'a'; please report it"
    assert sentence_of(KeyError("a")) == said
    assert TrainiumError("no room", room=1).details == {"room": 1}


def test_an_error_without_an_answer_of_aws_has_no_code_and_does_not_pass() -> None:
    error = AwsCallError("cannot look")
    assert (error.code, error.reason, error.transient, error.details) == ("", "", False, {"error_code": ""})
